// SPDX-License-Identifier: Apache-2.0
// Label and field selectors of the fake API server: equality, inequality and presence of labels, equality of the fields
// that the real one offers.
#include <stdio.h>
#include <string.h>

#include "base/json/json_read.h"
#include "test/fake/apiserver_private.h"

#define TERM_BYTES 512

// One term "KEY", "!KEY", "KEY=VALUE", "KEY==VALUE" or "KEY!=VALUE".
struct term {
	char key[TERM_BYTES], value[TERM_BYTES];
	bool has_value, is_negative;
};

// False for another syntax.
static bool read_term(const char *text, size_t len, struct term *t)
{
	*t = (struct term){0};
	if (len > 0 && text[0] == '!') {
		t->is_negative = true;
		text++, len--;
	}
	size_t key_len = strcspn(text, "=!,");
	if (key_len > len)
		key_len = len;
	if (key_len == 0 || key_len >= sizeof t->key || memchr(text, ' ', len) || memchr(text, '(', len))
		return false;
	memcpy(t->key, text, key_len);
	const char *value = text + key_len, *end = text + len;
	if (value == end)
		return true;
	t->has_value = true;
	if (t->is_negative)
		return false;
	if (*value == '!') {
		t->is_negative = true;
		if (++value == end || *value != '=')
			return false;
	}
	value++;
	if (!t->is_negative && value < end && *value == '=')
		value++;
	size_t value_len = (size_t)(end - value);
	if (value_len >= sizeof t->value || memchr(value, '=', value_len) || memchr(value, '!', value_len))
		return false;
	memcpy(t->value, value, value_len);
	return true;
}

typedef bool holds_fn(const cJSON *root, const struct term *t);

static bool all_hold(const cJSON *root, const char *selector, holds_fn *holds)
{
	while (*selector) {
		struct term t;
		size_t len = strcspn(selector, ",");
		if (!read_term(selector, len, &t) || !holds(root, &t))
			return false;
		selector += len + (selector[len] == ',');
	}
	return true;
}

static bool label_holds(const cJSON *root, const struct term *t)
{
	const cJSON *label = json_get(json_get(json_get(root, "metadata"), "labels"), t->key);
	bool is_there = cJSON_IsString(label);
	bool is_so = t->has_value ? is_there && strcmp(label->valuestring, t->value) == 0 : is_there;
	return is_so != t->is_negative;
}

static bool field_holds(const cJSON *root, const struct term *t)
{
	const cJSON *at = root;
	for (const char *part = t->key; at && *part;) {
		char name[TERM_BYTES];
		size_t len = strcspn(part, ".");
		snprintf(name, sizeof name, "%.*s", (int)len, part);
		at = json_get(at, name);
		part += len + (part[len] == '.');
	}
	return (strcmp(cJSON_IsString(at) ? at->valuestring : "", t->value) == 0) != t->is_negative;
}

bool fake_selected(const cJSON *root, const char *labels, const char *fields)
{
	return (!labels || all_hold(root, labels, label_holds)) && (!fields || all_hold(root, fields, field_holds));
}

bool fake_labels_are_known(const char *selector)
{
	struct term t;
	while (*selector) {
		size_t len = strcspn(selector, ",");
		if (!read_term(selector, len, &t))
			return false;
		selector += len + (selector[len] == ',');
	}
	return true;
}

bool fake_fields_are_known(const struct fake_kind *kind, const char *selector)
{
	static const char *const everywhere[] = {"metadata.name", "metadata.namespace"};
	static const char *const of_pods[] = {"status.phase", "spec.nodeName"};
	static const char *const of_events[] = {"involvedObject.kind",
	                                        "involvedObject.namespace",
	                                        "involvedObject.name",
	                                        "involvedObject.uid",
	                                        "reason",
	                                        "type"};
	while (*selector) {
		struct term t;
		size_t len = strcspn(selector, ",");
		bool is_known = false;
		if (!read_term(selector, len, &t) || !t.has_value)
			return false;
		for (size_t i = 0; i < 2; i++)
			is_known = is_known || strcmp(t.key, everywhere[i]) == 0;
		for (size_t i = 0; i < 2 && strcmp(kind->kind, "Pod") == 0; i++)
			is_known = is_known || strcmp(t.key, of_pods[i]) == 0;
		for (size_t i = 0; i < 6 && strcmp(kind->kind, "Event") == 0; i++)
			is_known = is_known || strcmp(t.key, of_events[i]) == 0;
		if (!is_known)
			return false;
		selector += len + (selector[len] == ',');
	}
	return true;
}
