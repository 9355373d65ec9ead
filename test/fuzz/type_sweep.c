// SPDX-License-Identifier: Apache-2.0
// Wrong types on purpose: see type_sweep.h.
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "test/fuzz/type_sweep.h"

#define WRAPPED_BYTES_MAX 2048

// JSON texts: one value of each type, and the ones that readers tend to forget.
static const char *const values[] = {"null",
                                     "true",
                                     "false",
                                     "0",
                                     "-1",
                                     "1.5",
                                     "9223372036854775808",
                                     "-9223372036854775809",
                                     "1e308",
                                     "1e-320",
                                     "\"\"",
                                     "\"x\"",
                                     "\"0\"",
                                     "\"-1\"",
                                     "\"NaN\"",
                                     "\"1e999\"",
                                     "\"a\\u0000b\"",
                                     "\"\\u001b[31m\\n\"",
                                     "\"2026-11-20T17:34:55Z\"",
                                     "\"9999-12-31T23:59:59.999999Z\"",
                                     "[]",
                                     "[1]",
                                     "[[]]",
                                     "[{}]",
                                     "[null]",
                                     "[\"x\",\"x\"]",
                                     "{}",
                                     "{\"a\":1}",
                                     "{\"\":null}",
                                     "{\"name\":[1]}"};

struct sweep {
	const uint8_t *head, *tail; // what stays before and after the value swept
	size_t head_len, tail_len;
	cJSON *root;
	int (*feed)(const uint8_t *data, size_t len);
	size_t n_values, n_calls;
};

static void feed_text(struct sweep *s)
{
	char *text = cJSON_PrintUnformatted(s->root);
	if (!text)
		abort();
	size_t text_len = strlen(text), len = s->head_len + text_len + s->tail_len;
	uint8_t *all = malloc(len ? len : 1); // that size exactly: a sanitizer sees the first byte read too far
	if (!all)
		abort();
	memcpy(all, s->head, s->head_len);
	memcpy(all + s->head_len, text, text_len);
	memcpy(all + s->head_len + text_len, s->tail, s->tail_len);
	s->feed(all, len);
	s->n_calls++;
	free(all);
	cJSON_free(text);
}

// item stays where it is among its siblings, under its key.
static void feed_instead(struct sweep *s, cJSON *item, const char *json)
{
	cJSON saved = *item;
	char *text = strdup(json);
	if (!text)
		abort();
	item->type = cJSON_Raw;
	item->valuestring = text;
	item->child = NULL;
	feed_text(s);
	item->type = saved.type;
	item->valuestring = saved.valuestring;
	item->child = saved.child;
	free(text);
}

static void feed_wrapped(struct sweep *s, cJSON *item)
{
	char *self = cJSON_PrintUnformatted(item), wrapped[WRAPPED_BYTES_MAX];
	if (!self)
		abort();
	if (2 * strlen(self) + sizeof "{\"a\":}" <= sizeof wrapped) {
		snprintf(wrapped, sizeof wrapped, "[%s]", self);
		feed_instead(s, item, wrapped);
		snprintf(wrapped, sizeof wrapped, "[%s,%s]", self, self);
		feed_instead(s, item, wrapped);
		snprintf(wrapped, sizeof wrapped, "{\"a\":%s}", self);
		feed_instead(s, item, wrapped);
	}
	cJSON_free(self);
}

static void feed_renamed(struct sweep *s, cJSON *item)
{
	static char names[][4] = {"", "?", "\x01\n"};
	char *own = item->string;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		item->string = names[i];
		feed_text(s);
	}
	item->string = own;
}

static void sweep_item(struct sweep *s, cJSON *item)
{
	if (s->n_values++ >= TYPE_SWEEP_VALUES_MAX)
		return;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		feed_instead(s, item, values[i]);
	feed_wrapped(s, item);
	if (item->string)
		feed_renamed(s, item);
	for (cJSON *child = item->child; child; child = child->next)
		sweep_item(s, child);
}

static cJSON *json_of(const struct doc_node *node)
{
	if (node->kind == DOC_NULL)
		return cJSON_CreateNull();
	if (node->kind == DOC_SCALAR && !node->quoted) { // 8 stays a number; 8s and 1_000 become text
		cJSON *plain = cJSON_ParseWithOpts(node->text, NULL, true);
		if (plain)
			return plain;
	}
	if (node->kind == DOC_SCALAR)
		return cJSON_CreateString(node->text);
	cJSON *all = node->kind == DOC_MAP ? cJSON_CreateObject() : cJSON_CreateArray();
	for (const struct doc_node *c = node->child; all && c; c = c->next) {
		cJSON *item = json_of(c);
		if (!(node->kind == DOC_MAP ? cJSON_AddItemToObject(all, c->key, item)
		                            : cJSON_AddItemToArray(all, item)))
			abort();
	}
	return all;
}

static void sweep_yaml(struct sweep *s, const uint8_t *data, size_t len)
{
	struct arena a;
	struct doc_file file;
	struct err e;
	arena_init(&a, (size_t)64 * 1024 * 1024);
	if (doc_parse_yaml(&a, "sweep", (const char *)data, len, &file, &e) == 0 && file.n_roots > 0 &&
	    file.roots[0]->n_children > 0) {
		s->root = json_of(file.roots[0]);
		s->head_len = s->tail_len = 0;
		if (!s->root)
			abort();
		sweep_item(s, s->root);
		cJSON_Delete(s->root);
	}
	arena_done(&a);
}

size_t type_sweep(const uint8_t *data, size_t len, int (*feed)(const uint8_t *data, size_t len))
{
	struct sweep s = {.head = data, .tail = data, .feed = feed};
	if (len > TYPE_SWEEP_BYTES_MAX)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (data[i] != '{' && data[i] != '[')
			continue;
		const char *end = NULL;
		s.root = cJSON_ParseWithLengthOpts((const char *)data + i, len - i, &end, false);
		if (!s.root)
			continue;
		size_t after = (size_t)(end - (const char *)data);
		s.head_len = i;
		s.tail = data + after;
		s.tail_len = len - after;
		sweep_item(&s, s.root);
		cJSON_Delete(s.root);
		i = after - 1;
	}
	if (s.n_calls == 0)
		sweep_yaml(&s, data, len);
	return s.n_calls;
}
