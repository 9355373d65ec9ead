// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscaler, autoscaling/v1, v2beta2 and v2. Kubernetes: pkg/apis/autoscaling/types.go.
#include <stdio.h>
#include <string.h>

#include "base/doc.h"
#include "cli/convert.h"

// v2: {type, value, averageValue, averageUtilization}.
static void set_target(struct conversion *c, struct conversion_signal *s, const struct doc_node *target)
{
	const char *average = convert_get(target, "averageValue", NULL), *value = convert_get(target, "value", NULL);
	if (average) {
		s->target_type = "AverageValue";
		s->target_value = average;
	} else if (value) {
		s->target_type = "Value";
		s->target_value = value;
	} else {
		convert_note(c, "the metric %s: no target", s->name);
		c->n_signals--;
	}
}

static void add_resource(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *target = doc_get(metric, "target");
	convert_resource(c, convert_get(metric, "name", ""), convert_get(metric, "container", NULL),
	                 convert_get(target, "averageUtilization", NULL), convert_get(target, "averageValue", NULL));
}

static void add_pods(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *m = doc_get(metric, "metric"), *target = doc_get(metric, "target");
	const char *name = convert_get(m, "name", "");
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers = convert_text(c, "%s%s", convert_pods(c), convert_matchers(c, doc_get(m, "selector")));
	s->query = convert_text(c, "sum by (pod) (%s)", convert_selector(c, name, matchers));
	s->target_type = "Pods";
	s->target_value = convert_get(target, "averageValue", NULL);
	s->note = "through an adapter the name may have been another one: compare with the adapter's rules";
}

static void add_object(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *m = doc_get(metric, "metric"), *object = doc_get(metric, "describedObject");
	const char *name = convert_get(m, "name", ""), *kind = convert_get(object, "kind", "");
	char label[64];
	size_t n = 0;
	for (; kind[n] && n + 1 < sizeof label; n++)
		label[n] = (char)(kind[n] >= 'A' && kind[n] <= 'Z' ? kind[n] - 'A' + 'a' : kind[n]);
	label[n] = '\0';
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *matchers =
	        convert_text(c, ",namespace=\"%s\",%s=\"%s\"%s", c->namespace_name ? c->namespace_name : "default",
	                     label, convert_get(object, "name", ""), convert_matchers(c, doc_get(m, "selector")));
	s->query = convert_text(c, "sum(%s)", convert_selector(c, name, matchers));
	s->note = "the label that names the object depends on your adapter's rules: compare";
	set_target(c, s, doc_get(metric, "target"));
}

static void add_external(struct conversion *c, const struct doc_node *metric)
{
	const struct doc_node *m = doc_get(metric, "metric");
	const char *name = convert_get(m, "name", "");
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	s->query = convert_text(c, "sum(%s)", convert_selector(c, name, convert_matchers(c, doc_get(m, "selector"))));
	s->note = "what the adapter makes of this name is not known here: put the adapter's own query";
	set_target(c, s, doc_get(metric, "target"));
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
	convert_note(c, "a metric of type \"%s\"", type);
}

bool convert_hpa(struct conversion *c, const struct doc_node *root)
{
	const char *version = convert_get(root, "apiVersion", "");
	if (strcmp(convert_get(root, "kind", ""), "HorizontalPodAutoscaler") != 0)
		return false;
	const struct doc_node *spec = doc_get(root, "spec"), *metrics = doc_get(spec, "metrics");
	c->from = convert_text(c, "HorizontalPodAutoscaler %s (%s)", c->name ? c->name : "", version);
	convert_target(c, spec);
	c->min_replicas = convert_get(spec, "minReplicas", "1");
	c->max_replicas = convert_get(spec, "maxReplicas", NULL);
	c->behavior = doc_get(spec, "behavior");
	if (strcmp(c->min_replicas, "0") == 0)
		convert_note(c, "minReplicas 0: name a signal in spec.idle that tells when the target is needed");
	const char *percent = convert_get(spec, "targetCPUUtilizationPercentage", NULL);
	if (percent || (strcmp(version, "autoscaling/v1") == 0 && !metrics))
		convert_resource(c, "cpu", NULL, percent ? percent : "80", NULL);
	if (strcmp(version, "autoscaling/v2beta1") == 0)
		convert_note(c, "autoscaling/v2beta1 writes its metrics in another way: apply it and read it back as "
		                "autoscaling/v2 first");
	else
		for (const struct doc_node *m = metrics ? metrics->child : NULL; m; m = m->next)
			add_metric(c, m);
	return true;
}
