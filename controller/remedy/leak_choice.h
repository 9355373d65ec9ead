// SPDX-License-Identifier: Apache-2.0
// Whether a pod whose memory leaks is replaced now. Pure, so that every case is a row of a test.
#ifndef GPUSCALE_CONTROLLER_REMEDY_LEAK_CHOICE_H
#define GPUSCALE_CONTROLLER_REMEDY_LEAK_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/client/scale.h"

#define LEAK_OWNER_KIND_BYTES 64
#define LEAK_OWNER_NAME_BYTES 254

// The controller of a pod.
struct leak_owner {
	char kind[LEAK_OWNER_KIND_BYTES], name[LEAK_OWNER_NAME_BYTES]; // "": none
};

enum leak_choice {
	LEAK_REPLACE,
	LEAK_NOT_A_REPLICA, // not of a ReplicaSet or StatefulSet, so evicting it loses work
	LEAK_PINNED,        // is being deleted already
	LEAK_CHECKPOINT,    // waits for checkpoints
	LEAK_WITHOUT_GPUS,
	LEAK_INCOMPLETE, // another replica is missing, not Ready or being deleted
	LEAK_CHOICE__COUNT
};
// Returns a sentence about the choice.
const char *leak_choice_text(enum leak_choice choice);

// What the API server has.
struct leak_facts {
	struct leak_owner owner;
	bool uses_gpus, is_pinned, waits_for_checkpoint;
	int32_t replicas;         // spec.replicas of the owner
	struct pod_counts counts; // of the pods of the owner
};

// Returns LEAK_REPLACE only while every replica is Ready, so that replicas are replaced one after the other.
enum leak_choice leak_choose(const struct leak_facts *facts);
// The same before the owner is read: returns LEAK_REPLACE if only the state of the replicas can still prevent it.
enum leak_choice leak_choose_pod(const struct leak_facts *facts);

// Reads the controller of the first pod of a PodList. Invalid or missing: both names are "".
void leak_owner_read(const char *json, size_t len, struct leak_owner *ret_owner);

#endif
