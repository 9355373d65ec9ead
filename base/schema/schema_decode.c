// SPDX-License-Identifier: Apache-2.0
// Walks a schema and a document side by side: objects, lists, defaults, cross-field rules.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema_private.h"
#include "base/text.h"

// Reports at node's key when it has one, else at node.
__attribute__((format(printf, 3, 4))) static void fail_at_key(struct schema_decoder *d, const struct doc_node *node,
                                                              const char *fmt, ...)
{
	assert(!d->in_default);
	bool has_key = node->key_line > 0;
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(d->errors, has_key ? node->key_line : node->line, has_key ? node->key_col : node->col,
	                  d->path, fmt, ap);
	va_end(ap);
}

size_t schema_fault_put(struct schema_fault *ret_faults, size_t max, const char *field, const char *message)
{
	if (max == 0)
		return 0;
	ret_faults[0] = (struct schema_fault){.field = field, .index = -1, .message = message};
	return 1;
}

static size_t count_errors(const struct schema_decoder *d)
{
	return d->errors->n + d->errors->dropped;
}

// The path grows by one step and is cut back by pop_path(what push_path returned). Too long a path is cut.
__attribute__((format(printf, 2, 3))) static size_t push_path(struct schema_decoder *d, const char *fmt, ...)
{
	size_t before = d->path_len, room = sizeof d->path - before;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(d->path + before, room, fmt, ap);
	va_end(ap);
	d->path_len += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

static void pop_path(struct schema_decoder *d, size_t before)
{
	d->path_len = before;
	d->path[before] = '\0';
}

static const char *dot(const struct schema_decoder *d)
{
	return d->path_len ? "." : "";
}

static void decode_object(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                          unsigned char *base);

static void store_list(const struct schema_field *f, unsigned char *base, const void *items, size_t n)
{
	memcpy(base + f->offset, &items, sizeof items);
	memcpy(base + f->count_offset, &n, sizeof n);
}

static void decode_list(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                        unsigned char *base)
{
	if (node->kind != DOC_SEQ) {
		schema_fail_kind(d, f, node);
		return;
	}
	bool is_text = f->type == SCHEMA_STRING_LIST;
	const struct schema_field element = {.name = f->name, .type = is_text ? SCHEMA_STRING : SCHEMA_OBJECT};
	size_t size = is_text ? sizeof(const char *) : f->child->struct_size;
	size_t n = node->n_children, max = f->max_items ? f->max_items : SCHEMA_LIST_ITEMS_MAX;
	if ((double)n < f->min)
		schema_fail(d, node, "must have at least %.0f element%s, has %zu", f->min, f->min == 1 ? "" : "s", n);
	if (n > max) {
		schema_fail(d, node, "has %zu elements, at most %zu are allowed", n, max);
		n = max; // the others are not looked at
	}
	if (n == 0)
		return;
	unsigned char *items = arena_calloc(d->arena, n, size);
	if (!items) {
		schema_fail_memory(d, node);
		return;
	}
	const struct doc_node *c = node->child;
	for (size_t i = 0; i < n; i++, c = c->next) {
		size_t before = push_path(d, "[%zu]", i);
		if (c->kind == DOC_NULL)
			schema_fail(d, c, "is empty: fill it in or remove it");
		else if (is_text)
			schema_decode_scalar(d, &element, c, items + i * size);
		else if (c->kind != DOC_MAP)
			schema_fail_kind(d, &element, c);
		else
			decode_object(d, f->child, c, items + i * size);
		pop_path(d, before);
	}
	store_list(f, base, items, n);
}

static void decode_value(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                         unsigned char *base)
{
	switch (f->type) {
	case SCHEMA_OBJECT:
		if (node->kind == DOC_MAP)
			decode_object(d, f->child, node, base + f->offset);
		else
			schema_fail_kind(d, f, node);
		break;
	case SCHEMA_LIST:
	case SCHEMA_STRING_LIST:
		decode_list(d, f, node, base);
		break;
	case SCHEMA_ANY: // kept as it is: inside the default of a list its nodes would not live long enough
		assert(!d->in_default || f->default_text);
		*(const struct doc_node **)(void *)(base + f->offset) = node;
		break;
	default:
		assert(f->type <= SCHEMA_ENUM);
		schema_decode_scalar(d, f, node, base + f->offset);
	}
}

// default_text as the node its author would have written: *scalar, or nodes in `a`.
static const struct doc_node *default_node(const struct schema_field *f, struct doc_node *scalar, struct arena *a)
{
	assert(f->type != SCHEMA_OBJECT); // an object's defaults are those of its fields
	if (f->type <= SCHEMA_ENUM) {
		*scalar = (struct doc_node){.kind = DOC_SCALAR, .text = f->default_text};
		scalar->text_len = strlen(f->default_text);
		scalar->quoted = f->type == SCHEMA_STRING || f->type == SCHEMA_QUANTITY;
		return scalar;
	}
	struct doc_file file;
	struct err e;
	if (doc_parse_yaml(a, f->name, f->default_text, strlen(f->default_text), &file, &e) < 0) {
		assert(e.kind != ERR_INPUT);
		return NULL;
	}
	assert(file.n_roots == 1);
	return file.roots[0];
}

static void apply_default(struct schema_decoder *d, const struct schema_field *f, unsigned char *base,
                          const struct doc_node *near)
{
	if (f->type == SCHEMA_OBJECT)
		decode_object(d, f->child, NULL, base + f->offset);
	if (!f->default_text)
		return;
	// The nodes are read once, and every value keeps a copy: they do not stay in the arena of the result.
	struct arena nodes;
	arena_init(&nodes, d->arena->max_bytes);
	struct doc_node scalar;
	bool was_in_default = d->in_default;
	d->in_default = true;
	const struct doc_node *node = default_node(f, &scalar, f->type == SCHEMA_ANY ? d->arena : &nodes);
	if (node)
		decode_value(d, f, node, base);
	else
		schema_fail_memory(d, near);
	d->in_default = was_in_default;
	arena_done(&nodes);
}

// `found` is the value of f's name in the object `parent` (NULL: none). parent NULL: the object is absent.
static void decode_field(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *found,
                         const struct doc_node *parent, unsigned char *base)
{
	assert(f->min <= f->max || schema_is_list(f));
	bool is_set = found && found->kind != DOC_NULL;
	if (f->set_offset != SCHEMA_NO_OFFSET)
		memcpy(base + f->set_offset, &is_set, sizeof is_set);
	if (is_set && f->unsupported)
		fail_at_key(d, found, "not supported yet: remove it");
	else if (is_set)
		decode_value(d, f, found, base);
	else if (f->required && parent && !f->unsupported)
		fail_at_key(d, found ? found : parent, "required, but %s: add it (%s)", found ? "empty" : "missing",
		            schema_type_name(f->type));
	else if (!f->unsupported)
		apply_default(d, f, base, parent);
}

static bool is_ignored(const struct schema *schema, const char *key)
{
	const char *const *name = schema->ignored;
	while (name && *name && strcmp(*name, key) != 0)
		name++;
	return name && *name;
}

static void report_unknown(struct schema_decoder *d, const struct schema *schema, const struct doc_node *child)
{
	if (d->unknown->n == SCHEMA_ERRORS_MAX) { // will only be counted: spare the search
		d->unknown->dropped++;
		return;
	}
	assert(!d->in_default);
	bool has_key = child->key_line > 0;
	int line = has_key ? child->key_line : child->line, col = has_key ? child->key_col : child->col;
	char shown[SCHEMA_SHOWN_BYTES], known[SCHEMA_MESSAGE_BYTES];
	text_show(shown, sizeof shown, child->key, strlen(child->key));
	size_t before = push_path(d, "%s%s", dot(d), shown);
	const char *closest = schema_closest_field(schema, child->key);
	if (closest)
		schema_report_at(d->unknown, line, col, d->path, "unknown field: did you mean %s?", closest);
	else
		schema_report_at(d->unknown, line, col, d->path, "unknown field: known here are %s",
		                 schema_list_fields(schema, known, sizeof known));
	pop_path(d, before);
}

static void match_fields(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                         const struct doc_node **found)
{
	for (const struct doc_node *c = node->child; c; c = c->next) {
		const struct schema_field *f = schema_field_by_name(schema, c->key, strlen(c->key));
		if (!f) {
			if (!is_ignored(schema, c->key))
				report_unknown(d, schema, c);
			continue;
		}
		const struct doc_node **slot = &found[f - schema->fields];
		if (*slot) { // doc_parse_yaml refuses these; a tree made otherwise may have them
			size_t before = push_path(d, "%s%s", dot(d), f->name);
			fail_at_key(d, c, "is here a second time: remove one of them");
			pop_path(d, before);
		} else {
			*slot = c;
		}
	}
}

static void place_fault(struct schema_decoder *d, const struct doc_node *object, const struct schema_fault *fault)
{
	const struct doc_node *at = object;
	bool is_exact = true;
	for (const char *name = fault->field; is_exact && name && *name;) {
		size_t len = strcspn(name, ".");
		const struct doc_node *c = at->kind == DOC_MAP ? at->child : NULL;
		while (c && !(strncmp(c->key, name, len) == 0 && c->key[len] == '\0'))
			c = c->next;
		is_exact = c && c->kind != DOC_NULL;
		if (c)
			at = c;
		name += len + (name[len] == '.');
	}
	size_t before = d->path_len;
	if (fault->field)
		push_path(d, "%s%s", dot(d), fault->field);
	if (fault->index >= 0) {
		push_path(d, "[%d]", fault->index);
		const struct doc_node *c = is_exact && at->kind == DOC_SEQ ? at->child : NULL;
		for (int32_t i = 0; c && i < fault->index; i++)
			c = c->next;
		if (c)
			at = c;
	}
	if (is_exact && fault->field)
		schema_fail(d, at, "%s", fault->message);
	else
		fail_at_key(d, at, "%s", fault->message);
	pop_path(d, before);
}

typedef size_t validate_fn(const void *value, struct schema_fault *ret_faults, size_t max);

static void check_rules(struct schema_decoder *d, validate_fn *validate, const struct doc_node *node,
                        const unsigned char *base)
{
	struct schema_fault faults[SCHEMA_FAULTS_MAX];
	size_t n = validate(base, faults, SCHEMA_FAULTS_MAX);
	assert(n <= SCHEMA_FAULTS_MAX);
	for (size_t i = 0; i < n; i++)
		place_fault(d, node, &faults[i]);
}

// node NULL: the object is absent, and only defaults are filled in.
static void decode_object(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                          unsigned char *base)
{
	assert(schema->n_fields <= SCHEMA_FIELDS_MAX);
	assert(d->depth < DOC_DEPTH_MAX); // a schema that contains itself outside of a list has no end
	d->depth++;
	size_t errors_before = count_errors(d);
	const struct doc_node *found[SCHEMA_FIELDS_MAX] = {NULL};
	if (node)
		match_fields(d, schema, node, found);
	bool is_plain_good = true;
	for (size_t i = 0; i < schema->n_fields; i++) {
		size_t before = push_path(d, "%s%s", dot(d), schema->fields[i].name);
		size_t errors = count_errors(d);
		decode_field(d, &schema->fields[i], found[i], node, base);
		is_plain_good = is_plain_good && (schema->fields[i].child || count_errors(d) == errors);
		pop_path(d, before);
	}
	bool is_good = count_errors(d) == errors_before;
	if (node && schema->validate && is_good)
		check_rules(d, schema->validate, node, base);
	else if (node && schema->validate_plain && is_plain_good && !is_good)
		check_rules(d, schema->validate_plain, node, base);
	d->depth--;
}

int schema_decode(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                  struct schema_errors *errors, const char *path)
{
	return schema_decode_tolerant(schema, node, value, a, errors, errors, path);
}

int schema_decode_tolerant(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown, const char *path)
{
	struct schema_decoder d = {.arena = a, .errors = errors, .unknown = unknown};
	push_path(&d, "%s", path);
	size_t before = count_errors(&d);
	if (node && node->kind == DOC_MAP) {
		decode_object(&d, schema, node, value);
	} else {
		char found[SCHEMA_SHOWN_BYTES];
		schema_report(errors, node, d.path, "must be a map, found %s",
		              node ? schema_describe(node, found) : "nothing");
	}
	return count_errors(&d) > before ? -1 : 0;
}
