// SPDX-License-Identifier: Apache-2.0
// Converts objects of other autoscalers to GPUAutoscalers: HorizontalPodAutoscaler, ScaledObject (KEDA) and
// WatermarkPodAutoscaler. Each converter fills a struct conversion, which convert_write() prints; settings that were
// not converted become comments in the corresponding place.
#ifndef GPUSCALE_CLI_CONVERT_H
#define GPUSCALE_CLI_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;
struct err;

#define CONVERT_SIGNALS_MAX   16
#define CONVERT_SCHEDULES_MAX 32
#define CONVERT_NOTES_MAX     64
#define CONVERT_TEXT_MAX      (256 * 1024)

// Texts live in the arena or in the tree of the source; NULL = omitted.
struct conversion_signal {
	const char *name, *query, *source;
	const char *target_type, *target_value;         // a target, or
	const char *high, *low, *tolerance, *algorithm; // watermarks
	const char *sustain_up, *sustain_down;
	const char *note; // above the signal
};

struct conversion_schedule {
	const char *name, *start, *end, *time_zone, *min_replicas;
};

struct conversion {
	struct arena *arena;
	const char *kind, *api_version; // of the source; for items of a typed list, from the list
	const char *from;               // "HorizontalPodAutoscaler llama (autoscaling/v2)"
	const char *name, *namespace_name;
	const char *target_api_version, *target_kind, *target_name;
	const char *min_replicas, *max_replicas, *interval, *replica_multiple;
	bool dry_run, paused;
	struct conversion_signal signals[CONVERT_SIGNALS_MAX];
	size_t n_signals;
	struct conversion_schedule schedules[CONVERT_SCHEDULES_MAX];
	size_t n_schedules;
	const struct doc_node *behavior;                             // copied from the HPA; or
	const char *up_percent, *down_percent, *rate_period_seconds; // WPA: one rate per direction
	const char *cooldown_up, *cooldown_down;
	const char *idle_after, *idle_replicas, *idle_initial, *idle_signal, *idle_above;
	const char *fallback_threshold, *fallback_replicas, *fallback_behavior;
	const char *min_available_percent;
	const char *notes[CONVERT_NOTES_MAX]; // settings that were not converted or need attention
	size_t n_notes;
	bool is_full; // there are more notes than fit; the output says so
	bool is_default_noted;
};

// Formats into the arena. Exits the process if memory is exhausted; only commands call it.
const char *convert_text(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void convert_note(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Adds a signal with a unique name. Returns NULL, and adds a note, if there are too many.
struct conversion_signal *convert_add_signal(struct conversion *c, const char *name);

// The text of the scalar at a path below `node`, or `fallback`; quantities and numbers as written.
const char *convert_get(const struct doc_node *node, const char *key, const char *fallback);
// Converts "45" to "45s"; NULL stays NULL.
const char *convert_seconds(struct conversion *c, const char *seconds);
// Puts `text` in double quotes, as in PromQL.
const char *convert_quoted(struct conversion *c, const char *text);
// Converts a selector (matchLabels, matchExpressions) to label matchers in PromQL, each preceded by a comma:
// ,a="b",c=~"d|e". Characters that Prometheus does not allow in label names become '_', as in exporters.
const char *convert_matchers(struct conversion *c, const struct doc_node *selector);
// Formats name{matchers} or {__name__="odd name",matchers}. `matchers` comes from convert_matchers().
const char *convert_selector(struct conversion *c, const char *metric, const char *matchers);
// The namespace of the object, for a query; "default", with a note, if it has none.
const char *convert_namespace(struct conversion *c);
// "KIND NAME (apiVersion)", for the comment that names the source of a policy.
const char *convert_origin(struct conversion *c);
// Matchers for the pods of the target, preceded by a comma, with the labels namespace and pod under a prefix ("" or
// "exported_").
const char *convert_pods(struct conversion *c, const char *prefix);
// Adds a signal for `resource` (cpu, memory) of the pods of the target: the utilization in percent of the requests,
// or a total that is compared with an average. Uses the metric names of cAdvisor and kube-state-metrics. `container`
// NULL = all.
void convert_resource(struct conversion *c, const char *resource, const char *container, const char *utilization,
                      const char *average_value);
// Converts scaleTargetRef; the default is an apps/v1 Deployment.
void convert_target(struct conversion *c, const struct doc_node *spec);

// Parses a whole number without a sign. False if `text` is NULL or invalid.
bool convert_whole(const char *text, int64_t *ret_value);

// The converters. `root` is the object; its kind and apiVersion are in `c`. False if `c` is of another kind.
bool convert_hpa(struct conversion *c, const struct doc_node *root);
bool convert_keda(struct conversion *c, const struct doc_node *root);
bool convert_wpa(struct conversion *c, const struct doc_node *root);

// Fills `c` from one object. `list` is the list that contains `root`, or NULL: items of `kubectl get -o yaml` have
// their kind, items of a typed list (HorizontalPodAutoscalerList) take it from the list. Everything in `c` lives in
// `a` or in the tree. Returns -1 and fills `e` with a message that starts with the line: ERR_UNSUPPORTED for another
// kind, ERR_INPUT for a text with a NUL.
int convert_object(struct conversion *c, struct arena *a, const struct doc_node *root, const struct doc_node *list,
                   struct err *e);

// Writes `c` as one YAML document, starting with "---". Whatever its texts contain, the result is one document with
// these texts.
void convert_write(struct buf *out, const struct conversion *c);

#endif
