// SPDX-License-Identifier: Apache-2.0
// ScaledObject of KEDA, keda.sh/v1alpha1, with triggers of type prometheus, cpu, memory and cron. KEDA:
// apis/keda/v1alpha1/scaledobject_types.go, prometheus_scaler.go, cron_scaler.go.
#include <string.h>

#include "base/err.h"
#include "base/num.h"
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

// What the triggers of one object have in common.
struct triggers {
	const char *server; // of the first trigger of type prometheus
	bool has_servers;   // there are several
	// KEDA needs the target while one of these queries is above its activationThreshold.
	const char *queries[CONVERT_SIGNALS_MAX], *above[CONVERT_SIGNALS_MAX];
	size_t n_active, n_cron, n_resources;
};

static void note_server(struct conversion *c, struct conversion_signal *s, const char *address, struct triggers *t)
{
	if (t->server && strcmp(t->server, address) != 0) {
		t->has_servers = true;
		s->source = s->name;
		convert_note(c,
		             "the query of the signal %s goes to another server: --prometheus %s=%s, and name this "
		             "namespace by "
		             "--prometheus-namespace",
		             s->name, s->name, address);
	} else if (!t->server) {
		t->server = address;
		convert_note(c, "the server is a flag, not a field: --prometheus %s",
		             address[0] ? address : "URL (the trigger has no serverAddress)");
	}
}

// The threshold, which may become a part of a query.
static const char *activation_threshold(struct conversion *c, const char *trigger, const struct doc_node *meta)
{
	const char *text = convert_get(meta, "activationThreshold", "0");
	double value;
	struct err e;
	if (num_parse_f64(text, strlen(text), &value, &e) == 0)
		return text;
	convert_note(c, "activationThreshold of the trigger %s: %s is not a number; 0 stands for it", trigger, text);
	return "0";
}

static void add_prometheus(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	const char *name = convert_get(trigger, "name", convert_get(meta, "metricName", "prometheus"));
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	s->query = convert_get(meta, "query", NULL);
	s->target_type =
	        strcmp(convert_get(trigger, "metricType", "AverageValue"), "Value") == 0 ? "Value" : "AverageValue";
	s->target_value = convert_get(meta, "threshold", NULL);
	if (convert_bool(convert_get(meta, "ignoreNullValues", "true")) != 0) {
		s->on_missing = "Zero";
		s->note = "KEDA reads an empty reply as 0 (ignoreNullValues), and so does onMissing: Zero. Without it, "
		          "an empty reply holds the scale";
	}
	note_server(c, s, convert_get(meta, "serverAddress", ""), t);
	if (doc_get(trigger, "authenticationRef"))
		convert_note(c,
		             "authenticationRef of the trigger %s: configure credentials in a file of --sources, with "
		             "this namespace in allowedNamespaces",
		             name);
	note_extra(c, name, meta);
	const char *above = activation_threshold(c, name, meta);
	double most, threshold;
	int64_t max;
	struct err e;
	if (c->idle_replicas && s->target_value && convert_whole(c->max_replicas, &max) &&
	    num_parse_f64(above, strlen(above), &most, &e) == 0 &&
	    num_parse_f64(s->target_value, strlen(s->target_value), &threshold, &e) == 0 &&
	    most > threshold * (double)max)
		convert_note(c,
		             "activationThreshold of the trigger %s: up to it, the signal may ask for more than "
		             "maxReplicas, and then the target does not go idle",
		             name);
	if (!c->idle_signal) {
		c->idle_signal = s->name;
		c->idle_above = above;
	}
	t->queries[t->n_active] = s->query ? s->query : "";
	t->above[t->n_active++] = above;
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

// A trigger below minReplicaCount never lowers the floor, but it keeps the target from its idle level.
static void add_cron(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	const char *name = convert_get(trigger, "name", convert_text(c, "cron-%zu", ++t->n_cron));
	const char *text = convert_get(meta, "desiredReplicas", "1");
	int64_t wanted, min, max;
	if (!convert_whole(text, &wanted)) {
		convert_note(c, "the trigger %s, not converted: desiredReplicas %s is not a whole number", name, text);
		c->is_incomplete = true;
		return;
	}
	if (convert_whole(c->max_replicas, &max) && max > 0 && wanted > max) {
		convert_note(c, "the trigger %s wants %s replicas, but maxReplicaCount is %s", name, text,
		             c->max_replicas);
		wanted = max;
	}
	if (convert_whole(c->min_replicas, &min) && wanted < min)
		wanted = min;
	convert_window(c, name, meta, wanted > 0 ? wanted : 1);
}

static void add_trigger(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const char *type = convert_get(trigger, "type", "");
	if (strcmp(type, "prometheus") == 0) {
		add_prometheus(c, trigger, t);
	} else if (strcmp(type, "cpu") == 0 || strcmp(type, "memory") == 0) {
		t->n_resources++;
		add_resource(c, trigger);
	} else if (strcmp(type, "cron") == 0) {
		add_cron(c, trigger, t);
	} else {
		convert_note(c,
		             "not converted: a trigger of type %s: bring its metric to Prometheus, and write its query",
		             type);
		c->is_incomplete = true;
	}
}

// ---- fallback ----

// The replicas of a fallback, moved into the bounds.
static const char *bounded(struct conversion *c, const char *text)
{
	int64_t replicas, min, max;
	if (!convert_whole(text, &replicas) || !convert_whole(c->min_replicas, &min) ||
	    !convert_whole(c->max_replicas, &max))
		return text; // check reports what is not a number
	int64_t n = replicas < min ? min : replicas > max ? max : replicas;
	if (n != replicas && replicas == 0)
		c->fallback_note =
		        convert_text(c, "fallback.replicas 0: an outage never scales to zero here; %lld stands for it",
		                     (long long)n);
	else if (n != replicas)
		c->fallback_note =
		        convert_text(c, "fallback.replicas %lld is outside of the bounds; %lld stands for it",
		                     (long long)replicas, (long long)n);
	return n == replicas ? text : convert_text(c, "%lld", (long long)n);
}

static void add_fallback(struct conversion *c, const struct doc_node *fallback, const struct triggers *t)
{
	static const char *const names[][2] = {{"static", "Static"},
	                                       {"currentReplicas", "CurrentReplicas"},
	                                       {"currentReplicasIfHigher", "CurrentReplicasIfHigher"},
	                                       {"currentReplicasIfLower", "CurrentReplicasIfLower"}};
	const char *behavior = convert_get(fallback, "behavior", "static");
	if (!fallback || c->n_signals == 0)
		return;
	c->fallback_threshold = convert_get(fallback, "failureThreshold", "3");
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
	bool is_current = strcmp(c->fallback_behavior, "CurrentReplicas") == 0;
	if (!is_current)
		c->fallback_replicas = bounded(c, convert_get(fallback, "replicas", "1"));
	if (c->idle_after && (is_current || strcmp(c->fallback_behavior, "CurrentReplicasIfLower") == 0))
		convert_note(
		        c,
		        "fallback.behavior %s: KEDA wakes a target at zero when its triggers have failed, up to 1; "
		        "here it stays at zero until there is data",
		        behavior);
	const char *moved = c->fallback_note ? c->fallback_note : "";
	c->fallback_note =
	        convert_text(c,
	                     "%s%sKEDA ends a fallback with the first reading; until failureThreshold readings, "
	                     "at least one, have come back, the policy does not scale down",
	                     moved, moved[0] ? ". " : "");
	if (t->n_resources > 0)
		convert_note(c, "fallback: KEDA has none for triggers of type cpu and memory; here it covers them");
}

// ---- idle ----

// KEDA scales to zero, or to idleReplicaCount, once no trigger was active for cooldownPeriod.
static void set_bounds(struct conversion *c, const struct doc_node *spec)
{
	const char *min = convert_get(spec, "minReplicaCount", "0");
	bool to_zero = strcmp(min, "0") == 0;
	c->min_replicas = to_zero ? "1" : min;
	c->max_replicas = convert_get(spec, "maxReplicaCount", "100");
	c->idle_replicas = convert_get(spec, "idleReplicaCount", to_zero ? "0" : NULL);
}

// Without a trigger of type prometheus, nothing but the schedules asks for replicas.
static void add_constant(struct conversion *c)
{
	struct conversion_signal *s = convert_add_signal(c, "none");
	if (!s)
		return;
	s->query = "vector(0)";
	s->target_type = "Replicas";
	s->on_missing = "Zero";
	if (!c->idle_signal) {
		c->idle_signal = s->name;
		c->idle_above = "0";
	}
}

static void add_idle(struct conversion *c, const struct doc_node *spec, const struct triggers *t, int64_t tail_minutes)
{
	const char *cooldown = convert_get(spec, "cooldownPeriod", "300");
	int64_t seconds;
	if (!c->idle_replicas)
		return;
	if (!c->idle_signal) {
		convert_note(c, "scaling to zero needs a signal that shows whether the target is needed: spec.idle");
		return;
	}
	c->idle_note =
	        "KEDA wakes a target to minReplicaCount, at least 1, and its HPA goes on from there; a policy goes at "
	        "once to what the signals ask for";
	if (t->n_active > 1 && t->has_servers)
		c->idle_note = "KEDA needs the target while any trigger is active; here the first one decides, because "
		               "the triggers have several servers. Bring their metrics to one server";
	else if (t->n_active > 1)
		convert_activity(c, t->queries, t->above, t->n_active);
	if (tail_minutes > 0 && convert_whole(cooldown, &seconds))
		cooldown = convert_text(c, "%lld", (long long)(seconds - tail_minutes * 60));
	c->idle_after = convert_seconds(c, cooldown);
	c->idle_initial = convert_seconds(c, convert_get(spec, "initialCooldownPeriod", NULL));
}

// ---- schedules ----

// A trigger of type cron is a metric of the HPA: after its end, the stabilization of scale-down keeps its replicas.
// Returns for how many minutes a schedule has to stay open for that.
static int64_t tail_of(struct conversion *c, const struct doc_node *spec, const struct triggers *t)
{
	const char *window = convert_get(doc_get(c->behavior, "scaleDown"), "stabilizationWindowSeconds", "300");
	int64_t seconds = 300, cooldown = 300;
	if (!convert_whole(window, &seconds) || seconds > 3600)
		seconds = 300; // check reports what is not a number
	c->schedules_note = convert_text(
	        c,
	        "KEDA's cron triggers are metrics: behavior.scaleUp applies at a start, while a schedule sets its "
	        "bounds at once; scale-down is stabilized for %lld s after an end, and so a schedule ends later",
	        (long long)seconds);
	if (seconds == 0)
		c->schedules_note =
		        "KEDA's cron triggers are metrics: behavior.scaleUp applies at a start, while a schedule "
		        "sets its bounds at once";
	if (!c->idle_replicas)
		return (seconds + 59) / 60;
	// A schedule keeps the target from its idle level. KEDA counts cooldownPeriod from the end of the window.
	if (t->n_active == 0) {
		convert_whole(convert_get(spec, "cooldownPeriod", "300"), &cooldown);
		return (seconds < cooldown ? seconds : cooldown) / 60;
	}
	if (seconds > 0)
		c->schedules_note = convert_text(
		        c,
		        "KEDA's cron triggers are metrics: behavior.scaleUp applies at a start, while a schedule sets "
		        "its bounds at once; scale-down is stabilized for %lld s after an end, while the scale falls "
		        "to "
		        "what the signals ask for at once here, and is idle after the same time",
		        (long long)seconds);
	return 0;
}

// ---- annotations ----

// Any text but one that Go's ParseBool reads as false counts.
static bool is_annotated(const struct doc_node *annotations, const char *name)
{
	return doc_get(annotations, name) && convert_bool(convert_get(annotations, name, "")) != 0;
}

static void add_annotations(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *a = doc_get(doc_get(root, "metadata"), "annotations");
	const char *replicas = convert_get(a, "autoscaling.keda.sh/paused-replicas", NULL);
	c->paused = is_annotated(a, "autoscaling.keda.sh/paused") || replicas;
	c->is_down_disabled = is_annotated(a, "autoscaling.keda.sh/paused-scale-in");
	c->is_up_disabled = is_annotated(a, "autoscaling.keda.sh/paused-scale-out");
	if (replicas)
		convert_note(
		        c,
		        "the annotation paused-replicas: KEDA keeps the target at %s; the policy is paused, and keeps "
		        "the scale that it finds: kubectl scale --replicas=%s",
		        replicas, replicas);
	if (c->is_down_disabled)
		convert_note(c, "the annotation paused-scale-in: behavior.scaleDown.selectPolicy Disabled and a long "
		                "idle.after do that; write your own when you end the pause");
	if (c->is_up_disabled)
		convert_note(c,
		             "the annotation paused-scale-out: behavior.scaleUp.selectPolicy Disabled does that, but "
		             "activation and minReplicas still add replicas");
	if (c->is_down_disabled && c->idle_after)
		c->idle_after = "604800s"; // the longest there is
}

// KEDA takes a target with this annotation for needed, whatever the triggers say.
static void force_activation(struct conversion *c, const struct doc_node *root)
{
	const char *text = convert_get(doc_get(doc_get(root, "metadata"), "annotations"),
	                               "autoscaling.keda.sh/force-activation", NULL);
	if (convert_bool(text) != 1 || !c->idle_replicas)
		return;
	c->idle_replicas = NULL;
	convert_note(c, "the annotation force-activation keeps the target active: no idle, and minReplicas at least 1");
}

// The formula is over metric values, and replaces the decisions of the triggers.
static void note_formula(struct conversion *c, const struct doc_node *modifiers)
{
	if (!doc_get(modifiers, "formula"))
		return;
	convert_note(c,
	             "not converted: advanced.scalingModifiers, whose formula over the values of the triggers decides: "
	             "formula \"%s\", target %s, activationTarget %s, metricType %s; write it as one query",
	             convert_get(modifiers, "formula", ""), convert_get(modifiers, "target", "missing"),
	             convert_get(modifiers, "activationTarget", "0"),
	             convert_get(modifiers, "metricType", "AverageValue"));
	c->is_incomplete = true;
}

bool convert_keda(struct conversion *c, const struct doc_node *root)
{
	if (strcmp(c->kind, "ScaledObject") != 0)
		return false;
	const struct doc_node *spec = doc_get(root, "spec"), *advanced = doc_get(spec, "advanced");
	const struct doc_node *triggers = doc_get(spec, "triggers"),
	                      *hpa = doc_get(advanced, "horizontalPodAutoscalerConfig");
	struct triggers t = {0};
	int64_t tail_minutes = 0;
	c->from = convert_origin(c);
	convert_target(c, spec, "scaleTargetRef");
	set_bounds(c, spec);
	force_activation(c, root);
	c->behavior = doc_get(hpa, "behavior");
	convert_note_growth(c);
	c->interval = convert_seconds(c, convert_get(spec, "pollingInterval", NULL));
	if (!c->interval)
		convert_note(c, "KEDA sends its queries every 30 s (pollingInterval) and its HPA every 15 s; the "
		                "policy decides every 15 s");
	for (const struct doc_node *trigger = triggers ? triggers->child : NULL; trigger; trigger = trigger->next)
		add_trigger(c, trigger, &t);
	if (t.n_active == 0 && c->n_windows > 0)
		add_constant(c);
	if (c->n_windows > 0)
		tail_minutes = tail_of(c, spec, &t);
	convert_schedules(c, tail_minutes);
	add_idle(c, spec, &t, tail_minutes);
	add_fallback(c, doc_get(spec, "fallback"), &t);
	if (convert_bool(convert_get(advanced, "restoreToOriginalReplicaCount", "false")) == 1)
		convert_note(c, "restoreToOriginalReplicaCount: write the number itself, as restoreReplicas");
	note_formula(c, doc_get(advanced, "scalingModifiers"));
	add_annotations(c, root);
	return true;
}
