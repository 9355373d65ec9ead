// SPDX-License-Identifier: Apache-2.0
// The fake API server's objects: JSON trees by kind, namespace and name, with one resourceVersion counter.
#ifndef GPUSCALE_TEST_FAKE_APISERVER_STORE_H
#define GPUSCALE_TEST_FAKE_APISERVER_STORE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define FAKE_OBJECTS_MAX 50000

struct fake_kind {
	const char *group, *version, *kind, *plural; // group "" = core
	bool has_scale;
};
extern const struct fake_kind fake_kinds[];
extern const size_t fake_n_kinds;

struct fake_object {
	struct fake_object *prev, *next;
	const struct fake_kind *kind;
	uint64_t seq; // order of creation
	cJSON *root;
	struct fake_object *owner; // of a pod the fake made itself
	int64_t ready_mono_ms;     // such a pod: becomes ready then; 0 = not scheduled yet; -1 = is ready
	int n_pods, n_ready;       // of a workload
	bool is_changed;           // of a workload: its status is to be written
	UT_hash_handle hh;         // in fake_store.index
	char key[];                // "deployments/NAMESPACE/NAME"
};

struct fake_store {
	struct fake_object *objects; // in order of creation
	struct fake_object *index;
	size_t n_objects;
	uint64_t version, seq;
};

void fake_store_init(struct fake_store *s);
void fake_store_done(struct fake_store *s);
const struct fake_kind *fake_kind_find(const char *group, const char *version, const char *name_or_plural);
struct fake_object *fake_store_find(const struct fake_store *s, const struct fake_kind *kind, const char *ns,
                                    const char *name);
// Takes root over, fills metadata (uid, resourceVersion, generation, creationTimestamp). NULL at the ceiling.
struct fake_object *fake_store_add(struct fake_store *s, const struct fake_kind *kind, const char *ns, cJSON *root);
void fake_store_remove(struct fake_store *s, struct fake_object *o);
// Replaces the tree (taken over) unless it is equal: then nothing changes, as in the real one. A changed spec raises
// metadata.generation.
void fake_store_update(struct fake_store *s, struct fake_object *o, cJSON *root);

const char *fake_object_name(const struct fake_object *o);
const char *fake_object_namespace(const struct fake_object *o);
const char *fake_object_version(const struct fake_object *o);
int fake_object_replicas(const struct fake_object *o); // spec.replicas, 1 if absent

// RFC 7386: target is changed in place and returned (or replaced and freed).
cJSON *fake_merge_patch(cJSON *target, const cJSON *patch);
// Sets a member, replacing one of that name.
void fake_set(cJSON *object, const char *key, cJSON *value);
// The member object of that name, made when missing.
cJSON *fake_sub(cJSON *object, const char *key);
// Does the object carry all labels of "a=b,c=d" ("==" too)? Sets *ret_bad for another syntax.
bool fake_labels_match(const struct fake_object *o, const char *selector, bool *ret_bad);
// "a=b,c=d" of spec.selector.matchLabels, else "app=NAME". malloc'ed.
char *fake_object_selector(const struct fake_object *o);

#endif
