// SPDX-License-Identifier: Apache-2.0
// WatermarkPodAutoscaler, datadoghq.com/v1alpha1. WPA: api/v1alpha1/watermarkpodautoscaler_types.go.
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "cli/convert.h"

static void add_metric(struct conversion *c, const struct doc_node *spec, const struct doc_node *metric)
{
	const struct doc_node *external = doc_get(metric, "external"), *resource = doc_get(metric, "resource");
	const struct doc_node *m = external ? external : resource;
	const char *name = convert_get(m, external ? "metricName" : "name", "");
	if (!m) {
		convert_note(c, "a metric of type \"%s\": not known here", convert_get(metric, "type", ""));
		return;
	}
	if (resource && strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0) {
		convert_note(c,
		             "the resource %s: only cpu and memory have well-known metrics; write the query yourself",
		             name);
		return;
	}
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers = convert_matchers(c, doc_get(m, "metricSelector"));
	if (resource) {
		const char *pods = convert_pods(c, "");
		s->query = strcmp(name, "cpu") == 0
		                   ? convert_text(
		                             c, "sum(rate(container_cpu_usage_seconds_total{%s,container!=\"\"}[1m]))",
		                             pods + 1)
		                   : convert_text(c, "sum(container_memory_working_set_bytes{%s,container!=\"\"})",
		                                  pods + 1);
		s->note = "the WPA reads this from metrics-server; here cAdvisor must be scraped";
		if (matchers[0])
			convert_note(
			        c, "metricSelector of the resource %s: here the target's pods are taken by their names",
			        name);
	} else {
		s->query = convert_text(c, "sum(%s)", convert_selector(c, name, matchers));
		s->note = "the query behind this name is known only to the metrics provider: write it here";
	}
	s->high = convert_get(m, "highWatermark", NULL);
	s->low = convert_get(m, "lowWatermark", NULL);
	s->tolerance = convert_get(spec, "tolerance", NULL);
	s->algorithm = strcmp(convert_get(spec, "algorithm", "absolute"), "average") == 0 ? "Average" : "Absolute";
	s->sustain_up = convert_seconds(c, convert_get(spec, "upscaleDelayAboveWatermarkSeconds", NULL));
	s->sustain_down = convert_seconds(c, convert_get(spec, "downscaleDelayBelowWatermarkSeconds", NULL));
}

// A limit factor is a quantity, but a percentage is a whole number here; rounding down is safer.
static const char *whole_percent(struct conversion *c, const char *field, const char *factor)
{
	double value;
	struct err e;
	int64_t whole;
	if (convert_whole(factor, &whole) || num_parse_quantity(factor, strlen(factor), &value, &e) < 0 || value < 0 ||
	    value > INT32_MAX)
		return factor; // check reports invalid numbers
	const char *text = convert_text(c, "%d", value > 0 && value < 1 ? 1 : (int)value);
	convert_note(c, "%s %s: a percentage is a whole number here, %s stands for it", field, factor, text);
	return text;
}

static void note_lost(struct conversion *c, const struct doc_node *spec)
{
	static const char *const lost[][2] = {
	        {"readinessDelay", "guards.maxPendingPods and startup look after replicas that are starting"},
	        {"readinessDelaySeconds", "guards.maxPendingPods and startup look after replicas that are starting"},
	        {"recommender", "an external recommender: a signal with target type Replicas asks for them"}};
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
		if (doc_get(spec, lost[i][0]))
			convert_note(c, "%s: %s", lost[i][0], lost[i][1]);
	if (convert_get(spec, "convergeTowardsWatermark", "")[0])
		convert_note(
		        c, "convergeTowardsWatermark: converging inside the band: use a target instead of watermarks");
	if (strcmp(convert_get(spec, "tolerateZero", "false"), "true") != 0)
		convert_note(c, "tolerateZero is off: the WPA holds while the sum is 0; gpuscale treats 0 like any "
		                "other value");
}

bool convert_wpa(struct conversion *c, const struct doc_node *root)
{
	if (strcmp(c->kind, "WatermarkPodAutoscaler") != 0)
		return false;
	const struct doc_node *spec = doc_get(root, "spec"), *metrics = doc_get(spec, "metrics");
	c->from = convert_origin(c);
	convert_target(c, spec);
	c->min_replicas = convert_get(spec, "minReplicas", "1");
	c->max_replicas = convert_get(spec, "maxReplicas", NULL);
	if (strcmp(c->min_replicas, "0") == 0)
		c->min_replicas = "1"; // the default of the WPA
	c->replica_multiple = convert_get(spec, "replicaScalingAbsoluteModulo", NULL);
	c->min_available_percent = convert_get(spec, "minAvailableReplicaPercentage", NULL);
	if (c->min_available_percent && strcmp(c->min_available_percent, "0") == 0)
		c->min_available_percent = NULL;
	c->dry_run = strcmp(convert_get(spec, "dryRun", "false"), "true") == 0;
	c->cooldown_up = convert_seconds(c, convert_get(spec, "upscaleForbiddenWindowSeconds", "60"));
	c->cooldown_down = convert_seconds(c, convert_get(spec, "downscaleForbiddenWindowSeconds", "300"));
	// The WPA limits a single decision; decisions are at least a forbidden window apart.
	c->up_percent = whole_percent(c, "scaleUpLimitFactor", convert_get(spec, "scaleUpLimitFactor", "50"));
	c->down_percent = whole_percent(c, "scaleDownLimitFactor", convert_get(spec, "scaleDownLimitFactor", "20"));
	c->rate_period_seconds = "15";
	note_lost(c, spec);
	for (const struct doc_node *m = metrics ? metrics->child : NULL; m; m = m->next)
		add_metric(c, spec, m);
	return true;
}
