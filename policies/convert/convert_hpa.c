// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscaler, autoscaling/v1, v2beta1, v2beta2 and v2. Kubernetes: pkg/apis/autoscaling/types.go.
#include <string.h>

#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"

// v2 and v2beta2 put the name and selector of a metric in `metric` and its value in `target`. v2beta1, and the
// annotation in which autoscaling/v1 stores fields that it lacks, use metricName, selector, targetAverageValue and so
// on.
static const char *metric_name(const struct doc_node *metric)
{
	return convert_get(doc_get(metric, "metric"), "name", convert_get(metric, "metricName", ""));
}

static const char *metric_matchers(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *m = doc_get(metric, "metric");
	const struct doc_node *flat = doc_get(metric, "metricSelector");
	return convert_matchers(c, m ? doc_get(m, "selector") : flat ? flat : doc_get(metric, "selector"));
}

static const char *target_value(const struct doc_node *metric, const char *key, const char *flat_key)
{
	return convert_get(doc_get(metric, "target"), key, convert_get(metric, flat_key, NULL));
}

static void set_target(struct conversion *c, struct conversion_signal *s, const struct doc_node *metric)
{
	const char *average = target_value(metric, "averageValue", "targetAverageValue");
	const char *value = target_value(metric, "value", "targetValue");
	if (!average)
		average = convert_get(metric, "averageValue", NULL); // v2beta1 Object
	if (average) {
		s->target_type = "AverageValue";
		s->target_value = average;
	} else if (value) {
		s->target_type = "Value";
		s->target_value = value;
	} else {
		convert_note(c, "the metric %s: no target", s->name);
		c->n_signals--;
		return;
	}
	convert_activation(c, s->name, "0"); // only these have values while no pod runs
}

static void add_resource(struct conversion *c, const struct doc_node *metric)
{
	convert_resource(c, convert_get(metric, "name", ""), convert_get(metric, "container", NULL),
	                 target_value(metric, "averageUtilization", "targetAverageUtilization"),
	                 target_value(metric, "averageValue", "targetAverageValue"));
}

// kube-metrics-adapter keeps the query of a metric in an annotation: of its name, and for several queries of one metric
// with the label query-name of its selector.
static void set_query(struct conversion *c, struct conversion_signal *s, const char *type, const char *name,
                      const struct doc_node *metric)
{
	const struct doc_node *m = doc_get(metric, "metric");
	const struct doc_node *labels =
	        doc_get(doc_get(m ? m : metric, m ? "selector" : "metricSelector"), "matchLabels");
	const char *keys[] = {convert_get(labels, "query-name", "query"), "query"}, *query = NULL;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !query; i++)
		query = convert_get(c->annotations,
		                    convert_text(c, "metric-config.%s.%s.prometheus/%s", type, name, keys[i]), NULL);
	if (!query)
		return;
	s->query = query;
	s->note = "the query is that of the annotation metric-config; its adapter uses the first of several series, "
	          "the policy holds";
}

static void add_pods(struct conversion *c, const struct doc_node *metric)
{
	const char *name = metric_name(metric);
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	// In metrics of dcgm-exporter, `pod` is the pod of the exporter; the pod that uses the GPU is in
	// exported_pod.
	const char *prefix = strncmp(name, "DCGM_", 5) == 0 ? "exported_" : "";
	const char *matchers = convert_pods(c, prefix, metric_matchers(c, metric));
	s->query = convert_text(c, "sum by (%spod) (%s)", prefix, convert_selector(c, name, matchers));
	s->target_type = "Pods";
	s->target_value = target_value(metric, "averageValue", "targetAverageValue");
	s->note = "the adapter may have renamed the metric: compare with its rules";
	set_query(c, s, "pods", name, metric);
}

static void add_object(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *object = doc_get(metric, "describedObject");
	if (!object)
		object = doc_get(metric, "target"); // v2beta1
	const char *name = metric_name(metric), *kind = convert_get(object, "kind", "");
	char label[64];
	size_t n = 0;
	for (; kind[n] && n + 1 < sizeof label; n++)
		label[n] = (char)(kind[n] >= 'A' && kind[n] <= 'Z' ? kind[n] - 'A' + 'a' : kind[n]);
	label[n] = '\0';
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers = metric_matchers(c, metric), *object_name = convert_get(object, "name", "");
	bool is_namespace = strcmp(label, "namespace") == 0;
	if (!is_namespace)
		matchers = convert_matcher(c, label, object_name, matchers);
	matchers = convert_matcher(c, "namespace", convert_namespace(c), matchers);
	s->query = convert_text(c, "sum(%s)", convert_selector(c, name, matchers));
	s->note = "the label that names the object depends on your adapter's rules: compare";
	if (is_namespace && strcmp(object_name, convert_namespace(c)) != 0)
		s->note = convert_text(
		        c, "for an object of kind Namespace, Kubernetes reads the namespace of the HPA, not %s",
		        object_name);
	set_query(c, s, "object", name, metric);
	set_target(c, s, metric);
}

static void add_external(struct conversion *c, const struct doc_node *metric)
{
	const char *name = metric_name(metric);
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers = convert_matcher(c, "namespace", convert_namespace(c), metric_matchers(c, metric));
	s->query = convert_text(c, "sum(%s)", convert_selector(c, name, matchers));
	s->note = "the query behind this name is known only to the adapter, which usually limits it to the namespace "
	          "of the HPA: write it here";
	set_query(c, s, "external", name, metric);
	set_target(c, s, metric);
}

static void add_metric(struct conversion *c, const struct doc_node *m)
{
	static const struct {
		const char *type, *key;
		void (*add)(struct conversion *c, const struct doc_node *metric);
	} kinds[] = {
	        {"Resource", "resource", add_resource},
	        {"ContainerResource", "containerResource", add_resource},
	        {"Pods", "pods", add_pods},
	        {"Object", "object", add_object},
	        {"External", "external", add_external},
	};
	const char *type = convert_get(m, "type", "");
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(type, kinds[i].type) == 0) {
			kinds[i].add(c, doc_get(m, kinds[i].key));
			return;
		}
	}
	convert_lost(c, "a metric of type \"%s\": not known here", type);
}

static bool add_metrics(struct conversion *c, const struct doc_node *metrics)
{
	for (const struct doc_node *m = metrics ? metrics->child : NULL; m; m = m->next)
		add_metric(c, m);
	return metrics && metrics->child;
}

// autoscaling/v1 stores newer fields in annotations, as JSON. NULL: none.
static const struct doc_node *annotation(struct conversion *c, const char *name)
{
	const char *key = convert_text(c, "autoscaling.alpha.kubernetes.io/%s", name);
	const char *json = convert_get(c->annotations, key, NULL);
	struct doc_node *node = NULL;
	struct err e;
	if (json && doc_from_json(c->arena, json, strlen(json), &node, &e) < 0) {
		convert_lost(c, "the annotation %s: %s", key, e.msg);
		return NULL;
	}
	return node;
}

// An HPA scales to 0 when its metrics ask for 0 during its stabilization window: the policy is idle for that time.
static void allow_zero(struct conversion *c)
{
	c->min_replicas = "1";
	if (c->n_activations == 0) {
		convert_note(c, "minReplicas 0: none of its metrics can be read while there is no pod, so the HPA does "
		                "not go there either; name a signal that can in spec.idle");
		return;
	}
	c->idle_after =
	        convert_seconds(c, convert_get(doc_get(c->behavior, "scaleDown"), "stabilizationWindowSeconds", "300"));
	c->idle_replicas = "0";
	convert_note(c, "minReplicas 0 became spec.idle, activated by %s%s",
	             c->n_activations > 1 ? "any of the metrics" : "the signal ",
	             c->n_activations > 1 ? "" : c->activations[0].signal);
}

// KEDA creates an HPA for each ScaledObject, on metrics that only KEDA serves; `kubectl get hpa -A` lists it, too.
static void note_owner(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *owners = doc_get(doc_get(root, "metadata"), "ownerReferences");
	for (const struct doc_node *o = owners ? owners->child : NULL; o; o = o->next)
		if (convert_get(o, "kind", NULL))
			convert_note(
			        c, "the %s %s creates this object and would create it again: convert that one instead",
			        convert_get(o, "kind", ""), convert_get(o, "name", "without a name"));
}

void convert_hpa(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *spec = doc_get(root, "spec");
	note_owner(c, root);
	c->behavior = doc_get(spec, "behavior");
	if (!c->behavior)
		c->behavior = annotation(c, "behavior");
	const char *percent = convert_get(spec, "targetCPUUtilizationPercentage", NULL);
	if (percent)
		convert_resource(c, "cpu", NULL, percent, NULL);
	bool any = add_metrics(c, doc_get(spec, "metrics"));
	any |= add_metrics(c, annotation(c, "metrics"));
	if (!any && !percent) { // default of the API server
		convert_resource(c, "cpu", NULL, "80", NULL);
		convert_note(c, "no metric: an HPA without one targets 80 %% of the requested CPU");
	}
	convert_note_growth(c);
	if (strcmp(c->min_replicas, "0") == 0)
		allow_zero(c);
}
