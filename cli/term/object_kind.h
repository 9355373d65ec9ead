// SPDX-License-Identifier: Apache-2.0
// The table of resources: their names on the command line, in -o name and in CustomResourceDefinitions.
#ifndef GPUSCALE_CLI_TERM_OBJECT_KIND_H
#define GPUSCALE_CLI_TERM_OBJECT_KIND_H

#include <stdbool.h>
#include <stddef.h>

#define CRD_GROUP   "gpuscale.dev"
#define CRD_VERSION "v1alpha1"
#define CRD_PLURAL  "gpuautoscalers"

enum object_kind { OBJECT_POLICY, OBJECT_POOL, OBJECT_REMEDIATION, OBJECT_SCALED_OBJECT, OBJECT_KIND__COUNT };

// The resources that the API server stores come first.
#define CRD_COUNT OBJECT_REMEDIATION

struct object_kind_info {
	const char *kind, *kinds, *plural, *singular, *short_name; // kinds: several, for messages
	bool is_namespaced;
	const char *group, *version;
};

const struct object_kind_info *object_kind_info(enum object_kind r);
// Returns the resource that a word of `len` bytes names: plural, singular, short name or kind, in any case, with or
// without its group behind. OBJECT_KIND__COUNT: none.
enum object_kind object_kind_find(const char *word, size_t len);
// Returns the name of a resource that is similar to a word of `len` bytes, or NULL.
const char *object_kind_closest(const char *word, size_t len);

#endif
