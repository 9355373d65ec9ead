// SPDX-License-Identifier: Apache-2.0
// Says what became of a policy, field by field, so that a test can compare what a file means with what the API server
// created from it.
//   policy_dump file FILE     each document of a YAML file
//   policy_dump object FILE   one object of the API server, JSON
// Prints "path = value" per field of the table, those that were written marked with "*"; warnings as "warning: ..";
// instead of a policy with faults "fault: .." per fault. Exit: 0 good, 1 faults, 2 usage.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/source/policy_object.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define PATH_BYTES      256

static void dump_object(const struct schema *schema, const unsigned char *base, const char *path);

static void dump_scalar(const struct schema_field *f, const void *slot)
{
	int32_t i32;
	int64_t i64;
	int choice;
	bool flag;
	double number;
	const char *text;
	switch (f->type) {
	case SCHEMA_STRING:
		memcpy(&text, slot, sizeof text);
		printf("%s", text ? text : "(none)");
		break;
	case SCHEMA_INT32:
		memcpy(&i32, slot, sizeof i32);
		printf("%d", i32);
		break;
	case SCHEMA_BOOL:
		memcpy(&flag, slot, sizeof flag);
		printf("%s", flag ? "true" : "false");
		break;
	case SCHEMA_QUANTITY:
		memcpy(&number, slot, sizeof number);
		printf("%.17g", number);
		break;
	case SCHEMA_ENUM:
		memcpy(&choice, slot, sizeof choice);
		printf("%s", f->enum_names[choice]);
		break;
	case SCHEMA_INT64:
	case SCHEMA_DURATION_MS:
	case SCHEMA_SECONDS_MS:
	case SCHEMA_TIME_MS:
		memcpy(&i64, slot, sizeof i64);
		printf("%lld", (long long)i64);
		break;
	case SCHEMA_OBJECT:
	case SCHEMA_LIST:
	case SCHEMA_STRING_LIST:
	case SCHEMA_ANY:
	case SCHEMA_TYPE__COUNT:
		abort();
	}
	putchar('\n');
}

static void dump_list(const struct schema_field *f, const unsigned char *base, const char *path)
{
	const unsigned char *items;
	size_t n;
	memcpy(&items, base + f->offset, sizeof items);
	memcpy(&n, base + f->count_offset, sizeof n);
	for (size_t i = 0; i < n; i++) {
		char element[PATH_BYTES];
		snprintf(element, sizeof element, "%s[%zu]", path, i);
		dump_object(f->child, items + i * f->child->struct_size, element);
	}
}

static void dump_strings(const struct schema_field *f, const unsigned char *base)
{
	const char *const *items;
	size_t n;
	memcpy(&items, base + f->offset, sizeof items);
	memcpy(&n, base + f->count_offset, sizeof n);
	for (size_t i = 0; i < n; i++)
		printf("%s%s", i ? ", " : "", items[i]);
	putchar('\n');
}

static void dump_object(const struct schema *schema, const unsigned char *base, const char *path)
{
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		char name[PATH_BYTES];
		bool is_set = false;
		snprintf(name, sizeof name, "%s%s%s", path, *path ? "." : "", f->name);
		if (f->set_offset != SCHEMA_NO_OFFSET)
			memcpy(&is_set, base + f->set_offset, sizeof is_set);
		if (f->type == SCHEMA_ANY)
			continue; // metadata.annotations, labels: gone after decoding
		printf("%s%s =%s", name, is_set ? "*" : "", f->child ? "\n" : " ");
		if (f->type == SCHEMA_OBJECT)
			dump_object(f->child, base + f->offset, name);
		else if (f->type == SCHEMA_LIST)
			dump_list(f, base, name);
		else if (f->type == SCHEMA_STRING_LIST)
			dump_strings(f, base);
		else
			dump_scalar(f, base + f->offset);
	}
}

// What decoding computes beside the fields of the table.
static void dump_computed(const struct policy *p)
{
	printf("combine %d formula %u ops, idle signal %zu, formulas %x of %x, forecast signal %zu horizon %lld, panic "
	       "signal %zu window "
	       "%lld\n",
	       p->combine, p->formula.n_ops, p->idle.activation.index, p->formulas, p->inputs, p->forecast.signal_index,
	       (long long)p->forecast.horizon_ms, p->panic.signal_index, (long long)p->panic.window_ms);
}

static int finish(int rc, const struct policy_document *document, struct schema_errors *errors,
                  struct schema_errors *unknown)
{
	for (size_t i = 0; i < unknown->n; i++)
		printf("warning: %s: %s\n", unknown->items[i].path, unknown->items[i].message);
	for (size_t i = 0; i < errors->n; i++)
		printf("fault: %s: %s\n", errors->items[i].path, errors->items[i].message);
	if (rc < 0)
		return 1;
	dump_object(&policy_schema, (const unsigned char *)document, "");
	dump_computed(&document->policy);
	return 0;
}

int main(int argc, char **argv)
{
	struct arena a;
	struct err e;
	struct policy_document document = {0};
	struct schema_errors errors, unknown;
	int code = 0;
	if (argc != 3 || (strcmp(argv[1], "file") != 0 && strcmp(argv[1], "object") != 0)) {
		fprintf(stderr, "usage: policy_dump file|object FILE\n");
		return 2;
	}
	arena_init(&a, ARENA_BYTES_MAX);
	schema_errors_init(&errors, NULL);
	schema_errors_init(&unknown, NULL);
	if (strcmp(argv[1], "object") == 0) {
		struct buf text;
		struct policy_object object;
		buf_init(&text, DOC_BYTES_MAX);
		int rc = buf_read_file(&text, argv[2], &e);
		if (rc < 0)
			fprintf(stderr, "policy_dump: %s\n", e.msg);
		else
			rc = policy_object_decode(buf_str(&text), text.len, &a, &object, &document, &errors, &unknown);
		code = finish(rc, &document, &errors, &unknown);
		buf_done(&text);
	} else {
		struct doc_file file;
		if (doc_read_yaml(&a, argv[2], false, &file, &e) < 0) {
			printf("fault: %s\n", e.msg);
			code = 1;
		}
		for (size_t i = 0; i < file.n_roots && code == 0; i++) {
			memset(&document, 0, sizeof document);
			code = finish(policy_decode(file.roots[i], &document, &a, &errors), &document, &errors,
			              &unknown);
		}
	}
	arena_done(&a);
	return code;
}
