// SPDX-License-Identifier: Apache-2.0
// The engine as a filter: reads observations, writes decisions, and keeps the state.
#include <cjson/cJSON.h>
#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"
#include "policies/test/filters.h"
#include "policies/test/line_fields.h"

#define TIME_MAX_S 253402300799.0 // 9999-12-31T23:59:59Z, the last time that can be written

static const struct line_field root_fields[] = {
        {.name = "time"},
        {"replicas", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct observation, spec_replicas)},
        {"ready", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct observation, ready_replicas)},
        {"pending", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct observation, pending_replicas)},
        {"status", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct observation, status_replicas)},
        {.name = "signals"},
        {.name = "pods"},
        {.name = "capacity"},
        {"unhealthy", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct observation, health.unhealthy)},
};
static const struct line_field capacity_fields[] = {
        {"fit", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct obs_capacity, fit)},
        {"unschedulable", LINE_WHOLE, 0, POLICY_REPLICAS_MAX, offsetof(struct obs_capacity, unschedulable)},
        {.name = "seconds"},
        {.name = "why"},
};

static int parse_time(const cJSON *item, int64_t *ret_ms, struct err *e)
{
	double s = cJSON_IsNumber(item) ? item->valuedouble : -1;
	if (!(s >= 0 && s <= TIME_MAX_S))
		return err_set(e, ERR_INPUT, "time must be a number of seconds since the epoch, from 0 to %.0f",
		               TIME_MAX_S);
	*ret_ms = llround(s * 1000);
	return 0;
}

// ---- signals ----

static int parse_value(const cJSON *item, const char *signal, double *ret_value, struct err *e)
{
	if (cJSON_IsNumber(item)) {
		*ret_value = item->valuedouble;
		return 0;
	}
	if (cJSON_IsString(item) &&
	    num_parse_sample(item->valuestring, strlen(item->valuestring), ret_value, NULL) == 0)
		return 0;
	return err_set(e, ERR_INPUT, "a value of signal %s must be a number, \"NaN\", \"+Inf\", \"-Inf\" or null",
	               signal);
}

static int parse_series(const cJSON *object, const char *signal, int64_t now_ms, struct arena *a,
                        struct obs_signal *out, struct err *e)
{
	size_t n = (size_t)cJSON_GetArraySize(object);
	if (n > STEP_SERIES_MAX)
		return err_set(e, ERR_LIMIT, "signal %s has %zu series, the ceiling is %d", signal, n, STEP_SERIES_MAX);
	struct obs_series *series = arena_calloc(a, n, sizeof *series);
	char shown[LINE_SHOWN_BYTES];
	out->series = series;
	for (const cJSON *c = object->child; c; c = c->next) {
		if (cJSON_IsNull(c))
			continue;
		struct obs_series *s = series ? &series[out->n_series++] : NULL;
		char *pod = s ? arena_strdup(a, c->string) : NULL;
		if (!pod)
			return line_fields_no_memory(e);
		*s = (struct obs_series){.pod = pod, .time_ms = now_ms};
		if (parse_value(c, signal, &s->value, e) < 0)
			return -1;
	}
	if (line_fields_sort_names(series, out->n_series, sizeof *series, shown))
		return err_set(e, ERR_INPUT, "signal %s has series \"%s\" twice", signal, shown);
	out->state = out->n_series ? OBS_OK : OBS_EMPTY;
	return 0;
}

// {"error": "timeout"}: the query failed. A series called error has a number.
static const char *failure(const cJSON *item)
{
	const cJSON *c = item->child;
	if (!cJSON_IsObject(item) || !c || c->next || strcmp(c->string, "error") != 0 || !cJSON_IsString(c))
		return NULL;
	double v;
	return num_parse_sample(c->valuestring, strlen(c->valuestring), &v, NULL) < 0 ? c->valuestring : NULL;
}

static int parse_signal(const cJSON *item, const char *name, int64_t now_ms, struct arena *a, struct obs_signal *out,
                        struct err *e)
{
	const char *why = failure(item);
	*out = (struct obs_signal){.state = OBS_EMPTY};
	if (cJSON_IsNull(item))
		return 0;
	if (why) {
		out->state = OBS_FAILED;
		out->detail = arena_strdup(a, why);
		return out->detail ? 0 : line_fields_no_memory(e);
	}
	if (cJSON_IsObject(item))
		return parse_series(item, name, now_ms, a, out, e);
	struct obs_series *one = arena_alloc(a, sizeof *one);
	if (!one)
		return line_fields_no_memory(e);
	*one = (struct obs_series){.pod = "", .time_ms = now_ms};
	*out = (struct obs_signal){.state = OBS_OK, .series = one, .n_series = 1};
	return parse_value(item, name, &one->value, e);
}

static int parse_signals(const struct policy *p, const cJSON *object, struct arena *a, struct step_line *line,
                         struct err *e)
{
	bool seen[POLICY_SIGNALS_MAX] = {false};
	const char *names[POLICY_SIGNALS_MAX], *other = NULL;
	size_t n_known = 0;
	for (size_t k = 0; k < p->n_signals; k++)
		names[k] = p->signals[k].name;
	if (!cJSON_IsObject(object))
		return err_set(e, ERR_INPUT, "signals must be an object: {\"%s\": 12}",
		               p->n_signals ? p->signals[0].name : "a");
	for (const cJSON *c = object->child; c; c = c->next) {
		size_t i = policy_signal_index(p, c->string);
		if (i == p->n_signals && num_closest_name(c->string, names, p->n_signals))
			return line_fields_unknown("signal", c->string, names, p->n_signals, e);
		if (i == p->n_signals) { // a recording may have more signals than this policy
			other = c->string;
			continue;
		}
		if (seen[i])
			return err_set(e, ERR_INPUT, "signal %s is given twice", p->signals[i].name);
		seen[i] = true;
		n_known++;
		if (parse_signal(c, p->signals[i].name, line->time_ms, a, &line->signals[i], e) < 0)
			return -1;
		line->details[i] = line->signals[i].detail;
	}
	return other && n_known == 0 ? line_fields_unknown("signal", other, names, p->n_signals, e) : 0;
}

// ---- pods ----

static int parse_pods(const cJSON *object, struct arena *a, struct observation *o, struct err *e)
{
	if (!cJSON_IsObject(object))
		return err_set(e, ERR_INPUT, "pods must be an object: {\"llama-0\": \"Ready\"}");
	size_t n = (size_t)cJSON_GetArraySize(object);
	if (n > STEP_SERIES_MAX)
		return err_set(e, ERR_LIMIT, "%zu pods are more than the ceiling of %d", n, STEP_SERIES_MAX);
	char shown[LINE_SHOWN_BYTES];
	struct obs_pod *pods = arena_calloc(a, n ? n : 1, sizeof *pods);
	size_t k = 0;
	for (const cJSON *c = object->child; c; c = c->next, k++) {
		const char *text = cJSON_IsString(c) ? c->valuestring : "";
		size_t s = 0;
		while (s < POD_STATE__COUNT && strcmp(pod_state_names[s], text) != 0)
			s++;
		if (s == POD_STATE__COUNT)
			return line_fields_unknown("state of a pod", text, pod_state_names, POD_STATE__COUNT, e);
		char *name = pods ? arena_strdup(a, c->string) : NULL;
		if (!name)
			return line_fields_no_memory(e);
		pods[k] = (struct obs_pod){name, (enum pod_state)s};
	}
	if (!pods)
		return line_fields_no_memory(e);
	o->pods = pods;
	o->n_pods = n;
	if (line_fields_sort_names(pods, n, sizeof *pods, shown)) // would count twice
		return err_set(e, ERR_INPUT, "pod \"%s\" is given twice", shown);
	return 0;
}

// ---- capacity ----

static int parse_unschedulable(const cJSON *seconds, int64_t now_ms, struct arena *a, struct obs_capacity *c,
                               struct err *e)
{
	double s = !seconds ? 0 : cJSON_IsNumber(seconds) ? seconds->valuedouble : -1;
	if (!(s >= 0 && s <= TIME_MAX_S))
		return err_set(e, ERR_INPUT, "capacity.seconds must be a number of seconds, from 0 to %.0f",
		               TIME_MAX_S);
	if (c->unschedulable > STEP_SERIES_MAX)
		return err_set(e, ERR_LIMIT, "capacity.unschedulable is %d, the ceiling is %d", c->unschedulable,
		               STEP_SERIES_MAX);
	int64_t *since_ms = arena_calloc(a, (size_t)c->unschedulable + 1, sizeof *since_ms);
	if (!since_ms)
		return line_fields_no_memory(e);
	for (; c->n_since < (size_t)c->unschedulable; c->n_since++)
		since_ms[c->n_since] = now_ms - llround(s * 1000);
	c->since_ms = since_ms;
	return 0;
}

static int parse_capacity(const cJSON *object, struct arena *a, struct step_line *line, size_t n_signals, struct err *e)
{
	struct obs_capacity *c = &line->observation.capacity;
	const cJSON *why = line_field_of(object, "why");
	if (!cJSON_IsObject(object))
		return err_set(e, ERR_INPUT, "capacity must be an object: {\"fit\": 2}");
	if (line_fields_check(object, "member of capacity", LINE_FIELDS(capacity_fields), e) < 0)
		return -1;
	if (!line_field_of(object, "fit"))
		return err_set(e, ERR_INPUT, "capacity.fit is missing");
	if (why && !cJSON_IsString(why))
		return err_set(e, ERR_INPUT, "capacity.why must be a text");
	if (line_fields_numbers(object, "capacity.", LINE_FIELDS(capacity_fields), c, e) < 0 ||
	    parse_unschedulable(line_field_of(object, "seconds"), line->time_ms, a, c, e) < 0)
		return -1;
	c->detail = why ? arena_strdup(a, why->valuestring) : NULL;
	line->details[n_signals] = c->detail;
	c->is_known = true;
	return why && !c->detail ? line_fields_no_memory(e) : 0;
}

// ---- the line ----

static int parse_tree(const struct policy *p, const cJSON *root, struct arena *a, struct step_line *line, struct err *e)
{
	const cJSON *time = line_field_of(root, "time"), *pods = line_field_of(root, "pods");
	const cJSON *capacity = line_field_of(root, "capacity"), *signals = line_field_of(root, "signals");
	if (!cJSON_IsObject(root))
		return err_set(e, ERR_INPUT,
		               "a line must be an object: {\"time\": 0, \"replicas\": 1, \"signals\": {}}");
	if (line_fields_check(root, "member", LINE_FIELDS(root_fields), e) < 0)
		return -1;
	if (!time || !line_field_of(root, "replicas"))
		return err_set(e, ERR_INPUT, "%s is missing", time ? "replicas" : "time");
	struct observation *o = &line->observation;
	*o = (struct observation){.ready_replicas = -1, .signals = line->signals, .n_signals = p->n_signals};
	if (parse_time(time, &line->time_ms, e) < 0 ||
	    line_fields_numbers(root, "", LINE_FIELDS(root_fields), o, e) < 0)
		return -1;
	if (!line_field_of(root, "status"))
		o->status_replicas = o->spec_replicas;
	o->health.is_known = line_field_of(root, "unhealthy") != NULL;
	if (pods && parse_pods(pods, a, o, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n_signals; i++) {
		line->signals[i] = (struct obs_signal){.state = OBS_EMPTY};
		line->details[i] = NULL;
	}
	line->details[p->n_signals] = NULL;
	if (capacity && parse_capacity(capacity, a, line, p->n_signals, e) < 0)
		return -1;
	return signals ? parse_signals(p, signals, a, line, e) : 0;
}

int step_line_parse(const struct policy *policy, const char *text, size_t len, struct arena *a,
                    struct step_line *ret_line, struct err *e)
{
	if (len > STEP_LINE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the line has %zu bytes, the ceiling is %d", len, STEP_LINE_BYTES_MAX);
	cJSON *root = json_read(text, len, e);
	int rc = root ? parse_tree(policy, root, a, ret_line, e) : -1;
	cJSON_Delete(root);
	return rc;
}

#define STEP_ARENA_MAX (16 * 1024 * 1024) // memory for one line: 1 MiB of text is at most 5 MiB of series

struct step {
	const struct policy *policy; // policy of the binding
	const struct scale_target *target;
	void *state;
	struct arena line; // memory for the current line
	bool started;
	int64_t last_ms;
	int32_t last_replicas;
	struct step_line seen;
	struct decision decision;
};

struct step *step_new(const struct binding *binding)
{
	const struct policy *policy = binding->policy;
	struct step *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->policy = policy;
	s->target = binding->target;
	arena_init(&s->line, STEP_ARENA_MAX);
	s->state = calloc(1, decide_state_bytes(policy));
	if (s->state) {
		decide_state_init(policy, s->state);
		return s;
	}
	step_free(s);
	return NULL;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	arena_done(&s->line);
	free(s->state);
	free(s);
}

int step_answer(void *step, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct step *s = step;
	arena_reset(&s->line);
	int rc = step_line_parse(s->policy, line, len, &s->line, &s->seen, e);
	if (rc == 0 && s->started && s->seen.time_ms < s->last_ms)
		rc = err_set(e, ERR_INPUT, "time goes back from %.3f to %.3f: a new run needs a new process",
		             (double)s->last_ms / 1000, (double)s->seen.time_ms / 1000);
	if (rc < 0) {
		line_fields_put_error(out, e->msg);
		return -1;
	}
	int32_t replicas = s->seen.observation.spec_replicas;
	if (s->started && replicas != s->last_replicas)
		decide_record_scale(s->policy, s->state, s->last_ms, s->last_replicas, replicas);
	decide(s->policy, &s->seen.observation, s->seen.time_ms, s->state, &s->decision);
	s->started = true;
	s->last_ms = s->seen.time_ms;
	s->last_replicas = replicas;

	struct decided decided = {
	        .policy = s->policy, .target = s->target, .decision = &s->decision, .details = s->seen.details};
	struct json_writer w;
	json_write_init(&w, out, 0);
	explain_decision_json(&w, &decided);
	buf_putc(out, '\n');
	return 0;
}
