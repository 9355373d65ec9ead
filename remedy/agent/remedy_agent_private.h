// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the remediation agent.
#ifndef GPUSCALE_REMEDY_AGENT_REMEDY_AGENT_PRIVATE_H
#define GPUSCALE_REMEDY_AGENT_REMEDY_AGENT_PRIVATE_H

#include <stddef.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "k8s/cache/informer.h"
#include "remedy/agent/health_feed.h"
#include "remedy/agent/node_view.h"
#include "remedy/agent/remedy_agent.h"
#include "remedy/plan/remedy_plan.h"
#include "remedy/plan/remedy_state.h"
#include "runtime/shard/clock_step_detector.h"

#define AGENT_ACTIONS_MAX  1024             // actions in one tick; the next tick continues
#define AGENT_PODS_OF_MAX  64               // nodes whose pods are listed in one tick; the next tick continues
#define AGENT_REFUSED_MAX  256              // pods whose last eviction was refused
#define AGENT_REFRESH_MS   (2 * 60 * 1000)  // the annotation of a node that is out of service is not older
#define AGENT_AFTER_ACT_MS 1000             // the next tick, after a node was taken out of service
#define AGENT_RETRY_MS     (10 * 60 * 1000) // after a PATCH of a pod failed
#define AGENT_CONTRADICTED 8                // ticks until it is reported: an exporter that restarts is listed twice

struct device_rules;
struct http_server;
struct http_site;

enum agent_phase { AGENT_IDLE, AGENT_READS, AGENT_WRITES, AGENT_EVICTS };

// The write of one node in a tick.
struct agent_write {
	struct remedy_agent *agent;
	int32_t node; // index in the fleet
	uint64_t record_hash;
	bool is_done; // the API server accepted it
};

struct remedy_agent {
	struct remedy_agent_options options;
	struct k8s_client *k8s;
	struct event_base *loop;
	struct remedy fleet;
	void *block;            // memory of the fleet
	struct informer *nodes; // node_store.c; NULL: closed
	struct informer_item all_nodes;
	struct device_rules *devices; // remedy_agent_rules.c; NULL: no DeviceTaintRules
	struct health_feed *feed;
	struct event_recorder *recorder; // recorder of Events
	struct http_site *site;          // of the endpoints
	struct http_server *server;      // NULL: none
	struct event timer, *on_term, *on_int;
	bool is_leader, is_stopping, wants_reset, has_ticked, is_quick;
	struct clock_step_detector clock_step_detector;

	// The tick in progress.
	enum agent_phase phase;
	int n_open; // requests
	struct err feed_error;
	bool has_feed;
	int32_t next_list; // index in the fleet: where the next tick continues to list pods
	struct arena arena;
	struct remedy_action *actions;
	size_t n_actions;
	struct agent_write *writes;
	size_t n_writes;

	// Ends a request, and proceeds when it was the last one of the phase (remedy_agent.c); the files below it call
	// it at each end.
	void (*step)(struct remedy_agent *a);

	uint64_t refused[AGENT_REFUSED_MAX]; // keys of pods
	size_t n_refused;
	bool is_watch_broken, is_feed_broken, is_write_broken, is_list_broken, names_unknown_nodes;
	bool is_device_watch_broken, is_rule_broken, is_deadline_broken, is_trimmed;
	int64_t deadlines_after_ms; // no PATCH of a pod before

	// Counters since the start.
	uint64_t n_ticks, n_bad_ticks, n_done[REMEDY_KIND__COUNT], n_failed[REMEDY_KIND__COUNT];
	uint64_t n_holds[REMEDY_REASON__COUNT], n_refusals;
	int64_t ticked_ms;
	struct health_feed_result seen; // result of the last round with data
};

// ---- node_store.c: the nodes of the cluster, kept up to date by a watch ----
// A node. The store owns the record until the node is deleted; the caller writes only the last members.
struct node_record {
	struct informer_item item;
	struct node_view view;
	// Written by the caller. is_known: the planner has the node, from the annotation with this hash. is_bad: the
	// annotation is not a record.
	bool is_known, is_bad;
	uint64_t record_hash;
	int64_t written_ms;    // when the annotation was last written
	int contradicted;      // ticks in a row
	bool has_devices;      // ResourceSlices list GPUs of the node
	struct arena pod_text; // memory of pods[]
	struct node_pod *pods; // pods in the last list; NULL = none
	size_t n_pods;
	bool has_new_pods; // since the planner last got them
};
_Static_assert(offsetof(struct node_record, item) == 0, "an item is its node");
// Starts the watch. Returns -1 and *e on failure.
int node_store_open(struct remedy_agent *a, struct err *e);
// Call before the client is freed. Without node_store_open() it does nothing.
void node_store_close(struct remedy_agent *a);

const char *node_store_name(const struct node_record *n);
// Returns NULL for a node that the cluster lacks, and after node_store_close().
struct node_record *node_store_find(const struct remedy_agent *a, const char *name);
// Iterates over all nodes: NULL starts, and NULL ends.
struct node_record *node_store_next(const struct remedy_agent *a, const struct node_record *n);
// Takes over the Node that the API server returned for a write.
void node_store_take(struct remedy_agent *a, struct node_record *n, const char *json, size_t len);
// Returns whether the list of nodes is complete and changes are being reported.
bool node_store_is_synced(const struct remedy_agent *a);
// Makes the planner forget a node that was deleted.
void node_store_forget(struct remedy_agent *a, const struct node_record *n);

// ---- remedy_agent_write.c ----
// Sends the PATCHes of the nodes whose record changed; each is treated as a request of the phase.
void agent_write_nodes(struct remedy_agent *a);
// Sends the evictions whose node was written.
void agent_evict_pods(struct remedy_agent *a);
// Annotates the pods that move at a checkpoint with the deadline.
void agent_write_deadlines(struct remedy_agent *a);
// When the pod, which uses these GPUs of the node, may be evicted; 0: at once. *ret_is_fixed: the time does not change
// any more, because a GPU that the pod has to leave is out of service.
int64_t agent_pod_until(const struct remedy_agent *a, const struct remedy_node *n, const struct node_pod *p,
                        uint32_t gpus, bool *ret_is_fixed);
bool agent_is_refused(const struct remedy_agent *a, uint64_t key);
// Sends `body` to `path` as a request of the phase, unless one of the two failed, and frees both. What cannot be sent
// is tried again in a later tick.
void agent_send(struct remedy_agent *a, const char *method, const char *content_type, struct buf *path,
                struct buf *body, http_done_fn *done, void *arg);

// ---- remedy_agent_rules.c ----
// Starts the watches of devices and rules. Returns -1 and *e on failure.
int agent_rules_open(struct remedy_agent *a, struct err *e);
// Call before the client is freed. Without agent_rules_open() it does nothing.
void agent_rules_close(struct remedy_agent *a);
// Notes in the store which nodes have devices with a UUID in their ResourceSlices.
void agent_rules_note_devices(struct remedy_agent *a);
// Returns whether the DeviceTaintRules may be relied on in this tick, or will not be known soon.
bool agent_rules_are_ready(const struct remedy_agent *a);
// Appends the GPUs of the node that the agent has tainted to uuids[0..n); returns their new number, at most `max`.
size_t agent_rules_of(const struct remedy_agent *a, const char *node, const char **uuids, size_t n, size_t max);
// Notes, for each node with faults, whether its GPUs can be tainted one by one.
void agent_rules_note_served(struct remedy_agent *a);
// Creates and deletes rules until they are as the annotations record; each is treated as a request of the phase.
void agent_write_rules(struct remedy_agent *a);

// ---- remedy_agent_report.c ----
// Reports an action that was carried out, or in a dry run would have been: Event, log, metrics.
void agent_report_action(struct remedy_agent *a, const struct remedy_action *action);
// Reports that an action could not be carried out.
void agent_report_failure(struct remedy_agent *a, const struct remedy_action *action, const struct err *error);
// Reports why nothing is done about a node.
void agent_report_hold(struct remedy_agent *a, const char *node, enum remedy_reason reason, const char *details);
// Listens on options.listen. Returns -1 and *e on failure.
int agent_pages_open(struct remedy_agent *a, struct err *e);
// Logs a condition when it starts (error) and when it ends (NULL).
static inline void agent_report_edge(struct remedy_agent *a, bool *condition, const char *started, const char *ended,
                                     const struct err *error)
{
	if (*condition == (error != NULL))
		return;
	*condition = error != NULL;
	if (error)
		LOG(a->options.log, LOG_ERROR, started, LOG_S("kind", err_kind_info(error->kind)->name),
		    LOG_S("err", error->msg));
	else
		LOG(a->options.log, LOG_INFO, ended, LOG_B("acts", a->options.acts));
}

#endif
