// SPDX-License-Identifier: Apache-2.0
// The controller manager, scheduler and kubelet of the fake, in one page: pods are made, scheduled while there are
// GPUs, become ready after a while, and the newest go first.
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/json_read.h"
#include "test/fake/apiserver_private.h"

static void set_pod_status(struct fake_apiserver *f, struct fake_object *pod, const char *phase, bool is_ready,
                           bool is_scheduled)
{
	cJSON *root = cJSON_Duplicate(pod->root, true), *status = fake_sub(root, "status");
	fake_set(status, "phase", cJSON_CreateString(phase));
	cJSON *conditions = cJSON_CreateArray();
	const char *const types[] = {"PodScheduled", "Ready"};
	for (int i = 0; i < 2; i++) {
		cJSON *c = cJSON_CreateObject();
		bool is_true = i == 0 ? is_scheduled : is_ready;
		cJSON_AddStringToObject(c, "type", types[i]);
		cJSON_AddStringToObject(c, "status", is_true ? "True" : "False");
		if (i == 0 && !is_scheduled) {
			cJSON_AddStringToObject(c, "reason", "Unschedulable");
			cJSON_AddStringToObject(c, "message",
			                        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
		}
		cJSON_AddItemToArray(conditions, c);
	}
	fake_set(status, "conditions", conditions);
	fake_store_update(&f->store, pod, root);
}

// Gives waiting pods a GPU in order of creation, makes due ones ready, and sets the timer for the next.
static void run_pods(struct fake_apiserver *f)
{
	int64_t now = clock_mono_ms(&f->clock), next = 0;
	int used = 0;
	struct fake_object *o;
	DL_FOREACH(f->store.objects, o)
	{
		used += o->owner && o->ready_mono_ms != 0;
	}
	DL_FOREACH(f->store.objects, o)
	{
		if (!o->owner || o->ready_mono_ms < 0)
			continue;
		if (o->ready_mono_ms == 0) {
			if (f->options.gpus >= 0 && used >= f->options.gpus) {
				set_pod_status(f, o, "Pending", false, false);
				continue;
			}
			used++;
			o->ready_mono_ms = now + f->options.ready_after_ms;
			set_pod_status(f, o, "Running", false, true);
		}
		if (o->ready_mono_ms <= now) {
			o->ready_mono_ms = -1;
			o->owner->n_ready++;
			o->owner->is_changed = true;
			set_pod_status(f, o, "Running", true, true);
		} else if (next == 0 || o->ready_mono_ms < next) {
			next = o->ready_mono_ms;
		}
	}
	if (next) {
		int64_t wait_ms = next - now;
		struct timeval tv = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
		evtimer_add(f->pod_timer, &tv);
	}
}

static void write_status(struct fake_apiserver *f, struct fake_object *workload)
{
	cJSON *root = cJSON_Duplicate(workload->root, true), *status = fake_sub(root, "status");
	fake_set(status, "replicas", cJSON_CreateNumber(workload->n_pods));
	fake_set(status, "readyReplicas", cJSON_CreateNumber(workload->n_ready));
	if (strcmp(workload->kind->kind, "Widget") == 0) { // a custom resource's labelSelectorPath points here
		char *selector = fake_object_selector(workload);
		fake_set(status, "selector", cJSON_CreateString(selector ? selector : ""));
		cJSON_free(selector);
	}
	fake_store_update(&f->store, workload, root);
}

static void settle(struct fake_apiserver *f)
{
	run_pods(f);
	struct fake_object *o;
	DL_FOREACH(f->store.objects, o)
	{
		if (o->is_changed)
			write_status(f, o);
		o->is_changed = false;
	}
}

static void on_pod_timer(evutil_socket_t fd, short events, void *arg)
{
	settle(arg);
}

static void add_pod(struct fake_apiserver *f, struct fake_object *workload)
{
	char name[320];
	bool is_stateful = strcmp(workload->kind->kind, "StatefulSet") == 0;
	unsigned long long number = is_stateful ? (unsigned long long)workload->n_pods : f->store.seq + 1;
	snprintf(name, sizeof name, is_stateful ? "%s-%llu" : "%s-%05llx", fake_object_name(workload), number);
	cJSON *root = cJSON_CreateObject(), *metadata = fake_sub(root, "metadata");
	cJSON_AddStringToObject(metadata, "name", name);
	const cJSON *labels =
	        json_get(json_get(json_get(json_get(workload->root, "spec"), "template"), "metadata"), "labels");
	cJSON *own = labels ? cJSON_Duplicate(labels, true) : cJSON_CreateObject();
	if (!labels)
		cJSON_AddStringToObject(own, "app", fake_object_name(workload));
	cJSON_AddItemToObject(metadata, "labels", own);
	fake_set(fake_sub(root, "status"), "phase", cJSON_CreateString("Pending"));
	struct fake_object *pod =
	        fake_store_add(&f->store, fake_kind_find("", "v1", "Pod"), fake_object_namespace(workload), root);
	if (!pod)
		return;
	pod->owner = workload;
	workload->n_pods++;
	workload->is_changed = true;
}

void fake_workload_remove_pod(struct fake_apiserver *f, struct fake_object *pod)
{
	pod->owner->n_pods--;
	pod->owner->n_ready -= pod->ready_mono_ms < 0;
	pod->owner->is_changed = true;
	fake_store_remove(&f->store, pod);
}

// Not scheduled first, then not ready, then the newest: as the ReplicaSet controller chooses. A StatefulSet's newest
// is its highest ordinal.
static struct fake_object *choose_victim(const struct fake_apiserver *f, const struct fake_object *workload)
{
	struct fake_object *o, *best = NULL;
	bool is_stateful = strcmp(workload->kind->kind, "StatefulSet") == 0;
	int best_rank = 0;
	DL_FOREACH(f->store.objects, o)
	{
		int rank = is_stateful ? 1 : o->ready_mono_ms == 0 ? 3 : o->ready_mono_ms > 0 ? 2 : 1;
		if (o->owner == workload && rank >= best_rank) {
			best = o;
			best_rank = rank;
		}
	}
	return best;
}

void fake_workload_follow(struct fake_apiserver *f, struct fake_object *workload)
{
	if (!f->pod_timer)
		f->pod_timer = evtimer_new(f->options.loop, on_pod_timer, f);
	int want = fake_object_replicas(workload);
	workload->is_changed = true; // a new one has no status yet
	while (workload->n_pods < want && f->store.n_objects < FAKE_OBJECTS_MAX)
		add_pod(f, workload);
	while (workload->n_pods > want)
		fake_workload_remove_pod(f, choose_victim(f, workload));
	settle(f);
}

void fake_workload_removed(struct fake_apiserver *f, struct fake_object *workload)
{
	struct fake_object *o, *next;
	DL_FOREACH_SAFE(f->store.objects, o, next)
	{
		if (o->owner == workload)
			fake_store_remove(&f->store, o);
	}
	fake_store_remove(&f->store, workload);
	settle(f);
}
