// SPDX-License-Identifier: Apache-2.0
// PodAutoscaler of AIBrix, autoscaling.aibrix.ai/v1alpha1, with the strategies HPA, KPA and APA. AIBrix:
// api/autoscaling/v1alpha1/podautoscaler_types.go, pkg/controller/podautoscaler.
#include <strings.h>

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"

#define RESYNC_SECONDS     "10"
#define WINDOW_SECONDS_MAX 3600 // of behavior.stabilizationWindowSeconds

static const char *setting(const struct conversion *c, const char *name, const char *fallback)
{
	char key[96];
	snprintf(key, sizeof key, "autoscaling.aibrix.ai/%s", name);
	return convert_get(c->annotations, key, fallback);
}

// The HPA of the strategy HPA has whole targets. AIBrix: hpa_resources.go.
static const char *round_up(struct conversion *c, const char *name, const char *text)
{
	double value;
	struct err e;
	if (num_parse_f64(text, strlen(text), &value, &e) < 0 || value < 0 || value > INT32_MAX)
		return text;
	int64_t whole = (int64_t)value + ((double)(int64_t)value < value);
	if ((double)whole > value)
		convert_note(c, "the metric %s: AIBrix rounds the target %s up to %lld for its HPA", name, text,
		             (long long)whole);
	return convert_text(c, "%lld", (long long)whole);
}

// `window_seconds` is the stable window of the strategy KPA, which works on the total; NULL for others.
static void add_pod_metric(struct conversion *c, const struct doc_node *source, const char *window_seconds, bool is_hpa)
{
	const char *name = convert_get(source, "targetMetric", "");
	struct conversion_signal *s = convert_add_signal(c, name);
	if (!s)
		return;
	const char *selector = convert_selector(c, name, convert_pods(c, "", ""));
	s->query =
	        window_seconds ? convert_text(c, "sum(%s)", selector) : convert_text(c, "sum by (pod) (%s)", selector);
	s->target_type = window_seconds ? "AverageValue" : "Pods";
	s->target_value = convert_get(source, "targetValue", NULL);
	if (is_hpa && s->target_value)
		s->target_value = round_up(c, name, s->target_value);
	s->window_seconds = convert_seconds(c, window_seconds);
	s->note = "AIBrix scrapes each pod, and knows some metrics of engines by names of its own: compare the name "
	          "with those in Prometheus. A pod without a sample is treated as 0 in AIBrix";
	if (window_seconds && !c->panic_signal)
		c->panic_signal = s->name;
}

static void add_source(struct conversion *c, const struct doc_node *source, const char *window_seconds, bool is_hpa)
{
	const char *type = convert_get(source, "metricSourceType", ""), *name = convert_get(source, "targetMetric", "");
	const char *target = convert_get(source, "targetValue", NULL);
	if (strcmp(type, "pod") == 0 || strcmp(type, "custom") == 0) {
		add_pod_metric(c, source, window_seconds, is_hpa);
	} else if (strcmp(type, "resource") == 0) {
		const char *whole = is_hpa && target ? round_up(c, name, target) : target;
		if (is_hpa && whole && strcmp(name, "memory") == 0) // MiB for each pod
			convert_resource(c, name, NULL, NULL, convert_text(c, "%sMi", whole));
		else
			convert_resource(c, name, NULL, whole, NULL);
	} else {
		convert_lost(c,
		             "not converted: the metric %s of a source of type %s (http://%s%s): bring it to "
		             "Prometheus, and write its query",
		             name, type, convert_get(source, "endpoint", ""), convert_get(source, "path", ""));
	}
}

// Returns a cooldown window, a Go duration such as 5m, in seconds; digits alone are seconds.
static const char *window_of(struct conversion *c, const char *name, const char *fallback)
{
	const char *text = setting(c, name, fallback);
	int64_t ms, seconds;
	struct err e;
	if (convert_whole(text, &seconds))
		ms = seconds * 1000;
	else if (num_parse_flag_duration_ms(text, strlen(text), &ms, &e) < 0) {
		convert_note(c, "the annotation %s: %s is not a duration; replaced by %s s", name, text, fallback);
		return fallback;
	}
	if (ms > WINDOW_SECONDS_MAX * 1000) {
		convert_note(c, "the annotation %s %s: a window is at most %d s here", name, text, WINDOW_SECONDS_MAX);
		ms = WINDOW_SECONDS_MAX * 1000;
	}
	return convert_text(c, "%lld", (long long)(ms / 1000));
}

// Returns the text of a direction, whose rate is r replicas per replica and decision.
static const char *rules(struct conversion *c, bool is_up, bool is_hpa)
{
	const char *field = is_up ? "max-scale-up-rate" : "max-scale-down-rate", *rate = setting(c, field, "2");
	const char *window = is_up ? window_of(c, "scale-up-cooldown-window", "0")
	                           : window_of(c, "scale-down-cooldown-window", "300");
	const char *tolerance = setting(c, is_up ? "scale-up-tolerance" : "scale-down-tolerance", "0.1");
	double r;
	struct err e;
	if (num_parse_f64(rate, strlen(rate), &r, &e) < 0 || r <= 1 || r > 1000) {
		convert_note(c, "the annotation %s: %s is not between 1 and 1000; replaced by 2", field, rate);
		r = 2;
	}
	double percent = is_up ? 100 * (r - 1) : 100 * (1 - 1 / r);
	int whole = percent < 1 ? 1 : (int)percent;
	if (whole < percent)
		convert_note(c, "the annotation %s %s: a percentage is a whole number here; replaced by %d", field,
		             rate, whole);
	const char *part = ""; // the HPA that AIBrix creates has the default tolerance
	if (!is_hpa && (num_parse_f64(tolerance, strlen(tolerance), &r, &e) < 0 || r < 0 || r > 10)) {
		convert_note(c, "a tolerance of %s: not a number between 0 and 10; replaced by 0.1", tolerance);
		tolerance = "0.1";
	}
	if (!is_hpa)
		part = convert_text(c, "tolerance: \"%s\", ", tolerance);
	return convert_text(
	        c, "{stabilizationWindowSeconds: %s, %spolicies: [{type: Percent, value: %d, periodSeconds: %s}]}",
	        window, part, whole, is_hpa ? "60" : RESYNC_SECONDS);
}

static bool put_time(const char *text, int *ret_hour, int *ret_minute)
{
	int64_t hour, minute;
	struct err e;
	if (strlen(text) != 5 || text[2] != ':' || num_parse_i64(text, 2, 0, 23, &hour, &e) < 0 ||
	    num_parse_i64(text + 3, 2, 0, 59, &minute, &e) < 0)
		return false;
	*ret_hour = (int)hour;
	*ret_minute = (int)minute;
	return true;
}

// Sets *ret_list to the days for cron, each `later` days later; "*" for none. False if one is not a day.
static bool days_of(struct conversion *c, const struct doc_node *days, int later, const char **ret_list)
{
	static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
	                                    "Thursday", "Friday", "Saturday"};
	const char *list = NULL;
	if (days && days->kind == DOC_SCALAR && days->text_len > 0)
		return false;
	for (const struct doc_node *d = days ? days->child : NULL; d; d = d->next) {
		int day = 0;
		while (day < 7 && strcasecmp(d->text, names[day]) != 0 &&
		       (strlen(d->text) != 3 || strncasecmp(d->text, names[day], 3) != 0))
			day++;
		if (day == 7)
			return false;
		list = convert_text(c, "%s%s%.3s", list ? list : "", list ? "," : "", names[(day + later) % 7]);
	}
	*ret_list = list ? list : "*";
	return true;
}

static void add_schedule(struct conversion *c, const struct doc_node *node)
{
	const char *name = convert_get(node, "name", "schedule"), *days, *end_days;
	const struct doc_node *week = doc_get(node, "daysOfWeek");
	int hour, minute, end_hour, end_minute;
	bool is_read = put_time(convert_get(node, "startTime", ""), &hour, &minute) &&
	               put_time(convert_get(node, "endTime", ""), &end_hour, &end_minute);
	int length = is_read ? (end_hour - hour) * 60 + end_minute - minute : 0;
	if (c->n_schedules == CONVERT_SCHEDULES_MAX || length == 0 || !days_of(c, week, 0, &days) ||
	    !days_of(c, week, length < 0, &end_days)) {
		convert_lost(c,
		             "not converted: the schedule %s needs startTime and endTime as HH:MM that differ, and "
		             "daysOfWeek such as Mon; a policy has at most %d",
		             name, CONVERT_SCHEDULES_MAX);
		return;
	}
	if (length < 0)
		convert_note(c, "the schedule %s crosses midnight, which AIBrix refuses: it ends on the next day here",
		             name);
	struct conversion_schedule *s = &c->schedules[c->n_schedules++];
	*s = (struct conversion_schedule){.name = name};
	s->start = convert_text(c, "%d %d * * %s", minute, hour, days);
	s->end = convert_text(c, "%d %d * * %s", end_minute, end_hour, end_days);
	s->time_zone = convert_get(node, "timezone", "UTC");
	s->min_replicas = convert_get(node, "minReplicas", NULL);
	s->max_replicas = convert_get(node, "maxReplicas", NULL);
}

// Knative's algorithm: the mean of a stable window, and panic in a short one.
static void add_panic(struct conversion *c, const struct doc_node *spec)
{
	if (!c->panic_signal)
		return;
	c->panic_window = convert_seconds(c, convert_get(spec, "panicWindowSeconds", "60"));
	c->panic_threshold = setting(c, "panic-threshold", "2");
	convert_note(c,
	             "scalingStrategy KPA: AIBrix panics when the panic window is %s times the stable one; the policy "
	             "when it asks for as many times the ready replicas",
	             c->panic_threshold);
}

static void note_lost(struct conversion *c, const struct doc_node *spec)
{
	const char *role = convert_get(doc_get(spec, "subTargetSelector"), "roleName", NULL);
	if (role) {
		convert_lost(c,
		             "not converted: subTargetSelector.roleName %s: a policy scales the whole target, or the "
		             "role as an object of its own with a scale subresource",
		             role);
	}
	if (doc_get(spec, "predictive"))
		convert_note(c, "predictive: spec.forecast looks ahead, too, and has fields of its own");
	if (convert_bool(setting(c, "scale-to-zero", "false")) == 1)
		convert_note(c, "the annotation scale-to-zero: name a signal that has data without pods in spec.idle");
}

void convert_aibrix(struct conversion *c, const struct doc_node *root)
{
	const struct doc_node *spec = doc_get(root, "spec");
	const struct doc_node *sources = doc_get(spec, "metricsSources"), *schedules = doc_get(spec, "schedules");
	const char *strategy = convert_get(spec, "scalingStrategy", "APA");
	if (strcmp(c->min_replicas, "0") == 0)
		c->min_replicas = "1"; // scaling to zero is an annotation
	bool is_kpa = strcmp(strategy, "KPA") == 0, is_hpa = strcmp(strategy, "HPA") == 0;
	const char *window_seconds = is_kpa ? convert_get(spec, "observeWindowSeconds", "180") : NULL;
	for (const struct doc_node *s = sources ? sources->child : NULL; s; s = s->next)
		add_source(c, s, window_seconds, is_hpa);
	for (const struct doc_node *s = schedules ? schedules->child : NULL; s; s = s->next)
		add_schedule(c, s);
	if (!is_hpa)
		c->interval = RESYNC_SECONDS "s";
	c->scale_up = rules(c, true, is_hpa);
	c->scale_down = rules(c, false, is_hpa);
	if (is_kpa)
		add_panic(c, spec);
	note_lost(c, spec);
}
