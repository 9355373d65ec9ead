// SPDX-License-Identifier: Apache-2.0
// What the programs of the contract suite share: objects of this process with names of its own, and asking for them.
#ifndef GPUSCALE_TEST_CONTRACT_WORLD_H
#define GPUSCALE_TEST_CONTRACT_WORLD_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "test/fake/k8s_harness.h"

#define NS         "/namespaces/default/"
#define GPUAS_ALL  "/apis/gpuscale.dev/v1alpha1/gpuautoscalers"
#define GPUAS      "/apis/gpuscale.dev/v1alpha1" NS "gpuautoscalers"
#define LEASES     "/apis/coordination.k8s.io/v1" NS "leases"
#define EVENTS     "/api/v1" NS "events"
#define HPAS       "/apis/autoscaling/v1" NS "horizontalpodautoscalers"
#define JSON       "application/json"
#define MERGE      "application/merge-patch+json"
#define STRATEGIC  "application/strategic-merge-patch+json"
#define PATH_BYTES 512
#define BODY_BYTES 2048
#define NAME_BYTES 64

struct contract {
	struct harness h;
	struct arena arena;
	char id[24];
	int n_names;
	char made[64][PATH_BYTES]; // to be deleted
	int n_made;
};

// Fails the test when it is refused.
void contract_ask_ok(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                     struct outcome *o);
// Fails the test unless it is refused with that status, and a message with that part.
void contract_ask_refused(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                          int status, const char *says);
const char *contract_path_to(char out[PATH_BYTES], const char *collection, const char *name, const char *suffix);
void contract_new_name(struct contract *c, char out[NAME_BYTES]);
// Deleted at the end.
void contract_create(struct contract *c, const char *collection, const char *name, const char *body, struct outcome *o);
void contract_create_gpua(struct contract *c, const char *name, const char *label, struct outcome *o);
// metadata.KEY of an object, as text ("" when absent).
void contract_metadata_of(const cJSON *object, const char *key, char *out, size_t size);
cJSON *contract_tree_of(const struct outcome *o);
void contract_version_of(const struct outcome *o, char out[NAME_BYTES]);
int contract_generation_of(const struct outcome *o);
int64_t contract_number_of(const char *version);
// cmocka's, of a group.
int contract_setup(void **state);
int contract_teardown(void **state);

#endif
