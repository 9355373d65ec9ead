// SPDX-License-Identifier: Apache-2.0
// The fake API server's objects: JSON trees by kind, namespace and name, with one resourceVersion counter. Each keeps
// its text too, so that reading, listing and notifying watchers copy bytes instead of printing trees.
#ifndef GPUSCALE_TEST_FAKE_APISERVER_STORE_H
#define GPUSCALE_TEST_FAKE_APISERVER_STORE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define FAKE_OBJECTS_MAX   100000
#define FAKE_FIRST_VERSION 100 // as if the server had a past: older resourceVersions are gone
#define FAKE_N_KINDS       28

struct fake_kind {
	const char *group, *version, *kind, *plural; // group "" = core
	bool has_scale;                              // and pods follow it
	bool has_status;                             // as a subresource: writes to the object leave it alone, and back
	bool has_generation;                         // which counts changes of the spec
	bool is_custom;                              // a custom resource
	bool is_cluster_wide;
	bool needs_version; // of a PUT
	bool is_optional;   // not served from the beginning
};
extern const struct fake_kind fake_kinds[FAKE_N_KINDS];

// An object as JSON, without "kind" and "apiVersion". Shared.
struct fake_text {
	int refs;
	size_t len;
	char data[];
};

struct fake_object {
	struct fake_object *prev, *next; // of its kind, in order of creation
	const struct fake_kind *kind;
	uint64_t seq, version;
	cJSON *root; // without "kind" and "apiVersion"
	struct fake_text *text;
	// Of apiserver_workload.c:
	struct fake_object *owner;                 // of a pod the fake made itself
	struct fake_object *pod_prev, *pod_next;   // such a pod: of its workload
	struct fake_object *wait_prev, *wait_next; // such a pod: waits for a GPU, or to become ready
	int64_t ready_mono_ms;    // such a pod: becomes ready then; 0 = not scheduled yet; -1 = is ready
	bool is_told;             // such a pod: it says that it is not scheduled
	struct fake_object *pods; // of a workload
	int n_pods, n_ready;      // of a workload
	struct fake_object *changed_prev, *changed_next;
	bool is_changed; // of a workload: its status is to be written
	UT_hash_handle hh;
	char key[]; // "deployments/NAMESPACE/NAME"
};

enum fake_change_type { FAKE_ADDED, FAKE_MODIFIED, FAKE_DELETED };

// What watchers hear. Of a deleted object root and text are the last state, with the version of the deletion.
struct fake_change {
	enum fake_change_type type;
	const struct fake_kind *kind;
	const char *ns;
	uint64_t version;
	const cJSON *old_root, *root; // old_root: NULL for a new object
	struct fake_text *old_text, *text;
};
typedef void fake_change_fn(void *arg, const struct fake_change *change);

struct fake_store {
	struct fake_object *of_kind[FAKE_N_KINDS];
	struct fake_object *index;
	size_t n_objects;
	uint64_t version, seq;
	fake_change_fn *on_change;
	void *arg;
};

void fake_store_init(struct fake_store *s, fake_change_fn *on_change, void *arg);
void fake_store_done(struct fake_store *s);
// group and version may be NULL: any.
const struct fake_kind *fake_kind_find(const char *group, const char *version, const char *name_or_plural);
static inline size_t fake_kind_index(const struct fake_kind *kind)
{
	return (size_t)(kind - fake_kinds);
}
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
// "a=b,c=d" of spec.selector.matchLabels, else "app=NAME". malloc'ed.
char *fake_object_selector(const struct fake_object *o);

struct fake_text *fake_text_of(const cJSON *root);
struct fake_text *fake_text_keep(struct fake_text *t);
void fake_text_drop(struct fake_text *t);

// RFC 7386: target is changed in place and returned (or replaced and freed).
cJSON *fake_merge_patch(cJSON *target, const cJSON *patch);
// Sets a member, replacing one of that name.
void fake_set(cJSON *object, const char *key, cJSON *value);
// The member object of that name, made when missing.
cJSON *fake_sub(cJSON *object, const char *key);

#endif
