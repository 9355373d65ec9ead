// SPDX-License-Identifier: Apache-2.0
// The status of a GPUIdleRule, from which the next process continues.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json/json_write.h"
#include "base/must.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/idle/idle_rules_private.h"
#include "controller/idle/idle_status_schema.h"
#include "policies/schema/policy_schema.h"

#define MONTH_HOURS    730
#define PATH_BYTES     400
#define AMOUNT_BYTES   32
#define TREE_BYTES_MAX ((size_t)16 * 1024 * 1024)

void idle_put_id(struct buf *out, const struct idle_record *r)
{
	buf_printf(out, "%s/%s/%s", r->namespace_name, r->kind, r->name);
}

static void put_number(struct json_writer *w, const char *key, double number)
{
	char text[AMOUNT_BYTES];
	snprintf(text, sizeof text, "%.6g", number);
	json_write_member_str(w, key, text);
}

static void put_cost(struct json_writer *w, double per_hour, const char *currency)
{
	char text[AMOUNT_BYTES * 2];
	snprintf(text, sizeof text, "%.2f %.16s", per_hour * MONTH_HOURS, currency);
	json_write_member_str(w, "costPerMonth", text);
}

static void put_time(struct json_writer *w, const char *key, int64_t ms)
{
	if (ms > 0)
		json_write_member_time(w, key, ms);
	else
		json_write_member_null(w, key); // a merge-PATCH removes it
}

static void put_record(struct json_writer *w, const struct idle_record *r, const char *currency)
{
	struct buf id;
	buf_init(&id, IDLE_SPACE_BYTES + IDLE_KIND_BYTES + IDLE_NAME_BYTES);
	idle_put_id(&id, r);
	json_write_object_begin(w);
	json_write_member_str(w, "id", buf_str(&id));
	json_write_member_str(w, "namespace", r->namespace_name);
	json_write_member_str(w, "kind", r->kind);
	json_write_member_str(w, "name", r->name);
	json_write_member_str(w, "state", idle_state_names[r->state]);
	put_number(w, "gpus", r->gpus);
	if (r->since_ms > 0)
		json_write_member_time(w, "idleSince", r->since_ms);
	put_cost(w, r->per_hour, currency);
	if (r->warned_ms > 0)
		json_write_member_time(w, "warnedTime", r->warned_ms);
	if (r->changed_ms > 0)
		json_write_member_time(w, "changedTime", r->changed_ms);
	if (idle_record_is_scaled(r))
		json_write_member_i64(w, "replicas", r->replicas);
	if (r->message[0])
		json_write_member_text(w, "message", r->message);
	json_write_object_end(w);
	buf_done(&id);
}

static void put_message(const struct idle_entry *e, struct buf *out)
{
	if (e->message[0])
		buf_printf(out, "held: %s", e->message);
	else
		buf_printf(out, "%zu workloads hold %.6g idle GPUs", e->n_found, e->gpus);
	if (e->fault[0])
		buf_printf(out, "; the last valid version is in force, because the newest one is invalid: %s",
		           e->fault);
}

// Without lastUpdateTime, whose change alone causes no write.
static void put_body(const struct idle_entry *e, struct json_writer *w, const char *currency)
{
	struct buf text;
	buf_init(&text, IDLE_STATUS_SENTENCE_BYTES);
	put_message(e, &text);
	json_write_member_i64(w, "observedGeneration", e->generation);
	put_time(w, "lastScaleTime", e->last_scale_ms);
	json_write_member_text(w, "message", buf_str(&text));
	buf_done(&text);
	if (!e->is_evaluated)
		return;
	json_write_member_i64(w, "workloadCount", (int64_t)e->n_found);
	put_number(w, "gpus", e->gpus);
	put_number(w, "unallocatedGPUs", e->unallocated);
	put_cost(w, e->per_hour, currency);
	json_write_key(w, "workloads");
	json_write_array_begin(w);
	for (size_t i = 0; i < e->n; i++)
		put_record(w, &e->records[i], currency);
	json_write_array_end(w);
}

static void on_written(void *arg, const struct err *error)
{
	struct idle_entry *e = arg;
	e->past.failed = error != NULL;
	if (error && error->kind == ERR_NOT_FOUND)
		object_watch_verify(e->all->objects, "", e->key + 1);
	if (error)
		return;
	for (size_t i = 0; i < e->n; i++) {
		struct idle_record *r = &e->records[i];
		if (!r->is_announced || r->is_recorded)
			continue;
		r->is_recorded = true;
		e->due_mono_ms = 0;
	}
}

// Returns whether contents with this fingerprint are written: at once when they have changed or the last write failed.
static bool is_due(const struct idle_entry *e, uint64_t print, int64_t now_ms)
{
	static const struct status_pace pace = {0};
	const struct status_offer offer = {.pace = &pace, .past = &e->past, .major = print};
	return status_reasons[status_schedule(&offer, now_ms)].action == STATUS_WRITE;
}

void idle_status_write(struct idle_entry *e, const char *currency, int64_t now_ms)
{
	struct buf body;
	struct json_writer w;
	char path[PATH_BYTES];
	if (!e->is_object || !e->all->options.writer)
		return;
	buf_init(&body, IDLE_STATUS_BYTES_MAX);
	json_write_init(&w, &body, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "status");
	json_write_object_begin(&w);
	put_body(e, &w, currency);
	uint64_t print = hash_bytes(HASH_START, body.data, body.len);
	json_write_member_time(&w, "lastUpdateTime", now_ms);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (!body.failed && is_due(e, print, now_ms)) {
		snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/gpuidlerules/%s/status", e->key + 1);
		status_past_write(&e->past, print, 0, now_ms);
		for (size_t i = 0; i < e->n; i++)
			e->records[i].is_announced = e->records[i].state == IDLE_SCALING;
		status_writer_put(e->all->options.writer, &e->slot, path, buf_str(&body), on_written, e);
	}
	buf_done(&body);
}

// ---- what an earlier process wrote ----

static void copy(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

// The clock of the process that wrote it may have been ahead.
static int64_t past(const struct idle_entry *e, int64_t ms)
{
	int64_t now_ms = clock_wall_ms(e->all->options.clock);
	return ms < now_ms ? ms : now_ms;
}

static void take_record(struct idle_entry *e, const struct idle_status_workload *from)
{
	struct idle_record *r = idle_entry_add(e);
	struct err ignored;
	if (!r)
		return;
	copy(r->namespace_name, sizeof r->namespace_name, from->namespace_name);
	copy(r->kind, sizeof r->kind, from->kind);
	copy(r->name, sizeof r->name, from->name);
	copy(r->message, sizeof r->message, from->message);
	r->state = (enum idle_state)from->state;
	if (from->gpus && num_parse_f64(from->gpus, strlen(from->gpus), &r->gpus, &ignored) < 0)
		r->gpus = 0; // until the next evaluation
	r->since_ms = past(e, from->since_ms);
	r->warned_ms = past(e, from->warned_ms);
	r->changed_ms = past(e, from->changed_ms);
	r->replicas = from->replicas;
	r->is_recorded = r->is_announced = r->state == IDLE_SCALING;
}

void idle_status_read(struct idle_entry *e, const char *json, size_t len)
{
	struct arena tree;
	struct doc_node *root;
	struct err ignored;
	struct idle_status status = {0};
	struct schema_errors *errors = must_alloc(malloc(2 * sizeof *errors));
	arena_init(&tree, TREE_BYTES_MAX);
	while (e->n > 0)
		idle_entry_remove(e, e->n - 1);
	schema_errors_init(&errors[0], "");
	schema_errors_init(&errors[1], "");
	const struct doc_node *node =
	        doc_from_json(&tree, json, len, &root, &ignored) == 0 ? doc_get(root, "status") : NULL;
	if (node &&
	    schema_decode_tolerant(idle_status_schema(), node, &status, &tree, &errors[0], &errors[1], "status") == 0) {
		e->last_scale_ms = past(e, status.last_scale_ms);
		for (size_t i = 0; i < status.n_workloads; i++)
			take_record(e, &status.workloads[i]);
	}
	free(errors);
	arena_done(&tree);
}
