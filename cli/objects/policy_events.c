// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_events.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/objects/policy_render.h"
#include "cli/term/table.h"

#define INDENT     2
#define TIME_BYTES 64

void policy_events_init(struct policy_events *v)
{
	*v = (struct policy_events){0};
}

static int64_t time_of(struct json_span event)
{
	static const char *const keys[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		char text[TIME_BYTES];
		int64_t ms = 0;
		int len = json_span_text(json_span_get(event, keys[i]), text, sizeof text);
		if (len > 0 && num_parse_rfc3339_ms(text, (size_t)len, &ms, NULL) == 0)
			return ms;
	}
	return 0;
}

int policy_events_add(void *events, struct json_span event, struct err *e)
{
	struct policy_events *v = events;
	int64_t last_ms = time_of(event);
	size_t at = v->n;
	v->total++;
	while (at > 0 && v->items[at - 1].last_ms < last_ms)
		at--;
	if (at == POLICY_EVENTS_SHOWN_MAX)
		return 0;
	v->n += v->n < POLICY_EVENTS_SHOWN_MAX;
	memmove(&v->items[at + 1], &v->items[at], (v->n - 1 - at) * sizeof v->items[0]);
	struct policy_event *x = &v->items[at];
	*x = (struct policy_event){.last_ms = last_ms, .count = 1};
	json_span_text(json_span_get(event, "type"), x->type, sizeof x->type);
	json_span_text(json_span_get(event, "reason"), x->reason, sizeof x->reason);
	json_span_text(json_span_get(json_span_get(event, "source"), "component"), x->from, sizeof x->from);
	json_span_text(json_span_get(event, "message"), x->message, sizeof x->message);
	json_span_i64(json_span_get(event, "count"), 1, INT32_MAX, &x->count);
	return 0;
}

void policy_events_write(const struct policy_events *v, struct json_writer *w)
{
	json_write_member_array(w, "events");
	for (size_t i = 0; i < v->n; i++) {
		const struct policy_event *x = &v->items[i];
		json_write_object_begin(w);
		if (x->last_ms)
			json_write_member_time(w, "time", x->last_ms);
		json_write_member_str(w, "type", x->type);
		json_write_member_str(w, "reason", x->reason);
		json_write_member_i64(w, "count", x->count);
		json_write_member_str(w, "from", x->from);
		json_write_member_text(w, "message", x->message);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void policy_events_render(const struct policy_events *v, struct buf *out, int64_t now_ms)
{
	static const char *const heads[] = {"LAST SEEN", "TYPE", "REASON", "COUNT", "FROM", "MESSAGE", NULL};
	struct table t;
	buf_puts(out, "Events:\n");
	table_init(&t, heads);
	for (size_t i = 0; i < v->n; i++) {
		const struct policy_event *x = &v->items[i];
		char age[TABLE_AGE_BYTES];
		table_cell(&t, "%s", table_age(age, x->last_ms, now_ms));
		policy_render_state(&t, x->type);
		table_text(&t, x->reason);
		table_cell(&t, "%lld", (long long)x->count);
		table_text(&t, x->from);
		table_cell(&t, "%s", x->message);
	}
	table_finish(&t, out, INDENT, true);
	if (v->total > v->n)
		print_to(out, "  (the newest %zu of %zu)\n", v->n, v->total);
}
