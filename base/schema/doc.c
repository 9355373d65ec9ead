// SPDX-License-Identifier: Apache-2.0
#include "base/schema/doc.h"

#include <sys/stat.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/base.h"

#define TEXT_SHOWN_BYTES 64  // longest key, anchor or tag in a message
#define NAME_SHOWN_BYTES 200 // a long path is truncated at its start

// ---- errors in a text that is not yet a tree, as "name:line:col: what: fix" ----

// Fills *e with "name:line:col: " and the message; returns -1.
__attribute__((format(printf, 6, 7))) static int doc_error(struct err *e, enum err_kind kind, const char *name,
                                                           int line, int col, const char *fmt, ...)
{
	char what[ERR_MSG_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	size_t len = strlen(name);
	if (len > NAME_SHOWN_BYTES)
		name += len - NAME_SHOWN_BYTES;
	return err_set(e, kind, "%s:%d:%d: %s", name, line, col, what);
}

// Checks size, encoding and control characters, which the YAML library would report without a place.
static int check_text(const char *name, const char *text, size_t len, struct err *e)
{
	if (len > DOC_BYTES_MAX)
		return doc_error(e, ERR_LIMIT, name, 1, 1, "%zu bytes, the ceiling is %d: split the file", len,
		                 DOC_BYTES_MAX);
	if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return doc_error(e, ERR_INPUT, name, 1, 1, "the text is UTF-16: save it as UTF-8");
	int line = 1, col = 1;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_char_len(text + i, len - i);
		if (n == 0)
			return doc_error(e, ERR_INPUT, name, line, col,
			                 "byte 0x%02x is not valid UTF-8: save the file as UTF-8",
			                 (unsigned)(unsigned char)text[i]);
		uint32_t cp = text_code_point(text + i, n);
		bool is_break = cp == '\n' || cp == '\r';
		if ((cp < 0x20 && !is_break && cp != '\t') || (cp >= 0x7f && cp < 0xa0 && cp != 0x85))
			return doc_error(e, ERR_INPUT, name, line, col,
			                 "control character 0x%02x is not allowed: remove it, "
			                 "or write \\x%02x in double quotes",
			                 (unsigned)cp, (unsigned)cp);
		if (cp == 0xfeff || (cp & 0xfffe) == 0xfffe)
			return doc_error(e, ERR_INPUT, name, line, col, "invisible character U+%04X: remove it",
			                 (unsigned)cp);
		i += n;
		if (cp == '\r' && i < len && text[i] == '\n')
			continue; // the line ends at the \n
		line += is_break;
		col = is_break ? 1 : col + 1;
	}
	return 0;
}

// The text of 1-based line `number`, or "" past the end.
static const char *find_line(const char *text, size_t len, int number, size_t *ret_len)
{
	const char *end = text + len;
	for (int n = 1;; n++) {
		const char *stop = text;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		if (n == number) {
			*ret_len = (size_t)(stop - text);
			return text;
		}
		if (stop == end)
			break;
		text = stop + (stop + 1 < end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1);
	}
	*ret_len = 0;
	return end;
}

// Is there nothing but spaces from column col (1-based) of the line to the end of the text?
static bool is_at_end(const char *text, size_t len, int line, int col)
{
	size_t n;
	const char *p = find_line(text, len, line, &n);
	p += (size_t)(col - 1) < n ? (size_t)(col - 1) : n;
	for (; p < text + len; p++)
		if (*p != ' ' && *p != '\t' && *p != '\n' && *p != '\r')
			return false;
	return true;
}

// The words of libyaml 0.2 and what a person can do about them. `at_context`: the place to look at is where the
// construct began, not where the parser gave up.
struct yaml_problem {
	const char *problem, *context; // context NULL = any
	bool at_context;
	const char *message;
};
// clang-format off
static const struct yaml_problem problems[] = {
	{"found unexpected end of stream",                         "while scanning a quoted scalar", true,  "this quoted text is never closed: add the closing quote"},
	{"found unexpected document indicator",                    NULL,                             true,  "this quoted text is never closed: add the closing quote"},
	{"found unknown escape character",                         NULL,                             false, "unknown escape in double quotes: write \\\\ for a backslash, or use single quotes"},
	{"did not find expected hexdecimal number",                NULL,                             false, "\\x, \\u and \\U need 2, 4 and 8 hexadecimal digits"},
	{"found invalid Unicode character escape code",            NULL,                             false, "this escape is not a character of its own (half of a pair): write the character itself"},
	{"mapping values are not allowed in this context",         NULL,                             false, "':' is not expected here: check the indentation and the ':' of the line before, or put text that holds ': ' in quotes"},
	{"block sequence entries are not allowed in this context", NULL,                             false, "'- ' is not expected here: start the list on a line of its own"},
	{"mapping keys are not allowed in this context",           NULL,                             false, "'? ' is not expected here: write key: value"},
	{"could not find expected ':'",                            NULL,                             true,  "':' is missing after this key: write key: value (on one line, keys up to 1024 characters)"},
	{"did not find expected key",                              NULL,                             false, "a key is expected here: check the indentation, and put the whole value in quotes if it begins with a quote"},
	{"did not find expected '-' indicator",                    NULL,                             false, "'- ' is expected here: check the indentation"},
	{"did not find expected ',' or ']'",                       NULL,                             false, "',' or ']' is missing before this"},
	{"did not find expected ',' or '}'",                       NULL,                             false, "',' or '}' is missing before this"},
	{"did not find expected node content",                     NULL,                             false, "a value is expected here: put text that begins with one of ,[]{} in quotes"},
	{"did not find expected <document start>",                 NULL,                             false, "text after the end of the document: write --- between documents, or key: value on each line"},
	{"found character that cannot start any token",            NULL,                             false, "a value cannot begin with this character: put it in quotes"},
	{"did not find expected alphabetic or numeric character",  NULL,                             true,  "a value cannot begin with & or *: put it in quotes"},
	{"found undefined tag handle",                             NULL,                             false, "tags (!) are not supported: remove it, or put the value in quotes"},
	{"found an indentation indicator equal to 0",              NULL,                             false, "the block indentation must be 1 to 9: remove the 0"},
	{"did not find expected comment or line break",            NULL,                             false, "the text of a block (| or >) begins on the next line: move it there"},
	{"found unknown directive name",                           NULL,                             true,  "unknown % directive: remove the line"},
	{"found incompatible YAML document",                       NULL,                             false, "only YAML 1.1 and 1.2 are read: remove the %YAML line"},
	{"found duplicate %YAML directive",                        NULL,                             false, "a second %YAML line: remove it"},
	{"found unexpected ':'",                                   NULL,                             false, "':' is not expected here: put the text in quotes"},
};
// clang-format on

static const char *find_message(const yaml_parser_t *parser, bool *ret_at_context)
{
	*ret_at_context = false;
	for (size_t i = 0; parser->problem && i < sizeof problems / sizeof problems[0]; i++) {
		const struct yaml_problem *p = &problems[i];
		if (strcmp(p->problem, parser->problem) != 0)
			continue;
		if (p->context && (!parser->context || strcmp(p->context, parser->context) != 0))
			continue;
		*ret_at_context = p->at_context && parser->context;
		return p->message;
	}
	return NULL;
}

// Converts an error of the YAML library about text[0..len) to a place and a fix; returns -1. `inside` is the innermost
// collection that is still open, or NULL.
static int yaml_error(const char *name, const char *text, size_t len, const yaml_parser_t *parser,
                      const struct doc_node *inside, struct err *e)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(e, ERR_INTERNAL, "%s: out of memory while reading YAML", name);
	int line = (int)parser->problem_mark.line + 1, col = (int)parser->problem_mark.column + 1;
	int from_line = (int)parser->context_mark.line + 1, from_col = (int)parser->context_mark.column + 1;

	// A tab among the spaces that begin the line explains more than whatever the scanner stumbled over.
	size_t line_len;
	const char *p = find_line(text, len, line, &line_len);
	size_t blanks = 0;
	while (blanks < line_len && p[blanks] == ' ')
		blanks++;
	if (parser->error == YAML_SCANNER_ERROR && blanks < line_len && p[blanks] == '\t')
		return doc_error(e, ERR_INPUT, name, line, (int)blanks + 1, "a tab cannot indent: use spaces");

	bool is_flow = parser->context && strncmp(parser->context, "while parsing a flow", 20) == 0;
	if (is_flow && inside && is_at_end(text, len, line, col)) {
		bool is_map = inside->kind == DOC_MAP;
		return doc_error(e, ERR_INPUT, name, inside->line, inside->col,
		                 "this '%c' is never closed: add '%c', or the file was cut off", is_map ? '{' : '[',
		                 is_map ? '}' : ']');
	}
	bool at_context;
	const char *message = find_message(parser, &at_context);
	if (at_context)
		line = from_line, col = from_col;
	if (message)
		return doc_error(e, ERR_INPUT, name, line, col, "%s", message);
	return doc_error(e, ERR_INPUT, name, line, col, "%s: check the YAML syntax here",
	                 parser->problem ? parser->problem : "cannot be read as YAML");
}

// ---- nodes ----

// The key of a member that is merged into its map when the map is complete; compared by address.
static const char merge_key[] = "<<";

struct anchor {
	const char *name;
	const struct doc_node *node;
};

struct reader {
	struct arena *arena;
	const char *name;
	struct err *e;
	struct doc_node *open[DOC_DEPTH_MAX];   // collections we are inside of, outermost first
	struct doc_node *last[DOC_DEPTH_MAX];   // their last child so far
	const char *open_anchor[DOC_DEPTH_MAX]; // their anchors; NULL = none
	size_t depth;
	bool has_anchors; // anchors, aliases and merge keys are read
	struct anchor anchors[DOC_ANCHORS_MAX];
	size_t n_anchors;
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

// ---- anchors ----

static const struct anchor *find_anchor(const struct reader *r, const char *name)
{
	for (size_t i = r->n_anchors; i-- > 0;) // the last one of a name counts
		if (strcmp(r->anchors[i].name, name) == 0)
			return &r->anchors[i];
	return NULL;
}

// Sets *ret_name to a copy of the name; NULL without an anchor.
static int take_anchor(struct reader *r, const yaml_event_t *event, const yaml_char_t *anchor, const char **ret_name)
{
	*ret_name = NULL;
	if (!anchor)
		return 0;
	if (!r->has_anchors || wants_key(r))
		return refuse_anchor(r, event, anchor);
	*ret_name = arena_strdup(r->arena, (const char *)anchor);
	return *ret_name ? 0 : no_memory(r);
}

// A collection has its anchor only once it is complete, so that it cannot contain itself.
static int keep_anchor(struct reader *r, const char *name, const struct doc_node *node)
{
	if (!name)
		return 0;
	if (r->n_anchors == DOC_ANCHORS_MAX)
		return doc_error(r->e, ERR_LIMIT, r->name, node->line, node->col,
		                 "more than %d anchors in one document: write the values out", DOC_ANCHORS_MAX);
	r->anchors[r->n_anchors++] = (struct anchor){.name = name, .node = node};
	return 0;
}

static int copy_children(struct reader *r, const yaml_event_t *event, const struct doc_node *from);

// Adds a copy of `from` at the place of the alias.
static int add_copy(struct reader *r, const yaml_event_t *event, const struct doc_node *from)
{
	struct doc_node *node = add_node(r, event, from->kind);
	if (!node)
		return -1;
	node->line = from->line;
	node->col = from->col;
	node->quoted = from->quoted;
	node->text = from->text;
	node->text_len = from->text_len;
	if (!from->child)
		return 0;
	if (r->depth == DOC_DEPTH_MAX)
		return doc_error(r->e, ERR_LIMIT, r->name, line_of(event), col_of(event),
		                 "nested %zu deep, the ceiling is %d: flatten it", r->depth + 1, DOC_DEPTH_MAX);
	r->open[r->depth] = node;
	r->open_anchor[r->depth] = NULL;
	r->last[r->depth++] = NULL;
	int rc = copy_children(r, event, from);
	r->depth--;
	return rc;
}

static int copy_children(struct reader *r, const yaml_event_t *event, const struct doc_node *from)
{
	for (const struct doc_node *c = from->child; c; c = c->next) {
		if (from->kind == DOC_MAP) {
			r->key = c->key;
			r->key_line = c->key_line;
			r->key_col = c->key_col;
		}
		if (add_copy(r, event, c) < 0)
			return -1;
	}
	return 0;
}

static int take_alias(struct reader *r, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	char shown[TEXT_SHOWN_BYTES];
	if (!r->has_anchors)
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
		                 "aliases (*) are not supported: write the value out here");
	const struct anchor *a = find_anchor(r, name);
	text_show(shown, sizeof shown, name, strlen(name));
	if (wants_key(r))
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
		                 "a key must be text, found the alias *%s: write the key out", shown);
	if (!a)
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event),
		                 "there is no complete value with the anchor &%s before *%s: write the value out here",
		                 shown, shown);
	return add_copy(r, event, a->node);
}

static bool has_key(const struct doc_node *map, const char *key)
{
	for (const struct doc_node *c = map->child; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return true;
	return false;
}

// Moves the members of `from` to the end of `map`, except those whose key it has.
static int merge_from(struct reader *r, struct doc_node *map, struct doc_node **end, struct doc_node *from)
{
	if (from->kind != DOC_MAP)
		return doc_error(r->e, ERR_INPUT, r->name, from->line, from->col,
		                 "<< must name a map, or a list of maps");
	for (struct doc_node *c = from->child, *next; c; c = next) {
		next = c->next;
		if (has_key(map, c->key))
			continue;
		if (++map->n_children > DOC_MERGED_MAX)
			return doc_error(r->e, ERR_LIMIT, r->name, map->line, map->col,
			                 "more than %d keys in a map with <<: write them out", DOC_MERGED_MAX);
		c->next = NULL;
		*end = *(*end ? &(*end)->next : &map->child) = c;
	}
	return 0;
}

// Puts the members of the maps that << names into the map. The map's own members come first, then the earlier maps.
static int merge(struct reader *r, struct doc_node *map, struct doc_node *last)
{
	struct doc_node **place = &map->child, *before = NULL;
	while (*place && (*place)->key != merge_key) {
		before = *place;
		place = &before->next;
	}
	struct doc_node *merged = *place;
	if (!merged)
		return 0;
	*place = merged->next;
	map->n_children--;
	if (map->n_children > DOC_MERGED_MAX)
		return doc_error(r->e, ERR_LIMIT, r->name, map->line, map->col,
		                 "more than %d keys in a map with <<: write them out", DOC_MERGED_MAX);
	struct doc_node *end = last == merged ? before : last;
	if (merged->kind != DOC_SEQ)
		return merge_from(r, map, &end, merged);
	for (struct doc_node *c = merged->child, *next; c; c = next) {
		next = c->next;
		if (merge_from(r, map, &end, c) < 0)
			return -1;
	}
	return 0;
}

// ---- events ----

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
	bool is_merge = is_plain && len == 2 && memcmp(text, merge_key, 2) == 0;
	const char *wrong = NULL;
	if (is_plain && len == 0)
		wrong = "the key before ':' is missing: write key: value";
	else if (is_merge && !r->has_anchors)
		wrong = "merging with << is not supported: write the keys out here";
	else if (memchr(text, '\0', len))
		wrong = "a key cannot hold the character \\0: remove it";
	if (wrong)
		return doc_error(r->e, ERR_INPUT, r->name, line_of(event), col_of(event), "%s", wrong);
	r->key = is_merge ? merge_key : arena_strndup(r->arena, text, len);
	r->key_line = line_of(event);
	r->key_col = col_of(event);
	return r->key ? 0 : no_memory(r);
}

static int take_scalar(struct reader *r, const yaml_event_t *event)
{
	const char *anchor;
	if (take_anchor(r, event, event->data.scalar.anchor, &anchor) < 0)
		return -1;
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
		return keep_anchor(r, anchor, node);
	}
	node->quoted = is_quoted;
	node->text = arena_strndup(r->arena, text, len);
	node->text_len = len;
	return node->text ? keep_anchor(r, anchor, node) : no_memory(r);
}

static int open_collection(struct reader *r, const yaml_event_t *event, enum doc_kind kind, const yaml_char_t *anchor,
                           const yaml_char_t *tag)
{
	const char *name;
	if (take_anchor(r, event, anchor, &name) < 0)
		return -1;
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
	r->open_anchor[r->depth] = name;
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

int doc_find_twice(const struct doc_node *map, const struct doc_node **ret_first, const struct doc_node **ret_again,
                   struct err *e)
{
	*ret_first = *ret_again = NULL;
	if (map->n_children < 2)
		return 0;
	const struct doc_node **sorted = calloc(map->n_children, sizeof(struct doc_node *));
	if (!sorted)
		return err_no_memory(e);
	size_t n = 0;
	for (const struct doc_node *c = map->child; c; c = c->next)
		sorted[n++] = c;
	qsort(sorted, n, sizeof(struct doc_node *), compare_keys);
	for (size_t i = 1; i < n; i++) {
		const struct doc_node *c = sorted[i], *found = *ret_again;
		bool is_later = found && (found->key_line < c->key_line ||
		                          (found->key_line == c->key_line && found->key_col <= c->key_col));
		if (is_later || strcmp(sorted[i - 1]->key, c->key) != 0)
			continue;
		*ret_first = sorted[i - 1];
		*ret_again = c;
	}
	free(sorted);
	return 0;
}

static int check_duplicates(struct reader *r, const struct doc_node *map)
{
	const struct doc_node *first, *again;
	char shown[TEXT_SHOWN_BYTES];
	if (doc_find_twice(map, &first, &again, r->e) < 0)
		return -1;
	if (!again)
		return 0;
	text_show(shown, sizeof shown, again->key, strlen(again->key));
	return doc_error(r->e, ERR_INPUT, r->name, again->key_line, again->key_col,
	                 "key \"%s\" is here a second time, first at %d:%d: remove one of them", shown, first->key_line,
	                 first->key_col);
}

static int close_sequence(struct reader *r)
{
	r->depth--;
	return keep_anchor(r, r->open_anchor[r->depth], r->open[r->depth]);
}

static int close_map(struct reader *r)
{
	struct doc_node *map = r->open[--r->depth];
	if (check_duplicates(r, map) < 0 || merge(r, map, r->last[r->depth]) < 0)
		return -1;
	return keep_anchor(r, r->open_anchor[r->depth], map);
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
		return close_sequence(r);
	case YAML_MAPPING_END_EVENT:
		return close_map(r);
	case YAML_ALIAS_EVENT:
		return take_alias(r, event);
	case YAML_DOCUMENT_START_EVENT:
		r->n_anchors = 0;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
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
			return yaml_error(r->name, text, len, parser, r->depth ? r->open[r->depth - 1] : NULL, r->e);
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

static int parse_yaml(struct arena *a, const char *name, const char *text, size_t len, bool has_anchors,
                      struct doc_file *ret_file, struct err *e)
{
	*ret_file = (struct doc_file){.name = name};
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) // a byte order mark is not part of the text
		text += 3, len -= 3;
	if (check_text(name, text, len, e) < 0)
		return -1;
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_INTERNAL, "%s: out of memory while reading YAML", name);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	struct reader r = {.arena = a, .name = name, .e = e, .has_anchors = has_anchors};
	int rc = read_events(&r, &parser, text, len);
	yaml_parser_delete(&parser);
	return rc < 0 ? rc : finish(&r, ret_file);
}

int doc_parse_yaml(struct arena *a, const char *name, const char *text, size_t len, struct doc_file *ret_file,
                   struct err *e)
{
	return parse_yaml(a, name, text, len, false, ret_file, e);
}

int doc_parse_yaml_anchors(struct arena *a, const char *name, const char *text, size_t len, struct doc_file *ret_file,
                           struct err *e)
{
	return parse_yaml(a, name, text, len, true, ret_file, e);
}

int doc_read_yaml(struct arena *a, const char *path, bool has_anchors, struct doc_file *ret_file, struct err *e)
{
	const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
	*ret_file = (struct doc_file){.name = name};
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	struct err why = {.kind = ERR_NONE}; // e may be NULL, and the kind is needed here
	int rc = buf_read_argument(&text, path, &why);
	struct stat st;
	if (rc == 0)
		rc = (has_anchors ? doc_parse_yaml_anchors : doc_parse_yaml)(a, name, buf_str(&text), text.len,
		                                                             ret_file, e);
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
