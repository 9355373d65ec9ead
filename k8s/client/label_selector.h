// SPDX-License-Identifier: Apache-2.0
// Parses and matches label selectors as the API server does: =, ==, !=, in, notin, exists (key), does not exist
// (!key), > and <. Kubernetes: apimachinery labels.Parse, Requirement.Matches.
#ifndef GPUSCALE_K8S_CLIENT_LABEL_SELECTOR_H
#define GPUSCALE_K8S_CLIENT_LABEL_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct label_selector;

#define LABEL_SELECTOR_BYTES_MAX        8192
#define LABEL_SELECTOR_REQUIREMENTS_MAX 64
#define LABEL_SELECTOR_VALUES_MAX       256 // values of all requirements together

struct label {
	const char *key, *value;
};

enum label_operator {
	LABEL_IN,
	LABEL_NOT_IN,
	LABEL_EXISTS,
	LABEL_DOES_NOT_EXIST,
	LABEL_GREATER,
	LABEL_LESS,
	LABEL_OPERATOR__COUNT
};
struct label_requirement {
	const char *key;
	enum label_operator op;
	const char *const *values; // one, a whole number, for LABEL_GREATER and LABEL_LESS; else none matches
	size_t n_values;
};
// Returns whether an object meets the requirement. value: of its label with the key; NULL: it has none.
bool label_requirement_matches(const struct label_requirement *r, const char *value);

// Parses a selector; NULL or a blank text matches everything. Returns NULL and *e: ERR_INPUT, which names what was
// found and expected, ERR_LIMIT, ERR_INTERNAL.
struct label_selector *label_selector_parse(const char *text, struct err *e);
void label_selector_free(struct label_selector *s); // NULL is fine
// labels: sorted by label_sort(), each key once.
bool label_selector_matches(const struct label_selector *s, const struct label *labels, size_t n);
// Sorts labels by key.
void label_sort(struct label *labels, size_t n);

// Returns whether key is a qualified name: [DNS subdomain "/"] name of up to 63 letters, digits, '-', '_', '.'.
// Kubernetes: IsQualifiedName.
bool label_key_is_valid(const char *key);
// Returns whether value is "" or up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends.
bool label_value_is_valid(const char *value);

#endif
