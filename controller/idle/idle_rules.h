// SPDX-License-Identifier: Apache-2.0
// Rules about idle GPUs (GPUIdleRule), from objects and files. Each is evaluated at its interval, one at a time:
// queries, then the workloads that may be scaled, then the status. Rules from files only report, because only the
// status of an object keeps a grace period over a restart.
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_RULES_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct conflict_watch;
struct err;
struct event_base;
struct event_recorder;
struct idle_rule_set;
struct idle_answer;
struct idle_rules;
struct idle_slot;
struct k8s_client;
struct log;
struct price_book;
struct scale_ref;
struct status_writer;

#define IDLE_CHECK_MS         1000 // between two looks for a rule that is due
#define IDLE_RULES_SHOWN      256  // by /metrics
#define IDLE_STATUS_BYTES_MAX (1024 * 1024)

struct idle_rules_options { // owns nothing
	struct event_base *loop;
	const struct clock *clock;
	struct k8s_client *k8s;           // NULL: only rules from files
	struct status_writer *writer;     // NULL: a dry run
	struct event_recorder *events;    // likewise
	struct conflict_watch *conflicts; // NULL: not watched, so that nothing is scaled
	struct log *log;
	const char *matchers;         // of the series that are believed (promql/confine.h); NULL: nothing is scaled
	const char *own_namespace;    // protected, as kube-system is, unless a rule names it; may be NULL
	int64_t (*now_ms)(void *arg); // the wall clock, after idle_rules_clock_was_set() if it was
	// Asks a source as of now_ms (wall clock). Calls idle_rules_answer() once, maybe before it returns.
	void (*ask)(void *arg, const char *source, const char *query, int64_t now_ms, struct idle_slot *slot);
	void (*release)(void *kept); // of an answer
	// Returns the prices; NULL: out of memory.
	const struct price_book *(*prices)(void *arg);
	// Returns whether this process evaluates the rules of objects now.
	bool (*may_act)(void *arg);
	// Returns the name of a policy for this target, or of one of its namespace whose target is not known, in
	// `text`; NULL: none.
	const char *(*find_policy)(void *arg, const struct scale_ref *ref, char *text, size_t size);
	void *arg;
};

// Starts to watch the objects, when there is a client. Returns NULL and *e when memory is exhausted.
struct idle_rules *idle_rules_new(const struct idle_rules_options *options, struct err *e);
// Stops the watch and every further request. Call before the client and the conflict watch are freed.
void idle_rules_disconnect(struct idle_rules *r);
// No request may be in flight. NULL is fine.
void idle_rules_free(struct idle_rules *r);
// The answer to a question of idle_rules_options.ask. Its series are used until `kept` is released.
void idle_rules_answer(struct idle_slot *slot, const struct idle_answer *answer);
// The wall clock was set by step_ms: moves all stamps by as much.
void idle_rules_clock_was_set(struct idle_rules *r, int64_t step_ms);
// Replaces the rules from files, and takes over the contents of `set`.
void idle_rules_put_files(struct idle_rules *r, struct idle_rule_set *set);

struct idle_summary {
	const char *name;
	double gpus, per_hour, unallocated;
	size_t n_workloads, n_scaled;
	bool is_evaluated; // else the numbers are not known
};
// Fills ret with at most `max` rules; returns how many. The names are valid until the loop runs.
size_t idle_rules_summarize(const struct idle_rules *r, struct idle_summary *ret, size_t max);

#endif
