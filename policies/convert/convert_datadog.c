// SPDX-License-Identifier: Apache-2.0
// DatadogPodAutoscaler, datadoghq.com/v1alpha1 and v1alpha2. Datadog: datadog-operator, api/datadoghq/common and
// v1alpha2/datadogpodautoscaler_types.go.
#include <string.h>

#include "base/schema/doc.h"
#include "policies/convert/convert.h"

static void add_resource(struct conversion *c, const struct doc_node *objective)
{
	const struct doc_node *value = doc_get(objective, "value");
	convert_resource(c, convert_get(objective, "name", ""), convert_get(objective, "container", NULL),
	                 convert_get(value, "utilization", NULL), convert_get(value, "absoluteValue", NULL));
}

static void note_query(struct conversion *c, const struct doc_node *objective, const char *type)
{
	const struct doc_node *query = doc_get(objective, "query"), *queries = doc_get(query, "queries"),
	                      *formulas = doc_get(query, "formulas"), *value = doc_get(objective, "value");
	const char *text = "";
	for (const struct doc_node *q = queries ? queries->child : NULL; q; q = q->next)
		text = convert_text(c, "%s%s%s = %s", text, text[0] ? "; " : "",
		                    convert_get(doc_get(q, "metrics"), "name", "query"),
		                    convert_get(doc_get(q, "metrics"), "query", ""));
	for (const struct doc_node *f = formulas ? formulas->child : NULL; f; f = f->next)
		text = convert_text(c, "%s; formula %s", text, convert_get(f, "formula", ""));
	convert_lost(c,
	             "not converted: an objective of type %s is a query of Datadog (%s), for each replica %s: write it "
	             "in PromQL with target type AverageValue",
	             type, text,
	             convert_get(value, "absoluteValue", convert_get(value, "utilization", "without a value")));
}

static void add_objective(struct conversion *c, const struct doc_node *o)
{
	const char *type = convert_get(o, "type", "");
	const char *mode = convert_get(o, "mode", "RemoteAndLocal");
	if (strcmp(mode, "LocalOnly") == 0) {
		convert_note(
		        c, "an objective of type %s for the local fallback only: a policy has no second set of signals",
		        type);
		return;
	}
	if (strcmp(type, "PodResource") == 0)
		add_resource(c, doc_get(o, "podResource"));
	else if (strcmp(type, "ContainerResource") == 0)
		add_resource(c, doc_get(o, "containerResource"));
	else if (doc_get(o, "customQuery"))
		note_query(c, doc_get(o, "customQuery"), type);
	else
		note_query(c, doc_get(o, "controllerObjective"), type);
}

// Returns the text of a direction. `strategy` and `rules` are the HPA's selectPolicy and policies.
static const char *rules_of(struct conversion *c, const struct doc_node *policy, bool *ret_disabled)
{
	const struct doc_node *rules = doc_get(policy, "rules");
	const char *strategy = convert_get(policy, "strategy", "Max"), *list = "";
	int64_t value, period, window;
	size_t n_rules = 0, n_zeros = 0;
	for (const struct doc_node *r = rules ? rules->child : NULL; r; r = r->next) {
		bool is_percent = strcmp(convert_get(r, "type", ""), "Percent") == 0;
		if (!convert_whole(convert_get(r, "value", NULL), &value) ||
		    !convert_whole(convert_get(r, "periodSeconds", NULL), &period) || period < 1) {
			convert_note(c, "a rule of applyPolicy: value and periodSeconds must be whole numbers");
			continue;
		}
		n_rules++;
		n_zeros += value == 0;
		if (value == 0)
			continue; // never the largest
		if (period > 1800)
			convert_note(c, "a rule of applyPolicy: periodSeconds is at most 1800 here, not %lld",
			             (long long)period);
		list = convert_text(c, "%s%s{type: %s, value: %lld, periodSeconds: %lld}", list, list[0] ? ", " : "",
		                    is_percent ? "Percent" : "Pods", (long long)value,
		                    (long long)(period > 1800 ? 1800 : period));
	}
	*ret_disabled = strcmp(strategy, "Disabled") == 0 ||
	                (n_zeros > 0 && (n_zeros == n_rules || strcmp(strategy, "Min") == 0));
	if (!convert_whole(convert_get(policy, "stabilizationWindowSeconds", "0"), &window) || window > 3600)
		window = 0;
	if (!list[0])
		return convert_text(c, "{stabilizationWindowSeconds: %lld}", (long long)window);
	return convert_text(c, "{stabilizationWindowSeconds: %lld, selectPolicy: %s, policies: [%s]}",
	                    (long long)window, strcmp(strategy, "Min") == 0 ? "Min" : "Max", list);
}

static void add_apply_policy(struct conversion *c, const struct doc_node *apply)
{
	const struct doc_node *up = doc_get(apply, "scaleUp"), *down = doc_get(apply, "scaleDown");
	const char *mode = convert_get(apply, "mode", convert_get(apply, "applyMode", "Apply")); // v1alpha1: applyMode
	c->dry_run = strcmp(mode, "Apply") != 0 && strcmp(mode, "All") != 0;
	if (c->dry_run)
		convert_note(c, "applyPolicy.mode %s: the policy decides and writes nothing (dryRun)", mode);
	c->scale_up = rules_of(c, up ? up : doc_get(apply, "upscale"), &c->is_up_disabled);
	c->scale_down = rules_of(c, down ? down : doc_get(apply, "downscale"), &c->is_down_disabled);
	if (doc_get(apply, "update"))
		convert_note(c, "applyPolicy.update: a policy does not change the requests of pods");
}

void convert_datadog(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *spec = doc_get(root, "spec"), *constraints = doc_get(spec, "constraints");
	const struct doc_node *objectives = doc_get(spec, "objectives"), *apply = doc_get(spec, "applyPolicy");
	c->min_replicas = convert_get(constraints, "minReplicas", "1");
	c->max_replicas = convert_get(constraints, "maxReplicas", NULL);
	if (!objectives)
		objectives = doc_get(spec, "targets"); // v1alpha1
	for (const struct doc_node *o = objectives ? objectives->child : NULL; o; o = o->next)
		add_objective(c, o);
	if (!objectives || !objectives->child) { // Datadog's default
		convert_resource(c, "cpu", NULL, "80", NULL);
		convert_note(c, "no objective: Datadog targets 80 %% of the requested CPU");
	}
	add_apply_policy(c, apply ? apply : doc_get(spec, "policy"));
	convert_note(c, "Datadog's recommendations come from its own servers and may look ahead; the policy decides by "
	                "the metrics in Prometheus");
	if (doc_get(constraints, "containers"))
		convert_note(c, "constraints.containers: a policy does not change the requests of pods");
	if (doc_get(spec, "fallback"))
		convert_note(
		        c,
		        "fallback.horizontal: a policy without data holds; spec.fallback names replicas for an outage");
}
