// SPDX-License-Identifier: Apache-2.0
// What must hold of every exposition, whatever stands in the names of devices and pods: lines that a reader takes, in
// valid UTF-8, each family once and in one piece, no series twice, every value a number.
#ifndef GPUSCALE_TEST_FUZZ_PAGE_CHECK_H
#define GPUSCALE_TEST_FUZZ_PAGE_CHECK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"

#define PAGE_CHECK_LINES_MAX    20000
#define PAGE_CHECK_FAMILIES_MAX 512

static inline int page_check_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Past "name{a="b",..}"; dies at what is none. The value follows.
static inline char *page_check_series(char *p)
{
	const char *name = p;
	while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
	       (p > name && *p >= '0' && *p <= '9'))
		p++;
	assert(p > name);
	if (*p != '{')
		return p;
	for (p++; *p != '}'; p++) {
		const char *label = p;
		while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_')
			p++;
		assert(p > label && p[0] == '=' && p[1] == '"');
		for (p += 2; *p != '"'; p++) {
			assert(*p);
			if (*p == '\\') {
				p++;
				assert(*p == '\\' || *p == '"' || *p == 'n');
			}
		}
		p++;
		assert(*p == ',' || *p == '}');
		if (*p == '}')
			break;
	}
	return p + 1;
}

// Dies unless text[0..len) is such a page.
static inline void page_check(const char *text, size_t len)
{
	static const char type[] = "# TYPE ";
	char *copy = malloc(len + 1), **series = calloc(PAGE_CHECK_LINES_MAX, sizeof *series);
	const char *families[PAGE_CHECK_FAMILIES_MAX], *family = "";
	size_t n = 0, n_families = 0;
	assert(copy && series);
	for (size_t i = 0, step; i < len; i += step) {
		assert(text[i]);
		step = utf8_char_len(text + i, len - i);
		assert(step > 0);
	}
	assert(len == 0 || text[len - 1] == '\n');
	memcpy(copy, text, len);
	copy[len] = '\0';
	for (char *p = copy, *end; *p; p = end + 1) {
		end = strchr(p, '\n');
		*end = '\0';
		if (strncmp(p, type, sizeof type - 1) == 0) {
			family = p + sizeof type - 1;
			p[sizeof type - 1 + strcspn(family, " ")] = '\0';
			for (size_t i = 0; i < n_families; i++)
				assert(strcmp(families[i], family) != 0);
			assert(n_families < PAGE_CHECK_FAMILIES_MAX);
			families[n_families++] = family;
		}
		if (*p == '#' || !*p)
			continue;
		assert(strncmp(p, family, strlen(family)) == 0);
		char *at = page_check_series(p);
		double value;
		assert(*at == ' ');
		*at = '\0';
		assert(num_parse_sample(at + 1, strlen(at + 1), &value, NULL) == 0);
		assert(n < PAGE_CHECK_LINES_MAX);
		series[n++] = p;
	}
	qsort(series, n, sizeof *series, page_check_order);
	for (size_t i = 1; i < n; i++)
		assert(strcmp(series[i - 1], series[i]) != 0);
	free(series);
	free(copy);
}

#endif
