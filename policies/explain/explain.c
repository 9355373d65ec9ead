// SPDX-License-Identifier: Apache-2.0
#include "policies/explain/explain.h"

#include <inttypes.h>
#include <math.h>

#include "base/base.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/policy.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

const char *const output_format_names[OUTPUT__COUNT + 1] = {"table", "wide", "text",  "json",   "yaml", "name",
                                                            "csv",   "svg",  "sarif", "github", "html", NULL};

// Formats metric values for people: six significant digits, without an exponent in the usual range.
static void format_value(char *out, size_t size, double v)
{
	if (isfinite(v))
		snprintf(out, size, "%.6g", v);
	else
		num_format_f64(out, v);
}

static const char *detail_of(const struct decided *d, const struct trace_entry *t)
{
	if (!d->details)
		return NULL;
	return t->stage == STAGE_CAPACITY ? d->details[d->policy->n_signals]
	       : t->signal >= 0           ? d->details[t->signal]
	                                  : NULL;
}

// Returns whether only the first series were read; the detail then says so.
static bool has_more(const struct decided *d, const struct trace_entry *t)
{
	return t->reason == REASON_AMBIGUOUS_SERIES && detail_of(d, t);
}

// Formats a rule of the objective: "1.08 x calm forecast", "margin over a day + 2.3 deviations".
static void format_rule(char *out, size_t size, int32_t code, float wait_s)
{
	enum objective_family family;
	float rung;
	objective_rule_decode(code, &family, &rung);
	double factor = (double)objective_rule_factor(family, rung, wait_s);
	if (family == OBJECTIVE_MARGIN_HALF_HOUR || family == OBJECTIVE_MARGIN_DAY)
		snprintf(out, size, "%s of %.3g deviations", objective_family_name(family), factor);
	else
		snprintf(out, size, "%.3g x %s", factor, objective_family_name(family));
}

// Returns the low mark that a value is compared with. `high` is the high one: with its tolerance, and lowered while
// replicas are throttled.
static double low_mark(const struct policy_watermarks *w, double high)
{
	return w->low * (1 - w->tolerance_ratio) * (high / (w->high * (1 + w->tolerance_ratio)));
}

static const char *ordinal_suffix(int32_t n)
{
	static const char *const suffixes[] = {"th", "st", "nd", "rd"};
	bool is_teen = n / 10 % 10 == 1;
	return suffixes[!is_teen && n % 10 >= 0 && n % 10 <= 3 ? n % 10 : 0];
}

// What the queries of an objective should divide by, when a replica serves `ratio` times what they take for one.
static void format_divisor(char *out, size_t size, double divisor, double ratio)
{
	if (divisor > 0)
		snprintf(out, size, "both queries should divide by %.3g instead of %.6g", divisor * ratio, divisor);
	else
		snprintf(out, size, "both queries should be divided by %.3g", ratio);
}

// A time is rounded, unless it would then equal the period that it is compared with.
static void format_time(char *out, const struct trace_entry *t)
{
	char window[NUM_TEXT_BYTES];
	num_format_duration_ms(window, t->window_ms);
	num_format_about_ms(out, t->duration_ms);
	if (strcmp(out, window) == 0)
		num_format_duration_ms(out, t->duration_ms);
}

// "h100 2 -> 3 (Cheapest), a100 0 (MinReplicas)"; what does not fit is left out.
static void format_variants(const struct decided *d, char *out, size_t size)
{
	struct buf text;
	buf_init(&text, size);
	for (size_t i = 0; i < d->n_variants; i++) {
		const struct decided_variant *v = &d->variants[i];
		print_to(&text, "%s%s ", i ? ", " : "", v->name);
		if (v->current != v->desired)
			print_to(&text, "%d -> ", v->current);
		print_to(&text, "%d (%s)", v->desired, v->reason);
	}
	snprintf(out, size, "%s", buf_str(&text));
	buf_done(&text);
}

// Expands one {placeholder}; returns false for an unknown name, which test_render excludes.
static bool placeholder(const struct decided *d, const struct trace_entry *t, const char *name, size_t len, char *out,
                        size_t size)
{
#define IS(text) (len == sizeof(text) - 1 && memcmp(name, text, len) == 0)
	const struct policy *p = d->policy;
	const struct policy_signal *signal =
	        t->signal >= 0 && (size_t)t->signal < p->n_signals ? &p->signals[t->signal] : NULL;
	out[0] = '\0';
	if (IS("signal"))
		snprintf(out, size, "%s", signal ? signal->name : "signal");
	else if (IS("formula"))
		snprintf(out, size, "%s", t->stage == STAGE_COMBINE || !signal ? "combine" : signal->name);
	else if (IS("input"))
		snprintf(out, size, "%s",
		         t->stage == STAGE_COMBINE && signal                ? signal->name
		         : t->count >= 0 && (size_t)t->count < p->n_signals ? p->signals[t->count].name
		                                                            : "signal");
	else if (IS("low"))
		format_value(out, size, signal ? low_mark(&signal->watermarks, t->limit) : NAN);
	else if (IS("value"))
		format_value(out, size, t->value);
	else if (IS("limit"))
		format_value(out, size, t->limit);
	else if (IS("before"))
		snprintf(out, size, "%d", t->before);
	else if (IS("after"))
		snprintf(out, size, "%d", t->after);
	else if (IS("count"))
		snprintf(out, size, "%s%d", has_more(d, t) ? "more than " : "", t->count);
	else if (IS("nth"))
		snprintf(out, size, "%d%s", t->count, ordinal_suffix(t->count));
	else if (IS("rule"))
		format_rule(out, size, t->count, (float)p->objective.wait_ms / 1000);
	else if (IS("divisor"))
		format_divisor(out, size, p->objective.divisor, t->value);
	else if (IS("late"))
		snprintf(out, size, "%.6g %%", 100 * p->objective.late_ratio);
	else if (IS("wait"))
		num_format_duration_ms(out, p->objective.wait_ms);
	else if (IS("schedule"))
		snprintf(out, size, "%s",
		         t->count >= 0 && (size_t)t->count < p->n_schedules ? p->schedules[t->count].name : "schedule");
	else if (IS("duration"))
		format_time(out, t);
	else if (IS("window"))
		num_format_duration_ms(out, t->window_ms);
	else if (IS("detail")) {
		const char *detail = detail_of(d, t);
		snprintf(out, size, "%s", detail ? detail : "no details");
	} else if (IS("variants"))
		format_variants(d, out, size);
	else if (IS("pool"))
		snprintf(out, size, "%s", d->pool ? d->pool : "the limit of its pool");
	else if (IS("victims"))
		snprintf(out, size, "%s", d->victims ? d->victims : "no details");
	else
		return false;
	return true;
#undef IS
}

void explain_sentence(const struct decided *d, const struct trace_entry *t, char *out)
{
	const char *s = reason_info(t->reason)->sentence;
	size_t used = 0;
	while (*s && used + 1 < RENDER_SENTENCE_BYTES) {
		const char *end = *s == '{' ? strchr(s, '}') : NULL;
		char text[RENDER_SENTENCE_BYTES];
		if (end && placeholder(d, t, s + 1, (size_t)(end - s - 1), text, sizeof text)) {
			size_t n = strlen(text);
			if (n > RENDER_SENTENCE_BYTES - 1 - used)
				n = RENDER_SENTENCE_BYTES - 1 - used;
			memcpy(out + used, text, n);
			used += n;
			s = end + 1;
		} else {
			out[used++] = *s++;
		}
	}
	out[used] = '\0';
	int32_t spec = d->decision->current, ready = d->decision->ready;
	if (t->stage == STAGE_SIGNALS && ready >= 0 && ready < spec)
		snprintf(out + used, RENDER_SENTENCE_BYTES - used, " (%d of %d replicas ready, %d starting)", ready,
		         spec, spec - ready);
}

void explain_message(const struct decided *d, char *out)
{
	const struct decision *dec = d->decision;
	out[0] = '\0';
	if (dec->driver >= 0 && (size_t)dec->driver < dec->n_trace)
		explain_sentence(d, decision_entry(dec, (size_t)dec->driver), out);
}

bool explain_signal(const struct decided *d, size_t signal, char *out)
{
	const struct decision *dec = d->decision;
	out[0] = '\0';
	for (size_t i = 0; i < dec->n_trace; i++) {
		const struct trace_entry *t = decision_entry(dec, i);
		if (t->signal != (int32_t)signal || t->reason != dec->signals[signal].reason)
			continue;
		explain_sentence(d, t, out);
		return true;
	}
	return false;
}

static void write_signals(struct json_writer *w, const struct decided *d)
{
	json_write_member_array(w, "signals");
	for (size_t i = 0; i < d->decision->n_signals; i++) {
		const struct decision_signal *s = &d->decision->signals[i];
		json_write_format(w, "{name:%s,value:%g,target:%g,proposal:%d,state:%s,reason:%s,ageSeconds:%g}",
		                  d->policy->signals[i].name, s->value, s->target, s->proposal,
		                  signal_state_names[s->state], reason_info(s->reason)->name,
		                  s->age_ms < 0 ? (double)NAN : (double)s->age_ms / 1000);
	}
	json_write_array_end(w);
}

void explain_variants_json(struct json_writer *w, const struct decided *d)
{
	json_write_member_array(w, "variants");
	for (size_t i = 0; i < d->n_variants; i++) {
		const struct decided_variant *v = &d->variants[i];
		json_write_format(w, "{name:%s,kind:%s,target:%s,currentReplicas:%d", v->name, v->target->kind,
		                  v->target->name, v->current);
		if (v->ready >= 0)
			json_write_member_i64(w, "readyReplicas", v->ready);
		json_write_format(w, "desiredReplicas:%d,reason:%s", v->desired, v->reason);
		if (v->detail)
			json_write_member_text(w, "message", v->detail);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_trace(struct json_writer *w, const struct decided *d)
{
	json_write_member_array(w, "trace");
	for (size_t i = 0; i < d->decision->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d->decision, i);
		char sentence[RENDER_SENTENCE_BYTES];
		explain_sentence(d, t, sentence);
		json_write_format(w, "{stage:%s,before:%d,after:%d,reason:%s,message:%s}", stage_name(t->stage),
		                  t->before, t->after, reason_info(t->reason)->name, sentence);
	}
	json_write_array_end(w);
}

void explain_decision_json(struct json_writer *w, const struct decided *d)
{
	assert(d->target);
	const struct decision *dec = d->decision;
	char message[RENDER_SENTENCE_BYTES];
	json_write_format(w, "{namespace:%s,name:%s,target:{kind:%s,name:%s}", d->policy->namespace_name,
	                  d->policy->name, d->target->kind, d->target->name);
	json_write_member_time(w, "time", dec->time_ms);
	json_write_format(w, "currentReplicas:%d,readyReplicas:%g,pendingReplicas:%d,desiredReplicas:%d", dec->current,
	                  dec->ready < 0 ? (double)NAN : (double)dec->ready, dec->pending, dec->desired);
	explain_message(d, message);
	json_write_format(w, "action:%s,reason:%s,message:%s", action_names[dec->action],
	                  reason_info(dec->reason)->name, message);
	write_signals(w, d);
	if (d->n_variants > 0)
		explain_variants_json(w, d);
	write_trace(w, d);
	json_write_object_end(w);
}

void explain_list(struct buf *out, const struct decided *items, size_t n, enum output_format format)
{
	if (format == OUTPUT_NAME) {
		for (size_t i = 0; i < n; i++)
			print_to(out, "gpuautoscaler.gpuscale.dev/%s\n", items[i].policy->name);
		return;
	}
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_format(&w, "{apiVersion:%s,kind:%s,items:[", POLICY_API_VERSION, "DecisionList");
	for (size_t i = 0; i < n; i++)
		explain_decision_json(&w, &items[i]);
	json_write_format(&w, "]}");
	buf_putc(out, '\n');
}

void explain_trace(struct buf *out, const struct decided *d, int indent)
{
	const struct decision *dec = d->decision;
	for (size_t i = 0; i < dec->n_trace; i++) {
		const struct trace_entry *t = decision_entry(dec, i);
		char sentence[RENDER_SENTENCE_BYTES], change[32];
		explain_sentence(d, t, sentence);
		if (t->before == t->after)
			snprintf(change, sizeof change, "%d", t->after);
		else
			snprintf(change, sizeof change, "%d -> %d", t->before, t->after);
		print_to(out, "%*s%-9s  %-10s  %-21s  %s\n", indent, "", stage_name(t->stage), change,
		         reason_info(t->reason)->name, sentence);
	}
	if (dec->trace_cut)
		print_to(out, "%*s(more than %d steps; the rest was cut)\n", indent, "", DECISION_TRACE_MAX);
}

enum word { WORD_POOL, WORD_USED, WORD_GPUS, WORD_SHARE, WORD_MOST, WORD_MINIMUMS, WORD__COUNT };
static const char *const words[] = {"{pool}", "{used}", "{gpus}", "{share}", "{most}", "{minimums}"};
_Static_assert(sizeof words / sizeof words[0] == WORD__COUNT, "one name per word");

void explain_pool_reason(struct buf *out, const char *pool_name, int64_t gpus, const struct pool_grant *grant,
                         const struct pool_total *total)
{
	const int64_t numbers[WORD__COUNT] = {[WORD_USED] = total->used_gpus,
	                                      [WORD_GPUS] = gpus,
	                                      [WORD_SHARE] = grant->share,
	                                      [WORD_MOST] = grant->most,
	                                      [WORD_MINIMUMS] = total->minimum_gpus};
	for (const char *s = pool_reasons[grant->reason].sentence; *s;) {
		size_t w = 0;
		while (w < WORD__COUNT && strncmp(s, words[w], strlen(words[w])) != 0)
			w++;
		if (w == WORD__COUNT) {
			buf_putc(out, *s++);
			continue;
		}
		if (w == WORD_POOL)
			buf_puts(out, pool_name);
		else
			buf_printf(out, "%" PRId64, numbers[w]);
		s += strlen(words[w]);
	}
}

void explain_pool_grant(struct buf *out, const char *pool_name, int64_t gpus, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total)
{
	buf_printf(out, "requested %" PRId32 ", granted %" PRId32 ": ", asked, grant->replicas);
	explain_pool_reason(out, pool_name, gpus, grant, total);
}
