// SPDX-License-Identifier: Apache-2.0
// The controller manager, scheduler and kubelet of the fake, in one page: pods are made, scheduled while there are
// GPUs, become ready after a while, and the newest go first. A change costs as much as pods it concerns.
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/json/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"

static void add_condition(cJSON *conditions, const char *type, bool is_true, const char *reason, const char *message)
{
	char now[NUM_TEXT_BYTES];
	cJSON *c = cJSON_CreateObject();
	num_format_rfc3339_ms(now, (int64_t)time(NULL) * 1000);
	cJSON_AddStringToObject(c, "type", type);
	cJSON_AddStringToObject(c, "status", is_true ? "True" : "False");
	cJSON_AddStringToObject(c, "lastTransitionTime", now);
	if (reason)
		cJSON_AddStringToObject(c, "reason", reason);
	if (message)
		cJSON_AddStringToObject(c, "message", message);
	cJSON_AddItemToArray(conditions, c);
}

static void set_pod_status(struct fake_apiserver *f, struct fake_object *pod, const char *phase, bool is_ready,
                           bool is_scheduled)
{
	cJSON *root = cJSON_Duplicate(pod->root, true), *status = fake_sub(root, "status");
	fake_set(status, "phase", cJSON_CreateString(phase));
	cJSON *conditions = cJSON_CreateArray();
	add_condition(conditions, "PodScheduled", is_scheduled, is_scheduled ? NULL : "Unschedulable",
	              is_scheduled ? NULL : "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
	if (is_scheduled)
		add_condition(conditions, "Ready", is_ready, is_ready ? NULL : "ContainersNotReady", NULL);
	fake_set(status, "conditions", conditions);
	fake_store_update(&f->store, pod, root);
}

static void mark_changed(struct fake_apiserver *f, struct fake_object *workload)
{
	if (!workload->is_changed)
		DL_APPEND2(f->changed, workload, changed_prev, changed_next);
	workload->is_changed = true;
}

static void make_ready(struct fake_apiserver *f, struct fake_object *pod)
{
	pod->ready_mono_ms = -1;
	pod->owner->n_ready++;
	mark_changed(f, pod->owner);
	set_pod_status(f, pod, "Running", true, true);
}

// Gives waiting pods a GPU in order of creation, makes due ones ready, and sets the timer for the next.
static void run_pods(struct fake_apiserver *f)
{
	int64_t now = clock_mono_ms(&f->clock);
	while (f->waiting && (f->options.gpus < 0 || f->n_scheduled < f->options.gpus)) {
		struct fake_object *pod = f->waiting;
		DL_DELETE2(f->waiting, pod, wait_prev, wait_next);
		f->n_scheduled++;
		if (f->options.ready_after_ms == 0) {
			make_ready(f, pod);
			continue;
		}
		pod->ready_mono_ms = now + f->options.ready_after_ms;
		DL_APPEND2(f->starting, pod, wait_prev, wait_next);
		set_pod_status(f, pod, "Running", false, true);
	}
	// The new ones are at the end.
	for (struct fake_object *pod = f->waiting ? f->waiting->wait_prev : NULL; pod && !pod->is_told;
	     pod = pod == f->waiting ? NULL : pod->wait_prev) {
		pod->is_told = true;
		set_pod_status(f, pod, "Pending", false, false);
	}
	while (f->starting && f->starting->ready_mono_ms <= now) {
		struct fake_object *pod = f->starting;
		DL_DELETE2(f->starting, pod, wait_prev, wait_next);
		make_ready(f, pod);
	}
	if (f->starting) {
		int64_t wait_ms = f->starting->ready_mono_ms - now;
		struct timeval tv = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
		evtimer_add(f->pod_timer, &tv);
	}
}

static void write_status(struct fake_apiserver *f, struct fake_object *workload)
{
	static const char *const of_ready[] = {"readyReplicas", "availableReplicas"};
	cJSON *root = cJSON_Duplicate(workload->root, true), *status = fake_sub(root, "status");
	fake_set(status, "replicas", cJSON_CreateNumber(workload->n_pods));
	for (size_t i = 0; i < 2 && !workload->kind->is_custom; i++) // the test puts what those report
		fake_set(status, of_ready[i], cJSON_CreateNumber(workload->n_ready));
	const cJSON *generation = json_get(json_get(root, "metadata"), "generation");
	if (generation && !workload->kind->is_custom)
		fake_set(status, "observedGeneration", cJSON_Duplicate(generation, true));
	if (workload->kind->is_custom) { // its labelSelectorPath points here
		char *selector = fake_object_selector(workload);
		fake_set(status, "selector", cJSON_CreateString(selector ? selector : ""));
		cJSON_free(selector);
	}
	fake_store_update(&f->store, workload, root);
}

static void complete(struct fake_apiserver *f)
{
	run_pods(f);
	while (f->changed) {
		struct fake_object *workload = f->changed;
		DL_DELETE2(f->changed, workload, changed_prev, changed_next);
		workload->is_changed = false;
		write_status(f, workload);
	}
}

static void on_pod_timer(evutil_socket_t fd, short events, void *arg)
{
	complete(arg);
}

static void add_pod(struct fake_apiserver *f, struct fake_object *workload)
{
	char name[320];
	bool is_stateful = strcmp(workload->kind->kind, "StatefulSet") == 0;
	unsigned long long number = is_stateful ? (unsigned long long)workload->n_pods : f->store.seq + 1;
	snprintf(name, sizeof name, is_stateful ? "%s-%llu" : "%s-%05llx", fake_object_name(workload), number);
	cJSON *root = cJSON_CreateObject(), *metadata = fake_sub(root, "metadata");
	cJSON_AddStringToObject(metadata, "name", name);
	const cJSON *template = json_get(json_get(workload->root, "spec"), "template");
	const cJSON *labels = json_get(json_get(template, "metadata"), "labels"), *spec = json_get(template, "spec");
	cJSON *own = labels ? cJSON_Duplicate(labels, true) : cJSON_CreateObject();
	if (!labels)
		cJSON_AddStringToObject(own, "app", fake_object_name(workload));
	cJSON_AddItemToObject(metadata, "labels", own);
	if (spec)
		cJSON_AddItemToObject(root, "spec", cJSON_Duplicate(spec, true));
	fake_set(fake_sub(root, "status"), "phase", cJSON_CreateString("Pending"));
	struct fake_object *pod =
	        fake_store_add(&f->store, fake_kind_find("", "v1", "Pod"), fake_object_namespace(workload), root);
	if (!pod)
		return;
	pod->owner = workload;
	DL_APPEND2(workload->pods, pod, pod_prev, pod_next);
	DL_APPEND2(f->waiting, pod, wait_prev, wait_next);
	workload->n_pods++;
}

void fake_workload_remove_pod(struct fake_apiserver *f, struct fake_object *pod)
{
	struct fake_object *workload = pod->owner;
	if (pod->ready_mono_ms == 0)
		DL_DELETE2(f->waiting, pod, wait_prev, wait_next);
	else if (pod->ready_mono_ms > 0)
		DL_DELETE2(f->starting, pod, wait_prev, wait_next);
	f->n_scheduled -= pod->ready_mono_ms != 0;
	DL_DELETE2(workload->pods, pod, pod_prev, pod_next);
	workload->n_pods--;
	workload->n_ready -= pod->ready_mono_ms < 0;
	mark_changed(f, workload);
	fake_store_remove(&f->store, pod);
}

// Not scheduled first, then not ready, then the newest: as the ReplicaSet controller chooses. A StatefulSet's newest
// is its highest ordinal.
static struct fake_object *choose_victim(const struct fake_object *workload)
{
	struct fake_object *o, *best = NULL;
	bool is_stateful = strcmp(workload->kind->kind, "StatefulSet") == 0;
	int best_rank = 0;
	DL_FOREACH2(workload->pods, o, pod_next)
	{
		int rank = is_stateful ? 1 : o->ready_mono_ms == 0 ? 3 : o->ready_mono_ms > 0 ? 2 : 1;
		if (rank >= best_rank) {
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
	mark_changed(f, workload); // a new one has no status yet
	if (f->options.no_pods) {
		workload->n_pods = workload->n_ready = want;
		complete(f);
		return;
	}
	while (workload->n_pods < want && f->store.n_objects < FAKE_OBJECTS_MAX)
		add_pod(f, workload);
	while (workload->n_pods > want)
		fake_workload_remove_pod(f, choose_victim(workload));
	complete(f);
}

void fake_workload_removed(struct fake_apiserver *f, struct fake_object *workload)
{
	while (workload->pods)
		fake_workload_remove_pod(f, workload->pods);
	if (workload->is_changed)
		DL_DELETE2(f->changed, workload, changed_prev, changed_next);
	fake_store_remove(&f->store, workload);
	complete(f);
}
