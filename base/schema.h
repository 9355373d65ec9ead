// SPDX-License-Identifier: Apache-2.0
// One table per file format. A struct schema describes an object: its fields' names, types, places in a C struct,
// defaults, ranges and documentation. The same table decodes, fills defaults, reports every error at once with
// file:line:col, answers `explain`, and (later) prints the CRD and the reference page.
#ifndef GPUSCALE_BASE_SCHEMA_H
#define GPUSCALE_BASE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;

enum schema_type {
	SCHEMA_STRING,   // const char *, in the arena
	SCHEMA_INT32,    // int32_t
	SCHEMA_BOOL,     // bool; only true / false
	SCHEMA_QUANTITY, // double; a Kubernetes quantity. An unquoted float is refused with the quoted form as the fix
	SCHEMA_DURATION_MS, // int64_t ms; Prometheus duration
	SCHEMA_SECONDS_MS,  // int64_t ms, written as a whole number of seconds (the HPA-verbatim block)
	SCHEMA_ENUM,        // int; one of enum_names, stored as its index
	SCHEMA_OBJECT,      // nested struct, by `child`
	SCHEMA_LIST, // child.struct_size elements; at `offset` a pointer to the array, at `count_offset` a size_t
	SCHEMA_STRING_LIST, // const char **, count as above
	SCHEMA_ANY,         // const struct doc_node *: the raw node, for the caller to look into (free-form maps)
	SCHEMA_TYPE__COUNT
};

struct schema;

struct schema_field {
	const char *name;
	enum schema_type type;
	const char *doc;     // one or two sentences: what it does, unit, when to change it
	size_t offset;       // of the value in the parent struct
	size_t set_offset;   // of a bool that says "was written"; SCHEMA_NO_OFFSET when nobody asks
	size_t count_offset; // lists only
	const char
	        *default_text; // as a user would write it; NULL = none (zero value). Applied when the field is absent
	bool required;
	bool unsupported; // known name whose stage does not exist yet: writing it is the error "not supported yet"
	double min, max;  // numbers (in the user's unit, durations in ms), or string length; both 0 = unchecked
	size_t max_items; // lists; 0 = 256
	const char *const *enum_names; // NULL-terminated
	const struct schema *child;
};
#define SCHEMA_NO_OFFSET ((size_t)-1)

// A broken cross-field rule, placed at one field of the object (index >= 0: at that element of the list field).
#define SCHEMA_FAULTS_MAX 16
struct schema_fault {
	const char *field;
	int32_t index;       // -1 = the field itself
	const char *message; // constant text: what is wrong, then the fix
};

struct schema {
	const char *name; // "GPUAutoscaler.spec.signals[]", used by explain
	const char *doc;
	size_t struct_size;
	const struct schema_field *fields;
	size_t n_fields;
	// Cross-field rules, asked once all fields were decoded without error; may be NULL. Pure: fills at most `max`
	// faults, returns how many.
	size_t (*validate)(const void *value, struct schema_fault *ret_faults, size_t max);
};

// All the errors of a file, in order of position.
#define SCHEMA_ERRORS_MAX 64
struct schema_error {
	int line, col;
	char path[160];    // "spec.signals[1].window.duration"
	char message[352]; // what is wrong, then the fix
};
struct schema_errors {
	const char *file;
	struct schema_error items[SCHEMA_ERRORS_MAX];
	size_t n;       // stored
	size_t dropped; // beyond the ceiling
};
void schema_errors_init(struct schema_errors *e, const char *file);
// Adds one at node's position (node NULL: position 0:0).
void schema_report(struct schema_errors *e, const struct doc_node *node, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
// "file:line:col: path: message\n" per error, sorted by position, then "N more errors" if any were dropped.
void schema_errors_print(struct schema_errors *e, struct buf *out);

// Decodes node (a map) into *value (struct_size bytes, zeroed by the caller): defaults, types, ranges, unknown and
// duplicate keys (with did-you-mean), missing required fields, unsupported fields; then validate. Strings and lists
// live in `a`. Returns 0, or -1 when errors->n grew.
int schema_decode(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                  struct schema_errors *errors, const char *path);

// The field at a dotted path ("spec.signals.window.duration", list brackets optional), and through ret_parent the
// schema that holds it; NULL when there is none, then *ret_closest (may be NULL) names the nearest name at the level
// that failed.
const struct schema_field *schema_find(const struct schema *root, const char *path, const struct schema **ret_parent,
                                       const char **ret_closest);
// "duration", "quantity", "list of object", ...: the user's word for a type.
const char *schema_type_name(enum schema_type t);

#endif
