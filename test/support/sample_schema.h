// SPDX-License-Identifier: Apache-2.0
// A schema with a field of every type, every kind of bound and every trick the policy table uses; shared by the unit
// tests and the fuzz target, which is why it is all in a header.
#ifndef GPUSCALE_TEST_SUPPORT_SAMPLE_SCHEMA_H
#define GPUSCALE_TEST_SUPPORT_SAMPLE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/schema/schema.h"

struct sample_window {
	int64_t duration_ms;
	int32_t min_samples;
};

struct sample_signal {
	const char *name;
	double value, tolerance_ratio;
	int kind;
	bool window_set;
	struct sample_window window;
};

struct sample {
	const char *name; // metadata and spec decode straight into this struct
	int32_t min_replicas, max_replicas, step;
	bool dry_run, dry_run_set;
	int64_t interval_ms, period_ms;
	const char *const *tags;
	size_t n_tags;
	const char *const *zones;
	size_t n_zones;
	const struct sample_signal *signals;
	size_t n_signals;
	const struct doc_node *extra;
	bool extra_set;
};

static const char *const sample_kinds[] = {"Value", "AverageValue", "Pods", NULL};

static const struct schema_field sample_window_fields[] = {
        {.name = "duration",
         .type = SCHEMA_DURATION_MS,
         .doc = "How far back to look. Longer windows are calmer and later.",
         .offset = offsetof(struct sample_window, duration_ms),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "2m",
         .min = 1000,
         .max = 3600000},
        {.name = "minSamples",
         .type = SCHEMA_INT32,
         .doc = "Fewest samples a window needs to count.",
         .offset = offsetof(struct sample_window, min_samples),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "4",
         .min = 1,
         .max = INT32_MAX},
};
static const struct schema sample_window = {
        .name = "Sample.spec.signals[].window",
        .doc = "The samples a decision looks at.",
        .struct_size = sizeof(struct sample_window),
        .fields = sample_window_fields,
        .n_fields = sizeof sample_window_fields / sizeof sample_window_fields[0],
};

static const struct schema_field sample_signal_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "What the signal is called in messages.",
         .offset = offsetof(struct sample_signal, name),
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .min = 1,
         .max = 20},
        {.name = "value",
         .type = SCHEMA_QUANTITY,
         .doc = "Where it should be.",
         .offset = offsetof(struct sample_signal, value),
         .set_offset = SCHEMA_NO_OFFSET,
         .min = 0,
         .max = 1e300},
        {.name = "tolerance",
         .type = SCHEMA_QUANTITY,
         .doc = "Distance from the value, as a ratio, at which nothing is done.",
         .offset = offsetof(struct sample_signal, tolerance_ratio),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "0.1",
         .min = 0,
         .max = 1},
        {.name = "type",
         .type = SCHEMA_ENUM,
         .doc = "How the value becomes replicas.",
         .offset = offsetof(struct sample_signal, kind),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "AverageValue",
         .enum_names = sample_kinds},
        {.name = "window",
         .type = SCHEMA_OBJECT,
         .doc = "The samples a decision looks at.",
         .offset = offsetof(struct sample_signal, window),
         .set_offset = offsetof(struct sample_signal, window_set),
         .child = &sample_window},
};

static inline void sample_check_signal(const void *value, struct fault_list *l)
{
	const struct sample_signal *s = (const struct sample_signal *)value;
	if (s->value < s->tolerance_ratio)
		fault_add(l, "tolerance", -1, "must not be above value: lower it");
}

static const struct schema sample_signal = {
        .name = "Sample.spec.signals[]",
        .doc = "One measurement.",
        .struct_size = sizeof(struct sample_signal),
        .fields = sample_signal_fields,
        .n_fields = sizeof sample_signal_fields / sizeof sample_signal_fields[0],
        .validate = sample_check_signal,
};

static const struct schema_field sample_metadata_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "Name of the object.",
         .offset = offsetof(struct sample, name),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "unnamed",
         .max = 63},
};
static const struct schema sample_metadata = {
        .name = "Sample.metadata",
        .doc = "What Kubernetes calls it.",
        .struct_size = sizeof(struct sample),
        .fields = sample_metadata_fields,
        .n_fields = sizeof sample_metadata_fields / sizeof sample_metadata_fields[0],
};

static const struct schema_field sample_spec_fields[] = {
        {.name = "minReplicas",
         .type = SCHEMA_INT32,
         .doc = "Fewest replicas.",
         .offset = offsetof(struct sample, min_replicas),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "1",
         .min = 0,
         .max = 1000},
        {.name = "maxReplicas",
         .type = SCHEMA_INT32,
         .doc = "Most replicas, which bounds what a mistake can cost; there is no default on purpose, because only "
                "the owner of the workload knows it. Raise it slowly.",
         .offset = offsetof(struct sample, max_replicas),
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .min = 1,
         .max = 1000},
        {.name = "step",
         .type = SCHEMA_INT32,
         .doc = "Any whole number.",
         .offset = offsetof(struct sample, step),
         .set_offset = SCHEMA_NO_OFFSET},
        {.name = "dryRun",
         .type = SCHEMA_BOOL,
         .doc = "Decide, but write nothing.",
         .offset = offsetof(struct sample, dry_run),
         .set_offset = offsetof(struct sample, dry_run_set)},
        {.name = "interval",
         .type = SCHEMA_DURATION_MS,
         .doc = "Time between decisions.",
         .offset = offsetof(struct sample, interval_ms),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "15s",
         .min = 1000,
         .max = 1e15},
        {.name = "periodSeconds",
         .type = SCHEMA_SECONDS_MS,
         .doc = "Length of the rate period.",
         .offset = offsetof(struct sample, period_ms),
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "60",
         .min = 1,
         .max = 1800},
        {.name = "tags",
         .type = SCHEMA_STRING_LIST,
         .doc = "Words for people.",
         .offset = offsetof(struct sample, tags),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct sample, n_tags),
         .max_items = 4},
        {.name = "zones",
         .type = SCHEMA_STRING_LIST,
         .doc = "Where it may run.",
         .offset = offsetof(struct sample, zones),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct sample, n_zones),
         .default_text = "[a, \"b\"]"},
        {.name = "signals",
         .type = SCHEMA_LIST,
         .doc = "What is measured. At least one.",
         .offset = offsetof(struct sample, signals),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct sample, n_signals),
         .min = 1,
         .max_items = 16,
         .child = &sample_signal},
        {.name = "forecast",
         .type = SCHEMA_OBJECT,
         .doc = "Looks ahead.",
         .set_offset = SCHEMA_NO_OFFSET,
         .unsupported = true,
         .child = &sample_metadata},
        {.name = "extra",
         .type = SCHEMA_ANY,
         .doc = "Free form.",
         .offset = offsetof(struct sample, extra),
         .set_offset = offsetof(struct sample, extra_set)},
};

static inline void sample_check_spec(const void *value, struct fault_list *l)
{
	const struct sample *s = (const struct sample *)value;
	if (s->min_replicas > s->max_replicas)
		fault_add(l, "minReplicas", -1, "must not be above maxReplicas: lower it");
	for (size_t i = 1; i < s->n_signals; i++)
		if (strcmp(s->signals[i].name, s->signals[i - 1].name) == 0)
			fault_add(l, "signals", (int32_t)i, "has the name of the one before: rename it");
	if (s->interval_ms > s->period_ms)
		fault_add(l, "periodSeconds", -1, "must not be below interval: raise it");
	if (s->n_signals == 13)
		fault_add(l, NULL, -1, "13 signals are bad luck: add one");
}

static const struct schema sample_spec = {
        .name = "Sample.spec",
        .doc = "What is wanted.",
        .struct_size = sizeof(struct sample),
        .fields = sample_spec_fields,
        .n_fields = sizeof sample_spec_fields / sizeof sample_spec_fields[0],
        .validate = sample_check_spec,
};

static const struct schema_field sample_fields[] = {
        {.name = "metadata",
         .type = SCHEMA_OBJECT,
         .doc = "What Kubernetes calls it.",
         .offset = 0,
         .set_offset = SCHEMA_NO_OFFSET,
         .child = &sample_metadata},
        {.name = "spec",
         .type = SCHEMA_OBJECT,
         .doc = "What is wanted.",
         .offset = 0,
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .child = &sample_spec},
};
static const struct schema sample_schema = {
        .name = "Sample",
        .doc = "An object with everything in it.",
        .struct_size = sizeof(struct sample),
        .fields = sample_fields,
        .n_fields = sizeof sample_fields / sizeof sample_fields[0],
};

#endif
