// SPDX-License-Identifier: Apache-2.0
// label_selector_parse on any text: a selector within its ceilings, or one clean line; matching never reads past
// anything, and a requirement that is repeated changes nothing.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "k8s/client/label_selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct label labels[] = {{"a", ""}, {"n", "5"}, {"policy", "llama"}, {"x/y", "z"}};
	static const size_t n = sizeof labels / sizeof labels[0];
	char *text = malloc(2 * size + 2);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	struct err e = {0};
	struct label_selector *s = label_selector_parse(text, &e);
	if (!s) {
		size_t len = strnlen(e.msg, sizeof e.msg);
		assert((e.kind == ERR_INPUT || e.kind == ERR_LIMIT) && len > 0 && len < sizeof e.msg);
		for (size_t i = 0; i < len; i++)
			assert((unsigned char)e.msg[i] >= 0x20 && e.msg[i] != 0x7F);
		free(text);
		return 0;
	}
	bool all = label_selector_matches(s, labels, n);
	for (size_t i = 0; i < n; i++)
		label_selector_matches(s, labels + i, n - i);
	size_t len = strlen(text);
	bool blank = strspn(text, " \t\r\n") == len;
	if (!blank) {
		text[len] = ',';
		memmove(text + len + 1, text, len);
		text[2 * len + 1] = '\0';
		struct label_selector *twice = label_selector_parse(text, &e);
		assert(twice ? label_selector_matches(twice, labels, n) == all : e.kind == ERR_LIMIT);
		label_selector_free(twice);
	}
	label_selector_free(s);
	free(text);
	return 0;
}
