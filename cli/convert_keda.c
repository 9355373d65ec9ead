// SPDX-License-Identifier: Apache-2.0
// ScaledObject of KEDA, keda.sh/v1alpha1, with triggers of type prometheus, cpu, memory and cron. KEDA:
// apis/keda/v1alpha1/scaledobject_types.go, prometheus_scaler.go, cron_scaler.go.
#include <stdio.h>
#include <string.h>

#include "base/schema/doc.h"
#include "cli/convert.h"

static void note_extra(struct conversion *c, const char *trigger, const struct doc_node *meta)
{
	static const char *const lost[] = {"customHeaders", "queryParameters", "authModes", "unsafeSsl",
	                                   "cortexOrgID",   "namespace",       "timeout"};
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
		if (doc_get(meta, lost[i]))
			convert_note(c, "%s of the trigger %s: configure access to the server in a file of --sources",
			             lost[i], trigger);
}

static void add_prometheus(struct conversion *c, const struct doc_node *trigger, const char **server)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	const char *name = convert_get(trigger, "name", convert_get(meta, "metricName", "prometheus"));
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *address = convert_get(meta, "serverAddress", "");
	s->query = convert_get(meta, "query", NULL);
	s->target_type =
	        strcmp(convert_get(trigger, "metricType", "AverageValue"), "Value") == 0 ? "Value" : "AverageValue";
	s->target_value = convert_get(meta, "threshold", NULL);
	s->note = "KEDA reads an empty reply as 0 by default; gpuscale holds (onMissing: Zero reads it as 0)";
	if (strcmp(convert_get(meta, "ignoreNullValues", "true"), "false") == 0)
		s->note = NULL;
	if (*server && strcmp(*server, address) != 0) {
		s->source = s->name;
		convert_note(c,
		             "the signal %s asks another server: --prometheus %s=%s, and name this namespace by "
		             "--prometheus-namespace",
		             s->name, s->name, address);
	} else if (!*server) {
		*server = address;
		convert_note(c, "the server is a flag, not a field: --prometheus %s",
		             address[0] ? address : "URL (the trigger has no serverAddress)");
	}
	if (doc_get(trigger, "authenticationRef"))
		convert_note(c,
		             "authenticationRef of the trigger %s: configure credentials in a file of --sources, with "
		             "this namespace in allowedNamespaces",
		             name);
	note_extra(c, name, meta);
	if (!c->idle_signal) {
		c->idle_signal = s->name;
		c->idle_above = convert_get(meta, "activationThreshold", "0");
	} else if (c->idle_replicas) {
		convert_note(c, "activation by the trigger %s: one signal decides whether the target is needed", name);
	}
}

static void add_resource(struct conversion *c, const struct doc_node *trigger)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	const char *type = convert_get(trigger, "metricType", convert_get(meta, "type", "Utilization"));
	const char *value = convert_get(meta, "value", NULL);
	bool is_utilization = strcmp(type, "Utilization") == 0;
	convert_resource(c, convert_get(trigger, "type", ""), convert_get(meta, "containerName", NULL),
	                 is_utilization ? value : NULL, is_utilization ? NULL : value);
}

static void add_cron(struct conversion *c, const struct doc_node *trigger)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	if (c->n_schedules == CONVERT_SCHEDULES_MAX) {
		convert_note(c, "a trigger of type cron: a policy has at most %d schedules", CONVERT_SCHEDULES_MAX);
		return;
	}
	struct conversion_schedule *s = &c->schedules[c->n_schedules++];
	s->name = convert_get(trigger, "name", convert_text(c, "cron-%zu", c->n_schedules));
	s->start = convert_get(meta, "start", "");
	s->end = convert_get(meta, "end", "");
	s->time_zone = convert_get(meta, "timezone", "UTC");
	s->min_replicas = convert_get(meta, "desiredReplicas", "1");
	int64_t wanted, max;
	if (convert_whole(s->min_replicas, &wanted) && convert_whole(c->max_replicas, &max) && wanted > max) {
		convert_note(c, "the trigger %s wants %s replicas, but maxReplicaCount is %s", s->name, s->min_replicas,
		             c->max_replicas);
		s->min_replicas = c->max_replicas;
	}
}

static void add_trigger(struct conversion *c, const struct doc_node *t, const char **server)
{
	const char *type = convert_get(t, "type", "");
	if (strcmp(type, "prometheus") == 0)
		add_prometheus(c, t, server);
	else if (strcmp(type, "cpu") == 0 || strcmp(type, "memory") == 0)
		add_resource(c, t);
	else if (strcmp(type, "cron") == 0)
		add_cron(c, t);
	else
		convert_note(c, "a trigger of type %s: bring its metric to Prometheus, and write its query", type);
}

static void add_fallback(struct conversion *c, const struct doc_node *fallback)
{
	static const char *const names[][2] = {{"static", "Static"},
	                                       {"currentReplicas", "CurrentReplicas"},
	                                       {"currentReplicasIfHigher", "CurrentReplicasIfHigher"},
	                                       {"currentReplicasIfLower", "CurrentReplicasIfLower"}};
	const char *behavior = convert_get(fallback, "behavior", "static");
	if (!fallback)
		return;
	c->fallback_threshold = convert_get(fallback, "failureThreshold", "3");
	c->fallback_replicas = convert_get(fallback, "replicas", "1");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(behavior, names[i][0]) == 0)
			c->fallback_behavior = names[i][1];
	if (!c->fallback_behavior) {
		convert_note(
		        c,
		        "fallback.behavior %s: it goes with a formula, which was not converted; Static stands for it",
		        behavior);
		c->fallback_behavior = "Static";
	}
	if (strcmp(c->fallback_replicas, "0") == 0) {
		convert_note(c, "fallback.replicas 0: an outage never scales to zero here; 1 stands for it");
		c->fallback_replicas = "1";
	}
}

// KEDA scales to zero, or to idleReplicaCount, once no trigger was active for cooldownPeriod.
static void look_at_bounds(struct conversion *c, const struct doc_node *spec)
{
	const char *min = convert_get(spec, "minReplicaCount", "0");
	bool to_zero = strcmp(min, "0") == 0;
	c->min_replicas = to_zero ? "1" : min;
	c->max_replicas = convert_get(spec, "maxReplicaCount", "100");
	c->idle_replicas = convert_get(spec, "idleReplicaCount", to_zero ? "0" : NULL);
}

static void add_idle(struct conversion *c, const struct doc_node *spec)
{
	if (!c->idle_replicas)
		return;
	if (!c->idle_signal) {
		convert_note(c, "scaling to zero needs a signal that shows whether the target is needed: spec.idle");
		return;
	}
	c->idle_after = convert_seconds(c, convert_get(spec, "cooldownPeriod", "300"));
	c->idle_initial = convert_seconds(c, convert_get(spec, "initialCooldownPeriod", NULL));
}

static void look_at_annotations(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *a = doc_get(doc_get(root, "metadata"), "annotations");
	c->paused = strcmp(convert_get(a, "autoscaling.keda.sh/paused", "false"), "true") == 0 ||
	            doc_get(a, "autoscaling.keda.sh/paused-replicas");
	if (doc_get(a, "autoscaling.keda.sh/paused-replicas"))
		convert_note(c, "the annotation paused-replicas: a paused target stays where it is");
	static const char *const halves[] = {"autoscaling.keda.sh/paused-scale-in",
	                                     "autoscaling.keda.sh/paused-scale-out"};
	for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
		if (strcmp(convert_get(a, halves[i], "false"), "true") == 0)
			convert_note(c, "the annotation %s: behavior.%s.selectPolicy: Disabled does that", halves[i],
			             i == 0 ? "scaleDown" : "scaleUp");
}

bool convert_keda(struct conversion *c, const struct doc_node *root)
{
	if (strcmp(c->kind, "ScaledObject") != 0)
		return false;
	const struct doc_node *spec = doc_get(root, "spec"), *advanced = doc_get(spec, "advanced");
	const struct doc_node *triggers = doc_get(spec, "triggers"),
	                      *hpa = doc_get(advanced, "horizontalPodAutoscalerConfig");
	const char *server = NULL;
	c->from = convert_origin(c);
	convert_target(c, spec);
	look_at_bounds(c, spec);
	c->behavior = doc_get(hpa, "behavior");
	c->interval = convert_seconds(c, convert_get(spec, "pollingInterval", NULL));
	if (!c->interval)
		convert_note(
		        c,
		        "KEDA asks every 30 s (pollingInterval) and its HPA every 15 s; the policy decides every 15 s");
	for (const struct doc_node *t = triggers ? triggers->child : NULL; t; t = t->next)
		add_trigger(c, t, &server);
	add_idle(c, spec);
	add_fallback(c, doc_get(spec, "fallback"));
	if (strcmp(convert_get(advanced, "restoreToOriginalReplicaCount", "false"), "true") == 0)
		convert_note(c, "restoreToOriginalReplicaCount: write the number itself, as restoreReplicas");
	if (doc_get(advanced, "scalingModifiers"))
		convert_note(
		        c, "advanced.scalingModifiers: its formula is over metric values; that of combine is over the "
		           "replicas that the signals ask for. Or put the formula into the query");
	look_at_annotations(c, root);
	return true;
}
