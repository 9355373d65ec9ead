// SPDX-License-Identifier: Apache-2.0
// Other autoscalers' objects as GPUAutoscalers: a HorizontalPodAutoscaler, a ScaledObject of KEDA, a
// WatermarkPodAutoscaler. Each converter fills a struct conversion; one emitter writes it, with what could not be
// carried over as comments at the place where it would be.
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

// Texts are in the arena or in the tree of the source; NULL = left out.
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
	const char *kind, *api_version; // of the source; of a typed list's items: what the list says
	const char *from;               // "HorizontalPodAutoscaler llama (autoscaling/v2)"
	const char *name, *namespace_name;
	const char *target_api_version, *target_kind, *target_name;
	const char *min_replicas, *max_replicas, *interval, *replica_multiple;
	bool dry_run, paused;
	struct conversion_signal signals[CONVERT_SIGNALS_MAX];
	size_t n_signals;
	struct conversion_schedule schedules[CONVERT_SCHEDULES_MAX];
	size_t n_schedules;
	const struct doc_node *behavior;                             // the HPA's, as it is; or
	const char *up_percent, *down_percent, *rate_period_seconds; // WPA: one rate each
	const char *cooldown_up, *cooldown_down;
	const char *idle_after, *idle_replicas, *idle_initial, *idle_signal, *idle_above;
	const char *fallback_threshold, *fallback_replicas, *fallback_behavior;
	const char *min_available_percent;
	const char *notes[CONVERT_NOTES_MAX]; // what could not be carried over, and what to look at
	size_t n_notes;
	bool is_full; // more than there is room for: a note says so
	bool is_default_noted;
};

// In the arena; ends the process when memory ends (a command, not the controller).
const char *convert_text(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void convert_note(struct conversion *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// A place for one more; NULL, with a note, when there are too many. Its name is made unique.
struct conversion_signal *convert_add_signal(struct conversion *c, const char *name);

// Text of a scalar below node, or fallback; a quantity or number as it is written.
const char *convert_get(const struct doc_node *node, const char *key, const char *fallback);
// "45" -> "45s"; NULL stays NULL.
const char *convert_seconds(struct conversion *c, const char *seconds);
// text in double quotes, as PromQL writes it.
const char *convert_quoted(struct conversion *c, const char *text);
// The label matchers of a selector (matchLabels, matchExpressions) as PromQL, each led by a comma: ,a="b",c=~"d|e".
// What may not stand in the name of a label of Prometheus becomes '_', as exporters do it.
const char *convert_matchers(struct conversion *c, const struct doc_node *selector);
// name{matchers} or {__name__="odd name",matchers}. matchers as convert_matchers gives them.
const char *convert_selector(struct conversion *c, const char *metric, const char *matchers);
// Where the object is, for a query; "default", with a note, when it does not say.
const char *convert_namespace(struct conversion *c);
// "KIND NAME (apiVersion)", for the line that says where a policy is from.
const char *convert_origin(struct conversion *c);
// The pods of the target, as matchers led by a comma, of the labels namespace and pod with that prefix ("",
// "exported_").
const char *convert_pods(struct conversion *c, const char *prefix);
// A signal for `resource` (cpu, memory) of the target's pods: utilization in percent of the requests, or a total to be
// held against an average. Uses the names of cAdvisor and kube-state-metrics. container: NULL = all.
void convert_resource(struct conversion *c, const char *resource, const char *container, const char *utilization,
                      const char *average_value);
// scaleTargetRef, with the default apps/v1 Deployment.
void convert_target(struct conversion *c, const struct doc_node *spec);

// Says once what is still a template in the texts below root.
void convert_note_templates(struct conversion *c, const struct doc_node *root);
// Whole numbers without a sign; false when text is NULL or none.
bool convert_whole(const char *text, int64_t *ret_value);

// The converters. root: the object, whose kind and apiVersion are in c. False: not this kind.
bool convert_hpa(struct conversion *c, const struct doc_node *root);
bool convert_keda(struct conversion *c, const struct doc_node *root);
bool convert_wpa(struct conversion *c, const struct doc_node *root);

// Fills *c from one object. list: what root is an item of, or NULL; the items of `kubectl get -o yaml` say what they
// are, those of a typed list (HorizontalPodAutoscalerList) leave it to the list. Everything that *c points to is in a
// or in the tree. -1 and *e, whose message begins with the line: ERR_UNSUPPORTED for another kind, ERR_INPUT for a text
// with a NUL in it.
int convert_object(struct conversion *c, struct arena *a, const struct doc_node *root, const struct doc_node *list,
                   struct err *e);

// Writes c as a YAML document, "---" first. Whatever is in c, this is one document, with the texts that c has.
void convert_write(struct buf *out, const struct conversion *c);

#endif
