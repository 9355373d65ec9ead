// SPDX-License-Identifier: Apache-2.0
#include "controller/remedy/leak_choice.h"

#include <string.h>

#include "base/json/json_span.h"

static const char *const texts[LEAK_CHOICE__COUNT] = {
        [LEAK_REPLACE] = "every replica is Ready",
        [LEAK_NOT_A_REPLICA] = "the pod is not a replica of a Deployment, ReplicaSet or StatefulSet",
        [LEAK_PINNED] = "the pod is being deleted",
        [LEAK_CHECKPOINT] = "the pod has the annotation gpuscale.dev/move-at-checkpoint",
        [LEAK_WITHOUT_GPUS] = "the pod requests no GPU",
        [LEAK_INCOMPLETE] = "not every replica is Ready",
};

const char *leak_choice_text(enum leak_choice choice)
{
	return texts[choice];
}

enum leak_choice leak_choose_pod(const struct leak_facts *f)
{
	if (strcmp(f->owner.kind, "ReplicaSet") != 0 && strcmp(f->owner.kind, "StatefulSet") != 0)
		return LEAK_NOT_A_REPLICA;
	if (f->is_pinned)
		return LEAK_PINNED;
	if (f->waits_for_checkpoint)
		return LEAK_CHECKPOINT;
	return f->uses_gpus ? LEAK_REPLACE : LEAK_WITHOUT_GPUS;
}

enum leak_choice leak_choose(const struct leak_facts *f)
{
	enum leak_choice choice = leak_choose_pod(f);
	if (choice != LEAK_REPLACE)
		return choice;
	// A pod that is gone and not replaced yet is missing in `ready`.
	bool is_complete = f->replicas > 0 && f->counts.ready == f->replicas && f->counts.terminating == 0;
	return is_complete ? LEAK_REPLACE : LEAK_INCOMPLETE;
}

void leak_owner_read(const char *json, size_t len, struct leak_owner *ret_owner)
{
	static const char *const path[] = {"metadata", "ownerReferences", NULL};
	struct json_span_iter pods = {.rest = json_span_get((struct json_span){json, len}, "items")};
	*ret_owner = (struct leak_owner){0};
	if (!json_span_next(&pods))
		return;
	struct json_span_iter owners = {.rest = json_span_path(pods.value, path)};
	while (json_span_next(&owners)) {
		if (json_span_kind(json_span_get(owners.value, "controller")) != 't')
			continue;
		if (json_span_text(json_span_get(owners.value, "kind"), ret_owner->kind, sizeof ret_owner->kind) <= 0 ||
		    json_span_text(json_span_get(owners.value, "name"), ret_owner->name, sizeof ret_owner->name) <= 0)
			*ret_owner = (struct leak_owner){0};
		return;
	}
}
