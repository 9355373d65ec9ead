// SPDX-License-Identifier: Apache-2.0
#include "base/schema/doc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc_error.h"
#include "base/text.h"

#define TEXT_SHOWN_BYTES 64 // of a key, anchor or tag in a message

struct reader {
	struct arena *arena;
	const char *name;
	struct err *e;
	struct doc_node *open[DOC_DEPTH_MAX]; // collections we are inside of, outermost first
	struct doc_node *last[DOC_DEPTH_MAX]; // their last child so far
	size_t depth;
	const char *key; // read, and waiting for its value
	int key_line, key_col;
	struct doc_node *first_root, *last_root; // chained by `next` until the file is complete
	size_t n_roots, n_nodes;
};

static int no_memory(struct reader *r)
{
	return err_set(r->e, ERR_LIMIT, "%s: needs more than the %zu bytes set aside for it (%zu used): split the file",
	               r->name, r->arena->max_bytes, r->arena->used_bytes);
}

static int line_of(const yaml_event_t *event)
{
	return (int)event->start_mark.line + 1;
}

static int col_of(const yaml_event_t *event)
{
	return (int)event->start_mark.column + 1;
}

// Puts a new node where the document stands: under the waiting key, at the end of the open list, or as a root.
static struct doc_node *add_node(struct reader *r, const yaml_event_t *event, enum doc_kind kind)
{
	if (++r->n_nodes > DOC_NODES_MAX) {
		doc_error(r->e, ERR_LIMIT, r->name, line_of(event), col_of(event),
		          "%zu values up to here, the ceiling is %d: split the file", r->n_nodes, DOC_NODES_MAX);
		return NULL;
	}
	struct doc_node *node = arena_alloc(r->arena, sizeof *node);
	if (!node) {
		no_memory(r);
		return NULL;
	}
	*node = (struct doc_node){.kind = kind, .line = line_of(event), .col = col_of(event), .text = "", .key = ""};
	if (r->depth == 0) {
		if (kind == DOC_NULL)
			return node; // an empty document
		if (++r->n_roots > DOC_DOCUMENTS_MAX) {
			doc_error(r->e, ERR_LIMIT, r->name, node->line, node->col,
			          "%zu documents up to here, the ceiling is %d: split the file", r->n_roots,
			          DOC_DOCUMENTS_MAX);
			return NULL;
		}
		*(r->last_root ? &r->last_root->next : &r->first_root) = node;
		r->last_root = node;
		return node;
	}
	struct doc_node *parent = r->open[r->depth - 1], *last = r->last[r->depth - 1];
	if (parent->kind == DOC_MAP) {
		node->key = r->key;
		node->key_line = r->key_line;
		node->key_col = r->key_col;
		r->key = NULL;
	}
	*(last ? &last->next : &parent->child) = node;
	r->last[r->depth - 1] = node;
	parent->n_children++;
	return node;
}

static bool wants_key(const struct reader *r)
{
	return r->depth > 0 && r->open[r->depth - 1]->kind == DOC_MAP && !r->key;
}

static int refuse_anchor(struct reader *r, const yaml_event_t *event, const yaml_char_t *anchor)
{
	char shown[TEXT_SHOWN_BYTES];
	text_show(shown, sizeof shown, (const char *)anchor, strlen((const char *)anchor));
	return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
	                 "anchors are not supported: remove &%s and write the value out where it is needed", shown);
}

static int refuse_tag(struct reader *r, const yaml_event_t *event, const yaml_char_t *tag)
{
	const char *t = (const char *)tag, *standard = "tag:yaml.org,2002:";
	bool is_standard = strncmp(t, standard, strlen(standard)) == 0;
	t += is_standard ? strlen(standard) : 0;
	char shown[TEXT_SHOWN_BYTES];
	text_show(shown, sizeof shown, t, strlen(t));
	bool is_str = is_standard && strcmp(t, "str") == 0;
	return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event), "tags are not supported: %s %s%s",
	                 is_str ? "put the value in quotes instead of" : "remove", is_standard ? "!!" : "", shown);
}

static bool is_null_text(const char *text, size_t len)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
			return true;
	return false;
}

static int take_key(struct reader *r, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	const char *wrong = NULL;
	if (is_plain && len == 0)
		wrong = "the key before ':' is missing: write key: value";
	else if (is_plain && len == 2 && memcmp(text, "<<", 2) == 0)
		wrong = "merging with << is not supported: write the keys out here";
	else if (memchr(text, '\0', len))
		wrong = "a key cannot hold the character \\0: remove it";
	if (wrong)
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event), "%s", wrong);
	r->key = arena_strndup(r->arena, text, len);
	r->key_line = line_of(event);
	r->key_col = col_of(event);
	return r->key ? 0 : no_memory(r);
}

static int take_scalar(struct reader *r, const yaml_event_t *event)
{
	if (event->data.scalar.anchor)
		return refuse_anchor(r, event, event->data.scalar.anchor);
	if (event->data.scalar.tag)
		return refuse_tag(r, event, event->data.scalar.tag);
	if (wants_key(r))
		return take_key(r, event);
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	bool is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	bool is_null = !is_quoted && is_null_text(text, len);
	struct doc_node *node = add_node(r, event, is_null ? DOC_NULL : DOC_SCALAR);
	if (!node)
		return -1;
	if (is_null) {
		// "? key" without ":" puts its nothing where the next token is, which may be past the last line.
		if (node->key_line > 0 && node->line > node->key_line) {
			node->line = node->key_line;
			node->col = node->key_col;
		}
		return 0;
	}
	node->quoted = is_quoted;
	node->text = arena_strndup(r->arena, text, len);
	node->text_len = len;
	return node->text ? 0 : no_memory(r);
}

static int open_collection(struct reader *r, const yaml_event_t *event, enum doc_kind kind, const yaml_char_t *anchor,
                           const yaml_char_t *tag)
{
	if (anchor)
		return refuse_anchor(r, event, anchor);
	if (tag)
		return refuse_tag(r, event, tag);
	if (wants_key(r))
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
		                 "a key must be text, found a %s: put text that begins with { or [ in quotes%s",
		                 kind == DOC_MAP ? "map" : "list",
		                 kind == DOC_MAP ? "; of a Helm template, read what `helm template` makes of it" : "");
	if (r->depth == DOC_DEPTH_MAX)
		return doc_error(r->e, ERR_LIMIT, r->name, line_of(event), col_of(event),
		                 "nested %zu deep, the ceiling is %d: flatten it", r->depth + 1, DOC_DEPTH_MAX);
	struct doc_node *node = add_node(r, event, kind);
	if (!node)
		return -1;
	r->open[r->depth] = node;
	r->last[r->depth] = NULL;
	r->depth++;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct doc_node *x = *(const struct doc_node *const *)a, *y = *(const struct doc_node *const *)b;
	int by_key = strcmp(x->key, y->key);
	if (by_key != 0)
		return by_key;
	if (x->key_line != y->key_line)
		return x->key_line < y->key_line ? -1 : 1;
	return (x->key_col > y->key_col) - (x->key_col < y->key_col);
}

// Sorting keeps a map of 100000 keys from costing 100000^2 comparisons.
static int check_duplicates(struct reader *r, const struct doc_node *map)
{
	const struct doc_node **sorted = arena_calloc(r->arena, map->n_children, sizeof(struct doc_node *));
	if (!sorted)
		return no_memory(r);
	size_t n = 0;
	for (const struct doc_node *c = map->child; c; c = c->next)
		sorted[n++] = c;
	qsort(sorted, n, sizeof(struct doc_node *), compare_keys);
	const struct doc_node *first = NULL, *again = NULL; // the duplicate that comes first in the file
	for (size_t i = 1; i < n; i++) {
		const struct doc_node *c = sorted[i];
		if (strcmp(sorted[i - 1]->key, c->key) != 0)
			continue;
		if (again &&
		    (again->key_line < c->key_line || (again->key_line == c->key_line && again->key_col < c->key_col)))
			continue;
		first = sorted[i - 1];
		again = c;
	}
	if (!again)
		return 0;
	char shown[TEXT_SHOWN_BYTES];
	text_show(shown, sizeof shown, again->key, strlen(again->key));
	return doc_error(r->e, ERR_INPUT, r->name, again->key_line, again->key_col,
	                 "key \"%s\" is here a second time, first at %d:%d: remove one of them", shown, first->key_line,
	                 first->key_col);
}

static int close_map(struct reader *r)
{
	const struct doc_node *map = r->open[--r->depth];
	return map->n_children > 1 ? check_duplicates(r, map) : 0;
}

static int take_event(struct reader *r, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return take_scalar(r, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_collection(r, event, DOC_SEQ, event->data.sequence_start.anchor,
		                       event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return open_collection(r, event, DOC_MAP, event->data.mapping_start.anchor,
		                       event->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
		r->depth--;
		return 0;
	case YAML_MAPPING_END_EVENT:
		return close_map(r);
	case YAML_ALIAS_EVENT:
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
		                 "aliases (*) are not supported: write the value out here");
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return 0;
}

static int read_events(struct reader *r, yaml_parser_t *parser, const char *text, size_t len)
{
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return doc_yaml_error(r->name, text, len, parser, r->depth ? r->open[r->depth - 1] : NULL,
			                      r->e);
		bool is_end = event.type == YAML_STREAM_END_EVENT;
		int rc = take_event(r, &event);
		yaml_event_delete(&event);
		if (rc < 0 || is_end)
			return rc;
	}
}

static int finish(struct reader *r, struct doc_file *ret_file)
{
	struct doc_node **roots = arena_calloc(r->arena, r->n_roots, sizeof(struct doc_node *));
	const char *name = arena_strdup(r->arena, r->name);
	if (!roots || !name)
		return no_memory(r);
	size_t n = 0;
	for (struct doc_node *root = r->first_root, *next; root; root = next) {
		next = root->next;
		root->next = NULL;
		roots[n++] = root;
	}
	*ret_file = (struct doc_file){.name = name, .roots = roots, .n_roots = n};
	return 0;
}

int doc_parse_yaml(struct arena *a, const char *name, const char *text, size_t len, struct doc_file *ret_file,
                   struct err *e)
{
	*ret_file = (struct doc_file){.name = name};
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) // a byte order mark is not part of the text
		text += 3, len -= 3;
	if (doc_check_text(name, text, len, e) < 0)
		return -1;
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_INTERNAL, "%s: out of memory while reading YAML", name);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	struct reader r = {.arena = a, .name = name, .e = e};
	int rc = read_events(&r, &parser, text, len);
	yaml_parser_delete(&parser);
	return rc < 0 ? rc : finish(&r, ret_file);
}

int doc_read_yaml(struct arena *a, const char *path, struct doc_file *ret_file, struct err *e)
{
	const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
	*ret_file = (struct doc_file){.name = name};
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	struct err why = {.kind = ERR_NONE}; // e may be NULL, and the kind is needed here
	int rc = buf_read_argument(&text, path, &why);
	struct stat st;
	if (rc == 0)
		rc = doc_parse_yaml(a, name, buf_str(&text), text.len, ret_file, e);
	else if (why.kind == ERR_LIMIT && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		rc = err_set(e, ERR_LIMIT, "%s: %lld bytes, the ceiling is %d: split the file", path,
		             (long long)st.st_size, DOC_BYTES_MAX);
	else if (why.kind == ERR_LIMIT)
		rc = err_set(e, ERR_LIMIT, "%s: more than the ceiling of %d bytes: split the file", name,
		             DOC_BYTES_MAX);
	else if (e)
		*e = why;
	buf_done(&text);
	return rc;
}

const struct doc_node *doc_get(const struct doc_node *node, const char *key)
{
	if (!node || node->kind != DOC_MAP)
		return NULL;
	for (const struct doc_node *c = node->child; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

const char *doc_get_text(const struct doc_node *node, const char *key, const char *fallback)
{
	const struct doc_node *c = doc_get(node, key);
	return c && c->kind == DOC_SCALAR ? c->text : fallback;
}
