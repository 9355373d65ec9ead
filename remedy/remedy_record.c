// SPDX-License-Identifier: Apache-2.0
#include "remedy/remedy_record.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "base/base.h"
#include "base/health_table.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "remedy/plan/remedy_state.h"

#define VERSION     1
#define WHOLE_MAX   (INT64_C(1) << 53)
#define TIME_MAX_MS INT64_C(253402300799000) // 9999-12-31T23:59:59Z
#define KEY_BYTES   17

enum {
	GPU_TAINT = 1,
	NODE_TAINT = 2,
	LISTED = 4,
	REPLACED = 8,
	RESET = 16,
	IN_FLIGHT = 32,
	RESET_OPEN = 64,
	RESET_FAILED = 128,
	ACTIVE = 1,
	HANDLED = 2
};

void remedy_fault_name(int32_t id, char out[REMEDY_FAULT_NAME_BYTES])
{
	if (id < 0)
		snprintf(out, REMEDY_FAULT_NAME_BYTES, "%s", health_conditions[-1 - id].reason);
	else
		snprintf(out, REMEDY_FAULT_NAME_BYTES, "XID%d", id);
}

static void put_gpu(struct json_writer *w, const struct remedy_gpu *g)
{
	int flags = (g->has_gpu_taint ? GPU_TAINT : 0) | (g->has_node_taint ? NODE_TAINT : 0) |
	            (g->is_listed ? LISTED : 0) | (g->is_replaced ? REPLACED : 0) | (g->is_reset ? RESET : 0) |
	            (g->is_in_flight ? IN_FLIGHT : 0) | (g->is_reset_open ? RESET_OPEN : 0) |
	            (g->is_reset_failed ? RESET_FAILED : 0);
	json_write_format(w, "{uuid:%s,flags:%d,out:%ld,wasOut:%ld,need:%ld,clean:%ld,heard:%ld,reported:%ld", g->uuid,
	                  flags, g->out_ms, g->was_out_ms, g->need_ms, g->clean_ms, g->heard_ms, (int64_t)g->reported);
	if (g->is_reset)
		json_write_member_i64(w, "reset", g->reset_ms);
	json_write_object_end(w);
}

static void put_fault(struct json_writer *w, const struct remedy_fault *f)
{
	char name[REMEDY_FAULT_NAME_BYTES];
	remedy_fault_name(f->id, name);
	// The name is for people; `id` counts.
	json_write_format(w, "{fault:%s,id:%d,gpu:%d,flags:%d,times:%d,count:%ld,first:%ld,last:%ld}", name, f->id,
	                  f->gpu, (f->is_active ? ACTIVE : 0) | (f->is_handled ? HANDLED : 0), f->occurrences, f->count,
	                  f->first_ms, f->last_ms);
}

void remedy_record_write(const struct remedy_node *n, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{v:%d,attempts:[", VERSION);
	for (int i = 0; i < n->n_attempts; i++)
		json_write_i64(&w, n->attempts_ms[i]);
	json_write_format(&w, "],gpus:[");
	for (int i = 0; i < n->n_gpus; i++)
		put_gpu(&w, &n->gpus[i]);
	json_write_format(&w, "],faults:[");
	for (int i = 0; i < n->n_faults; i++)
		put_fault(&w, &n->faults[i]);
	json_write_format(&w, "],pods:[");
	for (int i = 0; i < n->n_pods; i++) {
		char key[KEY_BYTES];
		if (n->pods[i].tries == 0)
			continue;
		snprintf(key, sizeof key, "%016" PRIx64, n->pods[i].key);
		json_write_format(&w, "{key:%s,tries:%d,next:%ld}", key, n->pods[i].tries, n->pods[i].next_ms);
	}
	json_write_format(&w, "]}");
}

// ---- reading ----

// A required whole number.
static int read_whole(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e)
{
	int rc = json_get_i64(o, key, min, max, ret_value, e);
	return rc == 0 ? err_set(e, ERR_PROTOCOL, "%s is missing", key) : rc < 0 ? -1 : 0;
}

// A time that has passed, or REMEDY_NONE_MS.
static int read_time(const cJSON *o, const char *key, int64_t now_ms, int64_t *ret_ms, struct err *e)
{
	if (read_whole(o, key, REMEDY_NONE_MS, TIME_MAX_MS, ret_ms, e) < 0)
		return -1;
	*ret_ms = *ret_ms > now_ms ? now_ms : *ret_ms;
	return 0;
}

static int read_gpu(const cJSON *o, int64_t now_ms, struct remedy_node *n, struct err *e)
{
	struct remedy_gpu *g = &n->gpus[n->n_gpus];
	int64_t flags, reported;
	if (json_get_text(o, "uuid", g->uuid, sizeof g->uuid, e) < 0 ||
	    read_whole(o, "flags", 0, 2 * RESET_FAILED - 1, &flags, e) < 0 ||
	    read_time(o, "out", now_ms, &g->out_ms, e) < 0 || read_time(o, "wasOut", now_ms, &g->was_out_ms, e) < 0 ||
	    read_whole(o, "need", 0, REMEDY_DAY_MS, &g->need_ms, e) < 0 ||
	    read_time(o, "clean", now_ms, &g->clean_ms, e) < 0 || read_time(o, "heard", now_ms, &g->heard_ms, e) < 0 ||
	    read_whole(o, "reported", 0, UINT32_MAX, &reported, e) < 0 ||
	    json_get_i64(o, "reset", 0, TIME_MAX_MS, &g->reset_ms, e) < 0)
		return -1;
	if ((n->n_gpus == 0) != (g->uuid[0] == '\0') || remedy_fleet_gpu(n, g->uuid) >= 0)
		return err_set(e, ERR_PROTOCOL, "uuid must be \"\" for the first and different for each of the others");
	g->has_gpu_taint = flags & GPU_TAINT;
	g->has_node_taint = flags & NODE_TAINT;
	g->is_listed = flags & LISTED;
	g->is_replaced = flags & REPLACED;
	g->is_reset = flags & RESET;
	g->is_in_flight = flags & IN_FLIGHT;
	g->is_reset_open = (flags & RESET_OPEN) && g->out_ms >= 0;
	g->is_reset_failed = flags & RESET_FAILED;
	g->reported = (uint32_t)reported;
	if ((g->out_ms >= 0) != (g->has_gpu_taint || g->has_node_taint))
		return err_set(e, ERR_PROTOCOL, "out and flags disagree about a taint");
	n->n_gpus++;
	n->n_out = (int16_t)(n->n_out + (g->out_ms >= 0));
	return 0;
}

static int read_fault(const cJSON *o, int64_t now_ms, struct remedy_node *n, struct err *e)
{
	struct remedy_fault *f = &n->faults[n->n_faults];
	int64_t id, gpu, flags, times;
	if (read_whole(o, "id", -(int64_t)health_n_conditions, INT32_MAX, &id, e) < 0 ||
	    read_whole(o, "gpu", 0, n->n_gpus - 1, &gpu, e) < 0 ||
	    read_whole(o, "flags", 0, 2 * HANDLED - 1, &flags, e) < 0 ||
	    read_whole(o, "times", 0, INT32_MAX, &times, e) < 0 ||
	    read_whole(o, "count", -1, WHOLE_MAX - 1, &f->count, e) < 0 ||
	    read_time(o, "first", now_ms, &f->first_ms, e) < 0 || read_time(o, "last", now_ms, &f->last_ms, e) < 0)
		return -1;
	if (remedy_evidence_find(n, (int)gpu, (int32_t)id))
		return err_set(e, ERR_PROTOCOL, "the fault is listed twice");
	f->id = (int32_t)id;
	f->gpu = (int16_t)gpu;
	f->occurrences = (int32_t)times;
	f->is_active = flags & ACTIVE;
	f->is_handled = flags & HANDLED;
	n->n_faults++;
	return 0;
}

static int read_pod(const cJSON *o, int64_t now_ms, struct remedy_node *n, struct err *e)
{
	struct remedy_pod *p = &n->pods[n->n_pods];
	char key[KEY_BYTES];
	int64_t tries;
	int end = 0;
	if (json_get_text(o, "key", key, sizeof key, e) < 0 || read_whole(o, "tries", 0, INT32_MAX, &tries, e) < 0 ||
	    read_whole(o, "next", 0, TIME_MAX_MS, &p->next_ms, e) < 0)
		return -1;
	p->key = 0;
	for (; key[end]; end++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, key[end]);
		if (!d)
			return err_set(e, ERR_PROTOCOL, "key must be 16 hexadecimal digits");
		p->key = p->key << 4 | (uint64_t)(d - digits);
	}
	if (end != KEY_BYTES - 1)
		return err_set(e, ERR_PROTOCOL, "key must be 16 hexadecimal digits");
	if (p->next_ms > now_ms + REMEDY_EVICT_MAX_MS)
		p->next_ms = now_ms + REMEDY_EVICT_MAX_MS;
	p->tries = (int32_t)tries;
	n->n_pods++;
	return 0;
}

static int read_list(const cJSON *root, const char *key, int max, int64_t now_ms, struct remedy_node *n,
                     int (*read)(const cJSON *o, int64_t now_ms, struct remedy_node *n, struct err *e), struct err *e)
{
	const cJSON *list = json_get(root, key);
	int i = 0;
	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PROTOCOL, "%s must be a list", key);
	for (const cJSON *c = list->child; c; c = c->next, i++) {
		if (i == max)
			return err_set(e, ERR_LIMIT, "%s has more than %d items", key, max);
		if (read(c, now_ms, n, e) < 0)
			return err_wrap(e, "%s[%d]", key, i);
	}
	return 0;
}

static int read_attempt(const cJSON *o, int64_t now_ms, struct remedy_node *n, struct err *e)
{
	int64_t before_ms = n->n_attempts ? n->attempts_ms[n->n_attempts - 1] : 0;
	double v = cJSON_IsNumber(o) ? o->valuedouble : -1;
	if (!(v >= 0 && v <= (double)TIME_MAX_MS))
		return err_set(e, ERR_PROTOCOL, "must be a time in milliseconds");
	int64_t at_ms = (int64_t)v > now_ms ? now_ms : (int64_t)v;
	n->attempts_ms[n->n_attempts++] = at_ms < before_ms ? before_ms : at_ms;
	return 0;
}

static int read_tree(const cJSON *root, int64_t now_ms, struct remedy_node *n, struct err *e)
{
	int64_t version;
	if (read_whole(root, "v", VERSION, VERSION, &version, e) < 0 ||
	    read_list(root, "attempts", REMEDY_ATTEMPTS_MAX, now_ms, n, read_attempt, e) < 0 ||
	    read_list(root, "gpus", REMEDY_GPUS_MAX, now_ms, n, read_gpu, e) < 0)
		return -1;
	if (n->n_gpus == 0)
		return err_set(e, ERR_PROTOCOL, "gpus must start with the node itself");
	if (read_list(root, "faults", REMEDY_FAULTS_MAX, now_ms, n, read_fault, e) < 0)
		return -1;
	return read_list(root, "pods", REMEDY_PODS_MAX, now_ms, n, read_pod, e);
}

int remedy_record_read(const char *text, size_t len, int64_t now_ms, struct remedy_node *ret_node, struct err *e)
{
	memset(ret_node, 0, sizeof *ret_node);
	if (len > REMEDY_RECORD_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "record: %zu bytes, the ceiling is %d", len, REMEDY_RECORD_BYTES_MAX);
	cJSON *root = json_read(text, len, e);
	int rc = root ? read_tree(root, now_ms, ret_node, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "record") : 0;
}
