// SPDX-License-Identifier: Apache-2.0
// WatermarkPodAutoscaler, datadoghq.com/v1alpha1. WPA: api/v1alpha1/watermarkpodautoscaler_types.go.

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"

static bool is_zero(const char *text)
{
	double value;
	struct err e;
	return num_parse_quantity(text, strlen(text), &value, &e) == 0 && !(value < 0) && !(value > 0);
}

// The WPA uses its default where a field is missing or zero.
static const char *unless_zero(const char *text, const char *fallback)
{
	return text && !is_zero(text) ? text : fallback;
}

static void add_metric(struct conversion *c, const struct doc_node *spec, const struct doc_node *metric)
{
	const struct doc_node *external = doc_get(metric, "external"), *resource = doc_get(metric, "resource");
	const struct doc_node *m = external ? external : resource;
	const char *name = convert_get(m, external ? "metricName" : "name", "");
	if (!m) {
		convert_lost(c, "a metric of type \"%s\": not known here", convert_get(metric, "type", ""));
		return;
	}
	if (resource && strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0) {
		convert_lost(c,
		             "the resource %s: only cpu and memory have well-known metrics; write the query yourself",
		             name);
		return;
	}
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers = convert_matchers(c, doc_get(m, "metricSelector"));
	if (resource) {
		const char *pods = convert_pods(c, "", "");
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
		matchers = convert_matcher(c, "namespace", convert_namespace(c), matchers);
		s->query = convert_text(c, "sum(%s)", convert_selector(c, name, matchers));
		s->note = "the query behind this name is known only to the metrics provider, which usually limits it "
		          "to the namespace of the WPA: write it here";
	}
	const char *high = convert_get(m, "highWatermark", NULL), *low = convert_get(m, "lowWatermark", NULL);
	s->high = high ? high : low;
	s->low = low ? low : high;
	s->tolerance = unless_zero(convert_get(spec, "tolerance", NULL), "0.1");
	s->algorithm = strcmp(convert_get(spec, "algorithm", "absolute"), "average") == 0 ? "Average" : "Absolute";
	s->sustain_up =
	        convert_seconds(c, unless_zero(convert_get(spec, "upscaleDelayAboveWatermarkSeconds", NULL), NULL));
	s->sustain_down =
	        convert_seconds(c, unless_zero(convert_get(spec, "downscaleDelayBelowWatermarkSeconds", NULL), NULL));
}

// A signal's name in a formula.
static const char *quoted_name(struct conversion *c, const char *name)
{
	return convert_text(c, "`%s`", name);
}

// What the metrics ask for together. Without tolerateZero, a metric that is 0 asks for the present scale.
static const char *proposals(struct conversion *c, bool tolerates_zero)
{
	const char *all = "";
	for (size_t i = 0; i < c->n_signals; i++) {
		const char *name = quoted_name(c, c->signals[i].name);
		const char *one = tolerates_zero ? name : convert_text(c, "(%s.value == 0 ? current : %s)", name, name);
		all = i == 0 ? one : convert_text(c, "max(%s, %s)", all, one);
	}
	return all;
}

// A bound of one decision: the present scale and a share of it, cut to a whole number, and at least 1.
static const char *limit(struct conversion *c, const char *field, const char *factor, char sign, bool *ret_disabled)
{
	double value;
	struct err e;
	if (num_parse_quantity(factor, strlen(factor), &value, &e) < 0 || value < 0 || value > INT32_MAX) {
		convert_note(c, "%s %s: not a quantity of at least 0; the direction is disabled", field, factor);
		value = 0;
	}
	*ret_disabled = !(value > 0);
	return *ret_disabled ? "current"
	                     : convert_text(c, "current %c max(1, floor(current * %.10g / 100))", sign, value);
}

// Formulas are the only place of a policy in which a step can be rounded down. WPA: convertDesiredReplicasWithRules.
static void add_limits(struct conversion *c, const struct doc_node *spec)
{
	const char *wanted = proposals(c, convert_bool(convert_get(spec, "tolerateZero", "false")) == 1);
	bool is_min_zero = strcmp(convert_get(spec, "minReplicas", "1"), "0") == 0;
	const char *up =
	        limit(c, "scaleUpLimitFactor", convert_get(spec, "scaleUpLimitFactor", "50"), '+', &c->is_up_disabled);
	const char *down = limit(c, "scaleDownLimitFactor", convert_get(spec, "scaleDownLimitFactor", "20"), '-',
	                         &c->is_down_disabled);
	c->scale_up = "{stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1000000, periodSeconds: 15}]}";
	c->scale_down = "{stabilizationWindowSeconds: 0, policies: [{type: Percent, value: 100, periodSeconds: 15}]}";
	if (c->n_signals == 0)
		return;
	c->combine = convert_text(c, "min(%s, %s)", wanted, up);
	if (!is_min_zero || c->is_down_disabled) // with minReplicas 0, the WPA does not limit a scale-down
		c->combine = convert_text(c, "max(%s, %s)", c->combine, down);
	bool has_delay = c->signals[0].sustain_up || c->signals[0].sustain_down;
	if (has_delay && (c->n_signals > 1 || convert_bool(convert_get(spec, "tolerateZero", "false")) != 1))
		convert_note(c, "delays above and below the watermarks: here each metric has its own, and a sum of 0 "
		                "is below the low watermark; the WPA has one for all metrics");
	c->combine_note = "the limit factors, as the WPA rounds them. The WPA also holds a scale-down that its limit "
	                  "cuts while fewer replicas are ready than would remain";
}

static void note_lost(struct conversion *c, const struct doc_node *spec)
{
	static const char monitor[] = "wpa.datadoghq.com/lifecycle-control.enabled";
	static const char *const lost[][2] = {
	        {"readinessDelay", "guards.maxPendingPods and startup look after replicas that are starting"},
	        {"readinessDelaySeconds", "guards.maxPendingPods and startup look after replicas that are starting"},
	        {"recommender", "an external recommender: a signal with target type Replicas asks for them"}};
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
		if (doc_get(spec, lost[i][0]))
			convert_note(c, "%s: %s", lost[i][0], lost[i][1]);
	if (convert_bool(convert_get(c->annotations, monitor, NULL)) == 1)
		convert_note(c, "the annotation lifecycle-control: the WPA scales only while its DatadogMonitor is OK; "
		                "the policy does not read it");
	if (convert_get(spec, "convergeTowardsWatermark", "")[0])
		convert_note(
		        c, "convergeTowardsWatermark: converging inside the band: use a target instead of watermarks");
}

void convert_wpa(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *spec = doc_get(root, "spec"), *metrics = doc_get(spec, "metrics");
	if (strcmp(c->min_replicas, "0") == 0)
		c->min_replicas = "1"; // the default of the WPA
	c->replica_multiple = unless_zero(convert_get(spec, "replicaScalingAbsoluteModulo", NULL), NULL);
	if (c->replica_multiple && strcmp(c->replica_multiple, "1") != 0)
		convert_note(c, "replicaScalingAbsoluteModulo: the WPA rounds before its limits, which may cut the "
		                "result to another number; here every new scale is a multiple");
	c->min_available_percent = unless_zero(convert_get(spec, "minAvailableReplicaPercentage", NULL), NULL);
	c->dry_run = convert_bool(convert_get(spec, "dryRun", "false")) == 1;
	c->cooldown_up =
	        convert_seconds(c, unless_zero(convert_get(spec, "upscaleForbiddenWindowSeconds", NULL), "60"));
	c->cooldown_down =
	        convert_seconds(c, unless_zero(convert_get(spec, "downscaleForbiddenWindowSeconds", NULL), "300"));
	note_lost(c, spec);
	for (const struct doc_node *m = metrics ? metrics->child : NULL; m; m = m->next)
		add_metric(c, spec, m);
	add_limits(c, spec);
}
