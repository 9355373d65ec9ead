// SPDX-License-Identifier: Apache-2.0
// ScaledObject of KEDA, keda.sh/v1alpha1, with triggers of type prometheus, cpu, memory and cron. KEDA:
// apis/keda/v1alpha1/scaledobject_types.go, prometheus_scaler.go, cron_scaler.go.

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"
#include "policies/engine/formula.h"

#define HPA_SECONDS          15              // KEDA's HPA queries this often
#define INTERVAL_SECONDS_MAX 3600            // of spec.interval
#define IDLE_SECONDS_MAX     (7 * 24 * 3600) // of spec.idle.after

// is_authenticated: authModes has been read.
static void note_extra(struct conversion *c, const char *trigger, const struct doc_node *meta, bool is_authenticated)
{
	static const char *const lost[] = {"customHeaders", "queryParameters", "authModes", "unsafeSsl",
	                                   "cortexOrgID",   "namespace",       "timeout"};
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
		if (convert_bool(convert_get(meta, lost[i], "false")) == 0 ||
		    (is_authenticated && strcmp(lost[i], "authModes") == 0))
			continue;
		if (c->live && strcmp(lost[i], "timeout") != 0)
			convert_lost(c, "not supported: authentication or access by %s of the trigger %s", lost[i],
			             trigger);
		else
			convert_note(c, "%s of the trigger %s: configure access to the server in a file of --sources",
			             lost[i], trigger);
	}
}

// What the triggers of one object have in common.
struct triggers {
	const char *server; // of the first trigger of type prometheus
	size_t n_queries, n_cron, n_resources;
	size_t index;        // of the current trigger
	const char *formula; // of scalingModifiers, over the values of triggers; NULL: each trigger decides
	struct formula compiled;
	struct formula_op ops[FORMULA_OPS_MAX];
};

static void find_source(struct conversion *c, struct conversion_signal *s, const char *address,
                        const struct doc_node *trigger)
{
	const struct doc_node *ref = doc_get(trigger, "authenticationRef");
	const char *kind = convert_get(ref, "kind", "TriggerAuthentication"), *why = NULL;
	if (ref && strcmp(kind, "TriggerAuthentication") != 0) {
		convert_lost(c, "not supported: authentication by a %s, of the trigger %s", kind, s->name);
		return;
	}
	const struct convert_server server = {
	        .url = address,
	        .authentication = ref ? convert_get(ref, "name", "") : NULL,
	        .modes = convert_get(doc_get(trigger, "metadata"), "authModes", ""),
	};
	s->source = address[0] ? c->live->source_of(c->live->arg, &server, &why) : NULL;
	if (!s->source && why)
		convert_lost(c, "%s (trigger %s)", why, s->name);
	else if (!s->source)
		convert_lost(c,
		             "not supported: serverAddress \"%s\" of the trigger %s, which is not the URL of a source "
		             "of the controller",
		             address, s->name);
}

static void note_server(struct conversion *c, struct conversion_signal *s, const struct doc_node *trigger,
                        struct triggers *t)
{
	const char *address = convert_get(doc_get(trigger, "metadata"), "serverAddress", "");
	if (c->live) {
		find_source(c, s, address, trigger);
	} else if (t->server && strcmp(t->server, address) != 0) {
		s->source = s->name;
		convert_note(c,
		             "the query of the signal %s goes to another server: --prometheus %s=%s, and name this "
		             "namespace by --prometheus-namespace",
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
	(c->live ? convert_lost : convert_note)(
	        c, "activationThreshold of the trigger %s: %s is not a number; replaced by 0", trigger, text);
	return "0";
}

static const char *target_type(const struct doc_node *node)
{
	return strcmp(convert_get(node, "metricType", ""), "Value") == 0 ? "Value" : "AverageValue";
}

static void add_prometheus(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	const char *name = convert_get(trigger, "name", convert_get(meta, "metricName", "prometheus"));
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	s->query = convert_get(meta, "query", NULL);
	s->external_name = convert_text(c, "s%zu-prometheus", t->index);
	t->n_queries++;
	s->is_input = t->formula;
	if (!s->is_input) {
		s->target_type = target_type(trigger);
		s->target_value = convert_get(meta, "threshold", NULL);
	}
	if (convert_bool(convert_get(meta, "ignoreNullValues", "true")) != 0) {
		s->on_missing = "Zero";
		s->note = "KEDA reads an empty reply as 0 (ignoreNullValues), and so does onMissing: Zero. Without it, "
		          "an empty reply holds the scale";
	}
	note_server(c, s, trigger, t);
	bool is_authenticated = c->live && doc_get(trigger, "authenticationRef");
	if (doc_get(trigger, "authenticationRef") && !c->live)
		convert_note(c,
		             "authenticationRef of the trigger %s: configure credentials in a file of --sources, with "
		             "this namespace in allowedNamespaces",
		             name);
	note_extra(c, name, meta, is_authenticated);
	if (s->is_input)
		return;
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
	convert_activation(c, s->name, above);
}

static void add_resource(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const struct doc_node *meta = doc_get(trigger, "metadata");
	t->n_resources++;
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
		convert_lost(c, "the trigger %s, not converted: desiredReplicas %s is not a whole number", name, text);
		return;
	}
	if (convert_whole(c->max_replicas, &max) && max > 0 && wanted > max) {
		convert_note(c, "the trigger %s wants %s replicas, but maxReplicaCount is %s", name, text,
		             c->max_replicas);
		wanted = max;
	}
	if (convert_whole(c->min_replicas, &min) && wanted < min)
		wanted = min;
	convert_window(c, name, meta, wanted > 0 ? (int32_t)wanted : 1);
}

// The types of triggers that are converted. To add one, add a row.
static const struct trigger_type {
	const char *type;
	enum {
		TRIGGER_QUERY,    // a signal; a formula can name it
		TRIGGER_RESOURCE, // a metric of its own of the HPA, with a formula too
		TRIGGER_WINDOW    // a schedule; a formula cannot name it
	} kind;
	void (*add)(struct conversion *c, const struct doc_node *trigger, struct triggers *t);
} trigger_types[] = {
        {"prometheus", TRIGGER_QUERY, add_prometheus},
        {"cpu", TRIGGER_RESOURCE, add_resource},
        {"memory", TRIGGER_RESOURCE, add_resource},
        {"cron", TRIGGER_WINDOW, add_cron},
};

// Returns the row of the type of the trigger, or NULL.
static const struct trigger_type *trigger_type_of(const struct doc_node *trigger)
{
	const char *type = convert_get(trigger, "type", "");
	for (size_t i = 0; i < sizeof trigger_types / sizeof trigger_types[0]; i++)
		if (strcmp(type, trigger_types[i].type) == 0)
			return &trigger_types[i];
	return NULL;
}

static void add_trigger(struct conversion *c, const struct doc_node *trigger, struct triggers *t)
{
	const char *type = convert_get(trigger, "type", "");
	const struct trigger_type *found = trigger_type_of(trigger);
	bool is_read = t->index < FORMULA_SIGNALS_MAX && (t->compiled.reads >> t->index & 1);
	if (t->formula && !is_read && !(found && found->kind == TRIGGER_RESOURCE)) {
		convert_note(c, "the trigger %s: left out, as the formula does not name it and KEDA ignores it then",
		             convert_get(trigger, "name", type));
	} else if (found) {
		found->add(c, trigger, t);
	} else {
		convert_lost(c, "not converted: a trigger of type %s: export the metric to Prometheus and add a query",
		             type);
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
		c->fallback_note = convert_text(
		        c, "fallback.replicas 0: gpuscale never scales to zero during an outage; replaced by %lld",
		        (long long)n);
	else if (n != replicas)
		c->fallback_note = convert_text(c, "fallback.replicas %lld is outside of the bounds; replaced by %lld",
		                                (long long)replicas, (long long)n);
	return n == replicas ? text : convert_text(c, "%lld", (long long)n);
}

static void add_fallback(struct conversion *c, const struct doc_node *fallback, const struct triggers *t)
{
	static const char *const names[][2] = {{"static", "Static"},
	                                       {"currentReplicas", "CurrentReplicas"},
	                                       {"currentReplicasIfHigher", "CurrentReplicasIfHigher"},
	                                       {"currentReplicasIfLower", "CurrentReplicasIfLower"},
	                                       {"scalingModifiers", "ScalingModifiers"},
	                                       {"triggerScoped", "ScalingModifiers"}};
	size_t n = sizeof names / sizeof names[0] - (t->formula ? 0 : 2);
	const char *behavior = convert_get(fallback, "behavior", "static");
	if (!fallback || c->n_signals == 0)
		return;
	c->fallback_threshold = convert_get(fallback, "failureThreshold", "3");
	for (size_t i = 0; i < n; i++)
		if (strcmp(behavior, names[i][0]) == 0)
			c->fallback_behavior = names[i][1];
	if (!c->fallback_behavior) {
		(c->live ? convert_lost : convert_note)(
		        c, "fallback.behavior %s: requires a formula, which cannot be converted; replaced by Static",
		        behavior);
		c->fallback_behavior = "Static";
	}
	if (strcmp(c->fallback_behavior, "CurrentReplicas") != 0 &&
	    strcmp(c->fallback_behavior, "ScalingModifiers") != 0)
		c->fallback_replicas = bounded(c, convert_get(fallback, "replicas", "1"));
	const char *moved = c->fallback_note ? c->fallback_note : "";
	c->fallback_note = convert_text(c,
	                                "%s%sKEDA ends a fallback with the first reading; until failureThreshold "
	                                "readings, at least one, have come back, the policy does not scale down",
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
	convert_activation(c, s->name, "0");
}

// A number of seconds, moved into the range of the field of a policy.
static const char *period(struct conversion *c, const struct doc_node *spec, const char *field, const char *fallback,
                          int64_t min, int64_t max)
{
	const char *text = convert_get(spec, field, fallback);
	int64_t seconds;
	if (!convert_whole(text, &seconds) || (seconds >= min && seconds <= max))
		return convert_seconds(c, text);
	seconds = seconds < min ? min : max;
	convert_note(c, "%s %s: replaced by %lld s, the %s that a policy can have", field, text, (long long)seconds,
	             seconds == min ? "least" : "most");
	return convert_text(c, "%llds", (long long)seconds);
}

static void add_idle(struct conversion *c, const struct doc_node *spec)
{
	if (!c->idle_replicas)
		return;
	if (c->n_activations == 0) {
		convert_note(c, "scaling to zero needs a signal that shows whether the target is needed: spec.idle");
		return;
	}
	c->idle_note = "KEDA wakes a target to minReplicaCount, at least 1, and its HPA goes on from there; a policy "
	               "goes at once to what the signals ask for";
	c->idle_after = period(c, spec, "cooldownPeriod", "300", 0, IDLE_SECONDS_MAX);
	c->idle_initial = period(c, spec, "initialCooldownPeriod", NULL, 0, IDLE_SECONDS_MAX);
}

// ---- annotations ----

// Any text but one that Go's ParseBool reads as false counts.
static bool is_annotated(const struct doc_node *annotations, const char *name)
{
	return doc_get(annotations, name) && convert_bool(convert_get(annotations, name, "")) != 0;
}

// Replaces everything that decides by a constant number of replicas.
static void keep_at(struct conversion *c, const char *replicas)
{
	int64_t n;
	if (!convert_whole(replicas, &n)) {
		convert_lost(c, "the annotation paused-replicas: expected a whole number, got \"%s\"", replicas);
		return;
	}
	c->n_signals = c->n_schedules = c->n_activations = 0;
	c->combine = c->fallback_threshold = c->idle_replicas = c->idle_after = c->idle_initial = NULL;
	c->paused = false;
	c->paused_replicas = replicas;
	add_constant(c);
	if (n == 0) {
		c->idle_replicas = "0";
		c->idle_after = "0s";
	} else {
		c->n_activations = 0;
		c->min_replicas = c->max_replicas = replicas;
	}
}

static void add_annotations(struct conversion *c)
{
	const struct doc_node *a = c->annotations;
	const char *replicas = convert_get(a, "autoscaling.keda.sh/paused-replicas", NULL);
	c->paused = is_annotated(a, "autoscaling.keda.sh/paused") || replicas;
	c->is_down_disabled = is_annotated(a, "autoscaling.keda.sh/paused-scale-in");
	c->is_up_disabled = is_annotated(a, "autoscaling.keda.sh/paused-scale-out");
	if (replicas && c->live)
		keep_at(c, replicas);
	else if (replicas)
		convert_note(c,
		             "the annotation paused-replicas: KEDA keeps the target at %s; the policy is paused, and "
		             "keeps the scale that it finds: kubectl scale --replicas=%s",
		             replicas, replicas);
	if (c->is_down_disabled)
		convert_note(c, "the annotation paused-scale-in: behavior.scaleDown.selectPolicy Disabled and a long "
		                "idle.after do that; write your own when you end the pause");
	if (c->is_up_disabled)
		convert_note(c, "the annotation paused-scale-out: behavior.scaleUp.selectPolicy Disabled does that, "
		                "but activation and minReplicas still add replicas");
	if (c->is_down_disabled && c->idle_after)
		c->idle_after = convert_text(c, "%ds", IDLE_SECONDS_MAX);
}

// KEDA takes a target with this annotation for needed, whatever the triggers say.
static void force_activation(struct conversion *c)
{
	const char *text = convert_get(c->annotations, "autoscaling.keda.sh/force-activation", NULL);
	if (convert_bool(text) != 1 || !c->idle_replicas)
		return;
	c->idle_replicas = NULL;
	convert_note(c, "the annotation force-activation keeps the target active: no idle, and minReplicas at least 1; "
	                "if the target has 0 replicas now, start it: kubectl scale --replicas=1");
}

// ---- scalingModifiers ----

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// Compiles the formula over the names of the triggers. KEDA: pkg/scaling/modifiers/formula.go.
static void read_formula(struct conversion *c, const struct doc_node *modifiers, const struct doc_node *triggers,
                         struct triggers *t)
{
	const char *names[FORMULA_SIGNALS_MAX], *formula = convert_get(modifiers, "formula", "");
	struct formula_fault fault = {.message = "the name of one of its triggers is too long"};
	size_t n = 0;
	bool fits = true;
	int n_resources = 0;
	for (const struct doc_node *g = triggers ? triggers->child : NULL; g && n < FORMULA_SIGNALS_MAX; g = g->next) {
		const char *name = convert_get(g, "name", "");
		const struct trigger_type *type = trigger_type_of(g);
		bool is_query = type && type->kind == TRIGGER_QUERY;
		n_resources += type && type->kind == TRIGGER_RESOURCE;
		names[n] = is_query && !name[strspn(name, WORD)] ? name : ""; // others cannot be named
		fits &= strlen(names[n++]) <= CONVERT_NAME_MAX;
	}
	if (!formula[0])
		return;
	if (fits &&
	    formula_compile(formula, strlen(formula), names, n, FORMULA_VALUES, t->ops, &t->compiled, &fault) == 0) {
		if (__builtin_popcount(t->compiled.reads) + n_resources < CONVERT_SIGNALS_MAX) {
			t->formula = formula;
			return;
		}
		fault = (struct formula_fault){.message = "it and its triggers are more signals than a policy has"};
	}
	convert_lost(c,
	             "not converted: advanced.scalingModifiers, whose formula over the values of the triggers decides: "
	             "formula \"%s\", target %s, activationTarget %s, metricType %s: %.*s %s",
	             formula, convert_get(modifiers, "target", "missing"),
	             convert_get(modifiers, "activationTarget", "0"),
	             convert_get(modifiers, "metricType", "AverageValue"), (int)fault.len, formula + fault.offset,
	             fault.message);
}

// The formula becomes a signal; only its value decides.
static void add_formula(struct conversion *c, const struct doc_node *modifiers, const struct doc_node *fallback,
                        const struct triggers *t)
{
	const char *behavior = convert_get(fallback, "behavior", "static");
	bool is_filled = strcmp(behavior, "scalingModifiers") == 0 || strcmp(behavior, "triggerScoped") == 0;
	struct conversion_signal *s = t->formula ? convert_add_signal(c, "composite") : NULL;
	if (!s)
		return;
	s->formula = t->formula;
	s->external_name = "composite-metric";
	s->target_type = target_type(modifiers);
	s->target_value = convert_get(modifiers, "target", NULL);
	for (uint32_t i = 0; i < t->compiled.n_ops && !is_filled; i++)
		if (t->ops[i].code == FORMULA_ELSE || t->ops[i].code == FORMULA_IS_NIL)
			s->note = "KEDA knows missing values in a formula only with fallback.behavior "
			          "scalingModifiers, and holds the scale otherwise; here they are nil at once";
	convert_activation(c, s->name, convert_get(modifiers, "activationTarget", "0"));
}

void convert_keda(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *spec = doc_get(root, "spec"), *advanced = doc_get(spec, "advanced");
	const struct doc_node *triggers = doc_get(spec, "triggers"),
	                      *hpa = doc_get(advanced, "horizontalPodAutoscalerConfig");
	const struct doc_node *modifiers = doc_get(advanced, "scalingModifiers"), *fallback = doc_get(spec, "fallback");
	struct triggers t = {0};
	set_bounds(c, spec);
	force_activation(c);
	c->behavior = doc_get(hpa, "behavior");
	convert_note_growth(c);
	c->interval = period(c, spec, "pollingInterval", NULL, 1, INTERVAL_SECONDS_MAX);
	int64_t seconds;
	if (c->live && convert_whole(convert_get(spec, "pollingInterval", NULL), &seconds) && seconds > HPA_SECONDS)
		c->interval = NULL; // 15 s, as its HPA
	else if (!c->interval)
		convert_note(c, "KEDA sends its queries every 30 s (pollingInterval) and its HPA every 15 s; the "
		                "policy decides every 15 s");
	else if (convert_whole(convert_get(spec, "pollingInterval", NULL), &seconds) && seconds > HPA_SECONDS)
		convert_note(c,
		             "pollingInterval %lld: KEDA's HPA decides every %d s all the same; interval is the time "
		             "between two decisions",
		             (long long)seconds, HPA_SECONDS);
	read_formula(c, modifiers, triggers, &t);
	for (const struct doc_node *trigger = triggers ? triggers->child : NULL; trigger;
	     trigger = trigger->next, t.index++)
		add_trigger(c, trigger, &t);
	add_formula(c, modifiers, fallback, &t);
	if (t.n_queries == 0 && c->n_windows > 0)
		add_constant(c);
	if (c->n_windows > 0)
		c->schedules_note = "KEDA's cron triggers are metrics: behavior.scaleUp applies at a start, while a "
		                    "schedule sets its bounds at once";
	convert_schedules(c);
	add_idle(c, spec);
	add_fallback(c, fallback, &t);
	if (convert_bool(convert_get(advanced, "restoreToOriginalReplicaCount", "false")) == 1)
		convert_note(c, "restoreToOriginalReplicaCount: write the number itself, as restoreReplicas");
	add_annotations(c);
}
