// SPDX-License-Identifier: Apache-2.0
// A YAML or JSON document as a tree with positions: what every file a person writes is read into.
// All memory comes from the caller's arena (about 130 bytes and the text per value); the tree lives as long as the
// arena.
#ifndef GPUSCALE_BASE_SCHEMA_DOC_H
#define GPUSCALE_BASE_SCHEMA_DOC_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

#define DOC_BYTES_MAX     (1024 * 1024)
#define DOC_DEPTH_MAX     32
#define DOC_NODES_MAX     100000
#define DOC_DOCUMENTS_MAX 1024
#define DOC_ANCHORS_MAX   256  // anchors in one document
#define DOC_MERGED_MAX    1000 // keys of a map into which << merges others

enum doc_kind { DOC_NULL, DOC_SCALAR, DOC_SEQ, DOC_MAP, DOC_KIND__COUNT };

struct doc_node {
	enum doc_kind kind;
	bool quoted;      // scalar was written in quotes or as a block (| >), or came from a JSON string
	int line, col;    // 1-based; 0 when unknown (tree made from an API reply)
	const char *text; // scalar text, NUL-terminated; "" otherwise
	size_t text_len;  // may count embedded NULs, which no field accepts
	const char *key;  // name in the parent map, else ""; never NULL
	int key_line, key_col;
	struct doc_node *child; // first child of a sequence or map
	struct doc_node *next;  // next sibling
	size_t n_children;
};

struct doc_file {
	const char *name;        // as given, for messages; "<stdin>" for "-"
	struct doc_node **roots; // one per document, empty documents left out; no roots for an empty file
	size_t n_roots;
};

// Parses YAML (JSON is read as YAML) from text[0..len). Refused with "name:line:col: what is wrong and the fix":
// syntax errors, duplicate keys, non-scalar keys, anchors/aliases/merge keys and tags (not needed, and a bomb), depth,
// size, node and document limits, an arena that is too small, invalid UTF-8. Kinds: ERR_INPUT, ERR_LIMIT,
// ERR_INTERNAL (out of memory). On error *ret_file has no roots.
int doc_parse_yaml(struct arena *a, const char *name, const char *text, size_t len, struct doc_file *ret_file,
                   struct err *e);
// As doc_parse_yaml(), but copies the value of an anchor to where an alias or a merge key (<<) names it: for files that
// were written for other programs. The copies are treated as values; an anchor that contains itself is refused.
int doc_parse_yaml_anchors(struct arena *a, const char *name, const char *text, size_t len, struct doc_file *ret_file,
                           struct err *e);
// Reads and parses the input that buf_read_argument (base/buf.h) accepts: a regular file, standard input ("-") or an
// inherited pipe; with has_anchors as doc_parse_yaml_anchors(), else as doc_parse_yaml(). Returns the errors of both.
int doc_read_yaml(struct arena *a, const char *path, bool has_anchors, struct doc_file *ret_file, struct err *e);
// Parses one JSON value from text[0..len), as json_read does (strict, unlike YAML), into a tree without positions. Text
// is quoted, numbers are written as num_format_f64 does, null is DOC_NULL. Members with one name twice are refused, and
// a text above the limits. Kinds: ERR_PROTOCOL (no JSON), ERR_INPUT, ERR_LIMIT, ERR_INTERNAL. NULL on error.
int doc_from_json(struct arena *a, const char *text, size_t len, struct doc_node **ret_root, struct err *e);
// Finds the first member of a map in the text whose key an earlier one has: *ret_again, and the earlier one in
// *ret_first; both are NULL when there is none. Sorts, so that a map of 100000 keys does not cost 100000^2 comparisons.
// Returns 0, or -1 and *e when memory is exhausted.
int doc_find_twice(const struct doc_node *map, const struct doc_node **ret_first, const struct doc_node **ret_again,
                   struct err *e);
// The child of map `node` called key, or NULL. node may be NULL.
const struct doc_node *doc_get(const struct doc_node *node, const char *key);
// doc_get(...)->text for a scalar, else fallback.
const char *doc_get_text(const struct doc_node *node, const char *key, const char *fallback);

#endif
