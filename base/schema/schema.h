// SPDX-License-Identifier: Apache-2.0
// One table per file format. A struct schema describes an object: its fields' names, types, places in a C struct,
// defaults, ranges and documentation. The same table decodes, fills defaults, reports every error at once with
// file:line:col, answers `explain`, and prints the CRD and the reference page.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;
struct err;
struct json_writer;

enum schema_type {
	SCHEMA_STRING,   // const char *, in the arena
	SCHEMA_INT32,    // int32_t
	SCHEMA_INT64,    // int64_t, up to 2^53 both ways: exact in JSON
	SCHEMA_BOOL,     // bool; only true / false
	SCHEMA_QUANTITY, // double; a Kubernetes quantity. An unquoted float is refused with the quoted form as the fix
	SCHEMA_DURATION_MS, // int64_t ms; Prometheus duration
	SCHEMA_SECONDS_MS,  // int64_t ms, written as a whole number of seconds (the HPA-verbatim block)
	SCHEMA_TIME_MS,     // int64_t ms since the epoch; RFC 3339
	SCHEMA_ENUM,        // int; one of enum_names, stored as its index. The last of the scalars
	SCHEMA_OBJECT,      // nested struct, by `child`
	SCHEMA_LIST, // child.struct_size elements, and a zeroed one; at `offset` the array, at `count_offset` a size_t
	SCHEMA_STRING_LIST, // const char **, count as above
	SCHEMA_ANY,         // const struct doc_node *: the raw node, for the caller to look into (free-form maps)
	SCHEMA_TYPE__COUNT
};

struct schema;

// How `gpuscale tune` may vary a number. FACTOR: from `min` times the present value to `max` times, on a logarithmic
// scale; the others: from `min` to `max`, in the unit of the field's own limits (a percentage in percent).
enum schema_tune_scale {
	SCHEMA_TUNE_NONE,
	SCHEMA_TUNE_LINEAR,
	SCHEMA_TUNE_LOG,
	SCHEMA_TUNE_FACTOR,
	SCHEMA_TUNE_SCALE__COUNT
};
struct schema_tune {
	enum schema_tune_scale scale; // SCHEMA_TUNE_NONE: the number is not varied
	double min, max;
};

struct schema_field {
	const char *name;
	enum schema_type type;
	const char *doc;     // one or two sentences: what it does, unit, when to change it
	size_t offset;       // offset of the value in the parent struct
	size_t set_offset;   // offset of a bool that is set when the field is present; SCHEMA_NO_OFFSET: none
	size_t count_offset; // lists only
	// As a user would write it, without quotes; NULL = none (zero value). Applied when the field is absent (lists
	// and "any" in flow style: "[a, b]"). Goes through the same decoder as user text; a bad one is a bug and
	// asserts.
	const char *default_text;
	bool required;
	bool unsupported; // known name whose stage does not exist yet: writing it is the error "not supported yet"
	// Both ends inclusive, both 0 = unchecked. Numbers in the user's unit (SCHEMA_SECONDS_MS in seconds,
	// SCHEMA_DURATION_MS in ms; not for SCHEMA_TIME_MS), string length in bytes. An end at or beyond INT32_MAX /
	// -INT32_MAX (integers), 1e300 / -1e300 (quantities), 1e15 (durations) is open and not mentioned. min must not
	// be above max (asserted). Lists: min = fewest elements of a list that is written, max is not used.
	double min, max;
	size_t max_items;              // lists; 0 = SCHEMA_LIST_ITEMS_MAX
	const char *const *enum_names; // NULL-terminated
	const char *list_key;          // list of objects: the field that identifies an element, for the API server
	const char *pattern;           // string: what its own check takes, as a regular expression for the API server
	const struct schema *child;
	struct schema_tune tune;
};
#define SCHEMA_NO_OFFSET      ((size_t)-1)
#define SCHEMA_LIST_ITEMS_MAX 256 // unless the field says otherwise
#define SCHEMA_FIELDS_MAX     64  // per object; asserted

// A broken cross-field rule, placed at one field of the object (index >= 0: at that element of the list field).
#define SCHEMA_FAULTS_MAX 16
struct schema_fault {
	const char *field;   // name in this object, or a dotted path below it; NULL = the object itself
	int32_t index;       // -1 = the field itself
	const char *message; // constant text: what is wrong, then the fix
};
// Collects the faults of one validate function; those beyond SCHEMA_FAULTS_MAX are dropped.
struct fault_list {
	struct schema_fault faults[SCHEMA_FAULTS_MAX];
	size_t n;
};
void fault_add(struct fault_list *l, const char *field, int32_t index, const char *message);
// A rule between fields, as a row of a table.
struct fault_rule {
	bool is_broken;
	const char *field, *message;
};
void fault_add_broken(struct fault_list *l, const struct fault_rule *rules, size_t n);

// A cross-field rule as an API server can check it itself (CEL, Kubernetes 1.25). `validate` checks it, too, and
// decides: test/e2e/run-crd keeps the two from saying different things.
struct schema_rule {
	const char *cel;     // about `self`, the object after defaults
	const char *message; // as of struct schema_fault
};

struct schema {
	const char *name; // "GPUAutoscaler.spec.signals[]", used by explain
	const char *doc;
	size_t struct_size;
	const struct schema_field *fields;
	size_t n_fields;
	// Cross-field rules, called once all fields of an object that was written were decoded without error; may be
	// NULL. Pure. Not called for an absent object that only got its defaults.
	void (*validate)(const void *value, struct fault_list *l);
	// Those of the rules that look at the object's plain fields alone: called in place of validate when these were
	// decoded without error but an object or list below them was not. What lies below must not be looked at. May be
	// NULL.
	void (*validate_plain)(const void *value, struct fault_list *l);
	const char *const *ignored; // names of fields that are neither read nor reported; NULL-terminated; may be NULL
	const struct schema_rule *rules; // may be NULL
	size_t n_rules;
	// The API server stores the object as it is: it neither checks its fields nor tracks who wrote which of them.
	// The description lists the fields. For what only one trusted client writes, and often: the checks cost the
	// server more than the rest of such a write (docs/decisions/0040). For the object that schema_openapi() gets.
	bool is_opaque;
};

// All the errors of a file. Text that came from the file is cut and its control characters are visible.
#define SCHEMA_ERRORS_MAX    64
#define SCHEMA_PATH_BYTES    160
#define SCHEMA_MESSAGE_BYTES 352
#define SCHEMA_EXCERPT_BYTES 112
struct schema_error {
	int line, col;                      // 1-based; 0 = unknown
	char path[SCHEMA_PATH_BYTES];       // "spec.signals[1].window.duration"; "" = the document
	char message[SCHEMA_MESSAGE_BYTES]; // the problem, then the fix
	char excerpt[SCHEMA_EXCERPT_BYTES]; // line of a text with a grammar of its own; "" = none
	int caret, caret_len;               // mark below the excerpt: columns from 0
};
struct schema_errors {
	const char *file;
	struct schema_error items[SCHEMA_ERRORS_MAX];
	size_t n;         // stored
	size_t dropped;   // beyond the limit
	const char *noun; // for one of them, in "36 more errors"; schema_errors_init() sets "error"
	const char *mark; // in front of each with a position, such as "warning: "; schema_errors_init() sets ""
};
void schema_errors_init(struct schema_errors *e, const char *file);
// Adds one at node's position (node NULL: position 0:0).
void schema_report(struct schema_errors *e, const struct doc_node *node, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
// As schema_report, at a position of the caller's choice (a key, say).
void schema_report_at(struct schema_errors *e, int line, int col, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
// An error inside a scalar whose text has a grammar of its own: at offset .. offset + len of scalar->text. Its position
// is that of the byte, when the text stands on one line as it is; printed, the text follows with carets under the
// place.
void schema_report_text(struct schema_errors *e, const struct doc_node *scalar, const char *path, size_t offset,
                        size_t len, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
// "file:line:col: path: message\n" per error, sorted by position, then "file: N more NOUNs" if any were dropped.
// Without "line:col:" where the position is unknown, without "path:" where it is "".
void schema_errors_print(struct schema_errors *e, struct buf *out);

// Decodes node (a map) into *value (struct_size bytes, zeroed by the caller): defaults, types, ranges, unknown and
// duplicate keys (with did-you-mean), missing required fields, unsupported fields; then validate. A field written as
// null is treated as absent. An absent object still gets its children's defaults; one with child offsets into the same
// struct has offset 0. Strings and lists live in `a`, SCHEMA_ANY points into the tree of `node`. `path` is the prefix
// of every reported path, "" for a whole document. Returns 0, or -1 when an error was reported.
int schema_decode(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                  struct schema_errors *errors, const char *path);

// As schema_decode, for documents that were validated elsewhere (by an API server with an older or newer table):
// fields that this table does not know are reported to `unknown` instead, and change nothing.
int schema_decode_tolerant(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown, const char *path);

// The field at a dotted path ("spec.signals.window.duration", list brackets optional), and through ret_parent the
// schema that contains it; NULL when there is none, then *ret_parent is the schema of the level that failed and
// *ret_closest the nearest name there, or NULL. ret_parent and ret_closest may be NULL.
const struct schema_field *schema_find(const struct schema *root, const char *path, const struct schema **ret_parent,
                                       const char **ret_closest);
// "duration", "quantity", "list of object", ...: the user's word for a type.
const char *schema_type_name(enum schema_type t);

// Appends to out, laid out as `kubectl explain` does, what is known of the field at `path` ("spec.signals.window",
// "spec.signals[].window", with or without the kind in front; "" or the kind alone = the whole object): type, default,
// range, choices, whether it is required, its description, and its own fields. Lines are wrapped at 80 columns. -1 and
// ERR_NOT_FOUND with a did-you-mean when there is no such field (out is unchanged), ERR_LIMIT when out is full.
int schema_explain(const struct schema *root, const char *path, struct buf *out, struct err *e);

// Appends the reference page in Markdown, a section per object and a row per field: "## path" for the root and each
// nested object, in the order of the table. Look at out->failed at the end.
void schema_page(const struct schema *root, struct buf *out);

// Writes a schema for the API server, as structural OpenAPI v3: one JSON object: type, description, required,
// properties. Quantities are integers or strings, durations strings with the grammar as a pattern; what a pattern
// cannot say (ranges of either, lengths in bytes, rules between fields) stays with the decoder. A default is given
// where being written means nothing in addition to the value: not where the table asks whether it was (set_offset), and
// not for lists, objects and "any". Unsupported fields are left out. An opaque object gets one description, a line per
// field, and no properties. Kubernetes: apiextensions-apiserver, "Specifying a structural schema". With `with_rules`
// also the rules in CEL of each object, which Kubernetes knows from 1.25 on ("Validation rules").
void schema_openapi(const struct schema *schema, bool with_rules, struct json_writer *w);

#endif
