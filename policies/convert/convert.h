// SPDX-License-Identifier: Apache-2.0
// Converts objects of other autoscalers to GPUAutoscalers: HorizontalPodAutoscaler, ScaledObject (KEDA),
// WatermarkPodAutoscaler, PodAutoscaler (AIBrix) and DatadogPodAutoscaler. Each converter fills a struct conversion,
// which convert_write() prints; settings that were not converted become comments in the corresponding place.
#ifndef GPUSCALE_POLICIES_CONVERT_CONVERT_H
#define GPUSCALE_POLICIES_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"

struct arena;
struct buf;
struct doc_node;
struct err;

#define CONVERT_SIGNALS_MAX   16
#define CONVERT_SCHEDULES_MAX 32
#define CONVERT_NOTES_MAX     64
#define CONVERT_TEXT_MAX      (256 * 1024)
#define CONVERT_NAME_MAX      56 // of a signal, before a number that makes it unique

// Texts live in the arena or in the tree of the source; NULL = omitted.
struct conversion_signal {
	const char *name, *query, *source, *formula;
	bool is_input;                                  // of a formula: it has neither
	const char *target_type, *target_value;         // a target, or
	const char *high, *low, *tolerance, *algorithm; // watermarks
	const char *sustain_up, *sustain_down;
	const char *on_missing, *window_seconds;
	const char *note;          // above the signal
	const char *external_name; // the name that KEDA gives the metric of the trigger; NULL: none
};

struct conversion_schedule {
	const char *name, *start, *end, *time_zone, *min_replicas, *max_replicas;
	bool is_max; // of several open ones, the largest counts
};

// The server of a trigger.
struct convert_server {
	const char *url;
	const char *authentication; // name of a TriggerAuthentication; NULL: none
	const char *modes;          // with one: its authModes; "": none
};

// For a conversion whose result is used at once instead of being read by a person.
struct convert_live {
	// Returns the name of the source for the server of a trigger. NULL: the object cannot be converted, or not yet;
	// then *ret_why says it, unless the reason is that there is no source of that URL. Texts are valid until the
	// next call. *ret_why is NULL before.
	const char *(*source_of)(void *arg, const struct convert_server *server, const char **ret_why);
	void *arg;
};

struct conversion {
	struct arena *arena;
	const struct convert_live *live; // NULL: a person reads the result. Not owned
	const char *kind, *api_version;  // of the source; for items of a typed list, from the list
	const char *from;                // "HorizontalPodAutoscaler llama (autoscaling/v2)"
	const char *name, *namespace_name;
	const struct doc_node *annotations; // NULL = none
	const char *target_api_version, *target_kind, *target_name;
	const char *min_replicas, *max_replicas, *interval, *replica_multiple;
	bool dry_run, paused;
	const char *paused_replicas; // a pause keeps the target at this number; NULL: no such pause
	struct conversion_signal signals[CONVERT_SIGNALS_MAX];
	size_t n_signals;
	struct conversion_schedule schedules[CONVERT_SCHEDULES_MAX];
	size_t n_schedules;
	// The triggers of type cron, which convert_schedules() makes the schedules of: at least min_replicas from each
	// start to the next end.
	struct policy_schedule windows[CONVERT_SCHEDULES_MAX];
	size_t n_windows;
	const struct doc_node *behavior;       // copied from the HPA; or
	const char *scale_up, *scale_down;     // the text of each direction
	bool is_up_disabled, is_down_disabled; // selectPolicy: Disabled, whatever the direction says
	const char *combine;
	const char *cooldown_up, *cooldown_down;
	const char *idle_after, *idle_replicas, *idle_initial;
	struct {
		const char *signal, *above;
	} activations[CONVERT_SIGNALS_MAX]; // the target is needed while one of these is above its number
	size_t n_activations;
	const char *fallback_threshold, *fallback_replicas, *fallback_behavior;
	const char *panic_signal, *panic_window, *panic_threshold;
	const char *min_available_percent;
	const char *combine_note, *schedules_note, *idle_note, *fallback_note; // above the field
	const char *notes[CONVERT_NOTES_MAX]; // settings that were not converted or need attention
	size_t n_notes;
	bool is_full; // there are more notes than fit; the output says so
	bool is_default_noted;
	bool is_incomplete; // what decides about the scale could not be converted; a note has it
	bool is_too_large;  // a text did not fit, and is "" instead
	const char *lost;   // the first of the notes about that; NULL: none
};

// Formats into the arena. Returns "" and sets is_too_large if the text does not fit.
const char *convert_text(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void convert_note(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Adds a note about a setting without which the result decides otherwise: sets is_incomplete.
void convert_lost(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Returns the number of notes of `c`, at the fields and at the top.
size_t convert_count_notes(const struct conversion *c);
// Adds a signal with a unique name. Returns NULL, and adds a note, if there are too many.
struct conversion_signal *convert_add_signal(struct conversion *c, const char *name);

// The text of the scalar at a path below `node`, or `fallback`; quantities and numbers as written.
const char *convert_get(const struct doc_node *node, const char *key, const char *fallback);
// Converts "45" to "45s"; NULL stays NULL.
const char *convert_seconds(struct conversion *c, const char *seconds);
// Parses `text` as Go's strconv.ParseBool: 1 or 0; -1 for any other text.
int convert_bool(const char *text);
// Converts a selector (matchLabels, matchExpressions) to label matchers in PromQL, each preceded by a comma:
// ,a="b",c=~"d|e". Characters that Prometheus does not allow in label names become '_', as in exporters.
const char *convert_matchers(struct conversion *c, const struct doc_node *selector);
// Formats name{matchers} or {__name__="odd name",matchers}. `matchers` comes from convert_matchers().
const char *convert_selector(struct conversion *c, const char *metric, const char *matchers);
// The namespace of the object, for a query; "default", with a note, if it has none.
const char *convert_namespace(struct conversion *c);
// Adds the matcher LABEL="value" in front of `matchers`, unless they have one for the label: two for one label would
// exclude each other.
const char *convert_matcher(struct conversion *c, const char *label, const char *value, const char *matchers);
// Adds matchers for the pods of the target's selector in front of `matchers`: the labels namespace and pod under a
// prefix ("" or "exported_"). For kinds whose pods have no known pattern of names, the policy ignores the series of
// other pods.
const char *convert_pods(struct conversion *c, const char *prefix, const char *matchers);
// Adds a signal for `resource` (cpu, memory) of each pod of the target: the utilization in percent of its requests, or
// its usage. Uses the metric names of cAdvisor and kube-state-metrics. `container` NULL = all.
void convert_resource(struct conversion *c, const char *resource, const char *container, const char *utilization,
                      const char *average_value);
// Lets the target be needed while the signal is above the number.
void convert_activation(struct conversion *c, const char *signal, const char *above);
// Adds a note if `c` has no behavior: the HPA's default limit of a scale-up differs from that of a policy.
void convert_note_growth(struct conversion *c);
// Adds a window that a trigger of type cron describes. robfig/cron: the fields, `?`, `TZ=` and `CRON_TZ=`. A note if an
// expression is invalid.
void convert_window(struct conversion *c, const char *name, const struct doc_node *meta, int32_t replicas);
// Makes the schedules of the windows: at any time, the largest of the open ones. Splits windows that overlap. A note
// where the schedules of a policy cannot do this.
void convert_schedules(struct conversion *c);

// Parses a whole number without a sign. False if `text` is NULL or invalid.
bool convert_whole(const char *text, int64_t *ret_value);

// The converters. `root` is the object; its names, target and annotations, and minReplicas and maxReplicas of its spec,
// are in `c`.
typedef void convert_fn(struct conversion *c, const struct doc_node *root);
convert_fn convert_hpa, convert_keda, convert_wpa, convert_aibrix, convert_datadog;

// Fills `c` from one object. `list` is the list that contains `root`, or NULL: items of `kubectl get -o yaml` have
// their kind, items of a typed list (HorizontalPodAutoscalerList) take it from the list. Everything in `c` lives in
// `a` or in the tree. `live` is NULL, or must outlive the call. Returns -1 and fills `e` with a message that starts
// with the line: ERR_UNSUPPORTED for another kind, ERR_INPUT for a text with a NUL, ERR_LIMIT for an object that is too
// large.
int convert_object(struct conversion *c, struct arena *a, const struct doc_node *root, const struct doc_node *list,
                   const struct convert_live *live, struct err *e);

// Writes `c` as one YAML document, starting with "---". Whatever its texts contain, the result is one document with
// these texts.
void convert_write(struct buf *out, const struct conversion *c);

#endif
