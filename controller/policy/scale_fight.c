// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/scale_fight.h"

#include "base/base.h"
#include "base/json/json_span.h"

#define MEMBER_BYTES 80
#define TIME_BYTES   40 // RFC 3339 in UTC, as the API server writes it: sorts as text

void scale_fight_written(struct scale_fight *f, int32_t replicas)
{
	f->written = replicas;
	f->is_armed = true;
	f->n_agreed = 0;
}

void scale_fight_agreed(struct scale_fight *f, int32_t replicas)
{
	if (f->is_armed && replicas != f->written && ++f->n_agreed >= SCALE_FIGHT_AGREED)
		f->is_armed = false;
}

// Adds a change at now_ms, and returns how many there were within the window, this one included. *ret_first_ms: the
// time of the first of them.
static int count_change(struct scale_fight *f, int64_t window_ms, int64_t now_ms, int64_t *ret_first_ms)
{
	int n = 1;
	while (n - 1 < f->n_changes && now_ms - f->changed_ms[n - 1] <= window_ms)
		n++;
	*ret_first_ms = n > 1 ? f->changed_ms[n - 2] : now_ms;
	memmove(f->changed_ms + 1, f->changed_ms, sizeof f->changed_ms - sizeof f->changed_ms[0]);
	f->changed_ms[0] = now_ms;
	f->n_changes = (int8_t)(n < SCALE_FIGHT_CHANGES ? n : SCALE_FIGHT_CHANGES - 1);
	return n;
}

int64_t scale_fight_check(struct scale_fight *f, int32_t from, int32_t to, int64_t interval_ms, int64_t now_ms)
{
	int64_t window_ms = interval_ms * SCALE_FIGHT_INTERVALS, first_ms;
	if (!f->is_armed || from == f->written || (to > from) == (from > f->written))
		return 0;
	f->is_armed = false;
	if (window_ms < SCALE_FIGHT_WINDOW_MS)
		window_ms = SCALE_FIGHT_WINDOW_MS;
	bool has_paused = f->pause_ms > 0 && now_ms - f->resumed_ms <= window_ms;
	if (count_change(f, window_ms, now_ms, &first_ms) < SCALE_FIGHT_CHANGES && !has_paused)
		return 0;
	f->since_ms = has_paused ? f->resumed_ms : first_ms;
	bool is_first = f->pause_ms == 0 || (!has_paused && now_ms - f->resumed_ms > SCALE_FIGHT_QUIET_MS);
	f->pause_ms = is_first ? SCALE_FIGHT_PAUSE_MS : f->pause_ms * 2;
	if (f->pause_ms > SCALE_FIGHT_PAUSE_MAX_MS)
		f->pause_ms = SCALE_FIGHT_PAUSE_MAX_MS;
	f->resumed_ms = now_ms + f->pause_ms;
	f->n_changes = 0;
	return f->pause_ms;
}

int64_t scale_fight_manager(const char *json, size_t len, const char *path, char *out, size_t size)
{
	const char *member = path && strchr(path, '.') ? strchr(path, '.') + 1 : "replicas";
	char key[MEMBER_BYTES];
	snprintf(key, sizeof key, "f:%.*s", (int)strcspn(member, ".["), member);
	struct json_span_iter items = {.rest = json_span_get((struct json_span){.text = json, .len = len}, "items")};
	char latest[TIME_BYTES] = "", time[TIME_BYTES];
	out[0] = '\0';
	if (!json_span_next(&items))
		return -1;
	const struct json_span metadata = json_span_get(items.value, "metadata");
	struct json_span_iter it = {.rest = json_span_get(metadata, "managedFields")};
	while (json_span_next(&it)) {
		const char *const field[] = {"fieldsV1", "f:spec", key, NULL};
		json_span_text(json_span_get(it.value, "time"), time, sizeof time);
		if (json_span_kind(json_span_path(it.value, field)) && strcmp(time, latest) >= 0) {
			memcpy(latest, time, sizeof time);
			json_span_text(json_span_get(it.value, "manager"), out, size);
		}
	}
	int64_t created_ms = -1;
	int n = json_span_text(json_span_get(metadata, "creationTimestamp"), time, sizeof time);
	if (n > 0 && num_parse_rfc3339_ms(time, (size_t)n, &created_ms, NULL) < 0)
		return -1;
	return created_ms;
}
