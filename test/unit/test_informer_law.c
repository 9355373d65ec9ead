// SPDX-License-Identifier: Apache-2.0
// Goal: whatever lists, pages, relists, events, takeovers and fetches are in progress, an object that exists is never
// reported absent; and once all of them are complete, the reported objects are the existing ones, without further
// requests. Two informers watch one world: one is asked for single objects, the other keeps every object. The watches
// and the client below are fakes: a world of objects with versions, in which every step of every request happens at a
// random moment. GPUSCALE_LAW_SEED=N repeats a run, GPUSCALE_LAW_RUNS=N sets the number of runs.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json/json_span.h"
#include "base/num.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/watch.h"
#include "k8s/client/k8s_client.h"
#include "test/support/manual_clock.h"

#define NAMESPACES_MAX 8
#define OBJECTS_MAX    4000
#define LOG_MAX        20000
#define PAGE           20
#define RUNS           120
#define STEPS          2500
#define HOT            12 // objects that change most often

struct record {
	struct informer_item item;
	enum informer_object_state state;
	int replicas;
	char key[32];
};

struct object {
	int ns, number;   // "nNS", "dNUMBER"
	uint64_t version; // of the latest change
	bool exists;
	int replicas;
	struct record *wanted, *kept; // NULL: not registered
	bool was_absent;              // at some moment since it was registered
	bool was_ever_absent;
};

struct change {
	uint64_t version;
	int object, replicas;
	bool is_deleted;
};

enum step { STEP_BEGIN, STEP_SNAPSHOT, STEP_PAGES, STEP_STREAM };

struct k8s_watch {
	struct k8s_watch *prev, *next;
	struct k8s_watch_options options;
	int ns; // -1: all
	enum step step;
	uint64_t version; // of the list, then of the stream
	struct change *snapshot;
	int n_snapshot, at;
	size_t log_at;
	bool is_relist_due, in_synced, is_refused;
};

struct k8s_call {
	struct k8s_call *prev, *next;
	k8s_done_fn *done;
	void *arg;
	int object; // -1: an object outside the world
	bool is_served, exists;
	uint64_t version;
	int replicas;
};

static struct world {
	uint64_t seed;
	struct event_base *loop;
	struct clock clock;
	struct k8s_client client;
	struct object objects[OBJECTS_MAX];
	int n_objects, n_namespaces;
	struct change log[LOG_MAX];
	size_t n_log;
	uint64_t version;
	struct k8s_watch *watches;
	struct k8s_call *calls;
	uint64_t requests;
	bool is_all_forbidden, is_quiet;
	bool no_numbers;               // versions that cannot be compared
	uint32_t stream_lag, call_lag; // they proceed on average once in so many steps
	struct informer *asked, *keeper;
	struct informer_item spaces[NAMESPACES_MAX]; // of the keeper; not added: it does not watch the namespace
	struct informer_item all;                    // likewise, of all namespaces
} world;

static uint32_t pick(uint32_t below)
{
	world.seed ^= world.seed << 13;
	world.seed ^= world.seed >> 7;
	world.seed ^= world.seed << 17;
	return (uint32_t)(world.seed >> 33) % below;
}

// ---- the client ----

int k8s_request_with(struct k8s_client *c, const struct k8s_request_options *options, struct k8s_call **ret_call,
                     struct err *e)
{
	struct k8s_call *call = calloc(1, sizeof *call);
	int64_t number = -1;
	const char *name = strstr(options->path, "metadata.name%3Dd");
	assert_non_null(name);
	name += strlen("metadata.name%3Dd");
	assert_int_equal(num_parse_i64(name, strlen(name), 0, OBJECTS_MAX - 1, &number, NULL), 0);
	call->object = (int)number;
	call->done = options->done;
	call->arg = options->arg;
	DL_APPEND(world.calls, call);
	world.requests++;
	if (ret_call)
		*ret_call = call;
	return 0;
}

static void end_call(struct k8s_call *call, const struct http_response *response, const struct err *error)
{
	k8s_done_fn *done = call->done;
	void *arg = call->arg;
	DL_DELETE(world.calls, call);
	free(call);
	done(arg, response, error);
}

void k8s_call_cancel(struct k8s_call *call)
{
	struct err e = {0};
	err_set(&e, ERR_CANCELED, "canceled");
	end_call(call, NULL, &e);
}

static void print_object(struct buf *out, int object, uint64_t version, int replicas)
{
	const struct object *o = &world.objects[object];
	buf_printf(out,
	           "{\"metadata\":{\"name\":\"d%d\",\"namespace\":\"n%d\",\"resourceVersion\":\"%s%llu\",\"uid\":\"u\","
	           "\"generation\":1},\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"a\":\"b\"}}},"
	           "\"status\":{}}",
	           object, o->ns, world.no_numbers ? "v" : "", (unsigned long long)version, replicas);
}

static void step_call(struct k8s_call *call)
{
	const struct object *o = &world.objects[call->object];
	if (!world.is_quiet && pick(world.call_lag) > 0)
		return;
	if (!call->is_served) {
		call->is_served = true;
		call->exists = o->exists;
		call->version = o->version;
		call->replicas = o->replicas;
		return;
	}
	if (!world.is_quiet && pick(20) == 0) {
		struct err e = {0};
		err_set_code(&e, ERR_SERVER, 500, "internal error");
		end_call(call, NULL, &e);
		return;
	}
	struct buf body;
	buf_init(&body, 4096);
	buf_puts(&body, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
	if (call->exists)
		print_object(&body, call->object, call->version, call->replicas);
	buf_puts(&body, "]}");
	struct http_response response = {.status = 200, .body = body.data, .body_len = body.len};
	end_call(call, &response, NULL);
	buf_done(&body);
}

// ---- the watches ----

struct k8s_watch *k8s_watch_new(const struct k8s_watch_options *options, struct err *e)
{
	struct k8s_watch *w = calloc(1, sizeof *w);
	int64_t ns = -1;
	const char *name = strstr(options->path, "/namespaces/n");
	w->options = *options;
	if (name) {
		name += strlen("/namespaces/n");
		assert_int_equal(num_parse_i64(name, strcspn(name, "/"), 0, NAMESPACES_MAX - 1, &ns, NULL), 0);
	}
	w->ns = (int)ns;
	DL_APPEND(world.watches, w);
	return w;
}

void k8s_watch_free(struct k8s_watch *w)
{
	if (!w)
		return;
	DL_DELETE(world.watches, w);
	free(w->snapshot);
	free(w);
}

void k8s_watch_relist(struct k8s_watch *w)
{
	if (w->in_synced)
		w->is_relist_due = true;
	else
		w->step = STEP_BEGIN;
}

void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats)
{
	*ret_stats = (struct k8s_watch_stats){0};
}

static void deliver(struct k8s_watch *w, const struct change *c)
{
	struct buf json;
	buf_init(&json, 4096);
	print_object(&json, c->object, c->version, c->replicas);
	if (c->is_deleted)
		w->options.callbacks.on_deleted(w->options.arg, json.data, json.len);
	else
		w->options.callbacks.on_object(w->options.arg, json.data, json.len);
	buf_done(&json);
}

static bool is_in(const struct k8s_watch *w, int object)
{
	return w->ns < 0 || world.objects[object].ns == w->ns;
}

static void take_snapshot(struct k8s_watch *w)
{
	free(w->snapshot);
	w->snapshot = calloc((size_t)world.n_objects, sizeof *w->snapshot);
	w->n_snapshot = w->at = 0;
	for (int i = 0; i < world.n_objects; i++) {
		const struct object *o = &world.objects[i];
		if (o->exists && is_in(w, i))
			w->snapshot[w->n_snapshot++] = (struct change){o->version, i, o->replicas, false};
	}
	w->version = world.version;
	w->log_at = world.n_log;
}

static void read_page(struct k8s_watch *w)
{
	int end = w->at + PAGE < w->n_snapshot ? w->at + PAGE : w->n_snapshot;
	if (!world.is_quiet && pick(100) == 0) { // 410: the token is too old
		w->step = STEP_BEGIN;
		return;
	}
	while (w->at < end)
		deliver(w, &w->snapshot[w->at++]);
	if (w->at < w->n_snapshot)
		return;
	w->step = STEP_STREAM;
	w->in_synced = true;
	w->options.callbacks.on_synced(w->options.arg);
	w->in_synced = false;
	if (w->is_relist_due)
		w->step = STEP_BEGIN;
	w->is_relist_due = false;
}

static void read_stream(struct k8s_watch *w)
{
	if (!world.is_quiet && pick(world.stream_lag) > 0)
		return;
	if (!world.is_quiet && pick(200) == 0) { // 410
		w->step = STEP_BEGIN;
		return;
	}
	for (uint32_t n = 1 + pick(4); n > 0 && w->log_at < world.n_log;) {
		const struct change *c = &world.log[w->log_at++];
		if (!is_in(w, c->object))
			continue;
		deliver(w, c);
		n--;
	}
}

static void step_watch(struct k8s_watch *w)
{
	if (w->ns < 0 && world.is_all_forbidden) {
		struct err e = {0};
		err_set_code(&e, ERR_AUTH, 403, "forbidden");
		w->is_refused = true;
		w->options.callbacks.on_error(w->options.arg, &e);
		return;
	}
	if (w->is_refused && w->step == STEP_STREAM) {
		w->is_refused = false;
		w->options.callbacks.on_error(w->options.arg, NULL);
		return;
	}
	switch (w->step) {
	case STEP_BEGIN:
		w->options.callbacks.on_list(w->options.arg);
		w->step = STEP_SNAPSHOT;
		break;
	case STEP_SNAPSHOT:
		take_snapshot(w);
		w->step = STEP_PAGES;
		break;
	case STEP_PAGES:
		read_page(w);
		break;
	case STEP_STREAM:
		read_stream(w);
		break;
	}
}

// ---- what happens ----

static void change_object(int i)
{
	struct object *o = &world.objects[i];
	assert_true(world.n_log < LOG_MAX);
	bool is_deletion = o->exists && pick(3) == 0;
	o->exists = !is_deletion;
	o->was_absent = o->was_absent || is_deletion;
	o->was_ever_absent = o->was_ever_absent || is_deletion;
	o->replicas = (int)pick(50);
	o->version = ++world.version;
	world.log[world.n_log++] = (struct change){o->version, i, o->replicas, is_deletion};
}

static struct record *new_record(int i)
{
	struct record *r = calloc(1, sizeof *r);
	snprintf(r->key, sizeof r->key, "n%d/d%d", world.objects[i].ns, i);
	return r;
}

static struct record *record_of(struct informer_item *item)
{
	return (struct record *)(void *)item; // its first member
}

static int replicas_in(const char *json, size_t len)
{
	static const char *const path[] = {"spec", "replicas", NULL};
	int64_t n = -1;
	assert_true(json_span_i64(json_span_path((struct json_span){json, len}, path), 0, 100, &n));
	return (int)n;
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	bool is_keeper = arg == &world.keeper;
	int64_t i = -1;
	assert_int_equal(num_parse_i64(name + 1, strlen(name + 1), 0, OBJECTS_MAX - 1, &i, NULL), 0);
	if (!item && !is_keeper)
		return;
	struct record *r = item ? record_of(item) : new_record((int)i);
	r->state = INFORMER_PRESENT;
	r->replicas = replicas_in(json, len);
	if (item)
		return;
	assert_null(world.objects[i].kept);
	world.objects[i].kept = r;
	assert_int_equal(informer_put(world.keeper, &r->item, r->key, "", NULL), 0);
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct record *r = record_of(item);
	r->state = INFORMER_ABSENT;
	if (arg != &world.keeper)
		return;
	int64_t i = -1;
	const char *number = strchr(r->key, '/') + 2;
	assert_int_equal(num_parse_i64(number, strlen(number), 0, OBJECTS_MAX - 1, &i, NULL), 0);
	world.objects[i].kept = NULL;
	informer_remove(item);
	free(r);
}

static void on_unknown(void *arg, struct informer_item *item)
{
	record_of(item)->state = INFORMER_UNKNOWN;
}

static void want(int i, bool is_wanted)
{
	struct object *o = &world.objects[i];
	if (!o->wanted != is_wanted)
		return;
	if (!is_wanted) {
		informer_remove(&o->wanted->item);
		free(o->wanted);
		o->wanted = NULL;
		return;
	}
	struct err e;
	o->wanted = new_record(i);
	o->was_absent = !o->exists;
	assert_int_equal(informer_put(world.asked, &o->wanted->item, o->wanted->key, NULL, &e), 0);
}

static void want_all_of(struct informer_item *item, const char *key, bool is_wanted)
{
	struct err e;
	if (!item->space != is_wanted)
		return;
	if (is_wanted)
		assert_int_equal(informer_put(world.keeper, item, key, NULL, &e), 0);
	else
		informer_remove(item);
}

static void want_space(int ns, bool is_wanted)
{
	char key[16];
	snprintf(key, sizeof key, "n%d/", ns);
	want_all_of(&world.spaces[ns], key, is_wanted);
}

static void want_all(bool is_wanted)
{
	want_all_of(&world.all, "/", is_wanted);
}

static bool is_covered(const struct informer_item *item)
{
	if (!item->space)
		return false;
	const struct informer_state state = informer_get_state(world.keeper, item);
	return state.unsynced == 0 && state.broken == 0;
}

// As a caller whose own request returned the object.
static void adopt(int i)
{
	struct object *o = &world.objects[i];
	char version[32];
	if (!o->exists || o->kept || !world.spaces[o->ns].space)
		return;
	snprintf(version, sizeof version, "%s%llu", world.no_numbers ? "v" : "", (unsigned long long)o->version);
	o->kept = new_record(i);
	o->kept->state = INFORMER_PRESENT;
	o->kept->replicas = o->replicas;
	assert_int_equal(informer_put(world.keeper, &o->kept->item, o->kept->key, version, NULL), 0);
}

// Checks the invariant.
static void look(int i)
{
	const struct object *o = &world.objects[i];
	bool is_watched = is_covered(&world.spaces[o->ns]) || is_covered(&world.all);
	if (is_watched && !o->kept && !o->was_ever_absent)
		fail_msg("d%d is not kept, but has always existed", i);
	if (!o->wanted)
		return;
	if (o->wanted->state == INFORMER_ABSENT && !o->was_absent)
		fail_msg("d%d is reported absent, but has existed since it was wanted", i);
	if (o->wanted->state == INFORMER_UNKNOWN)
		(void)informer_refetch(&o->wanted->item, 0);
}

// Writes as the caller: the version may be known before its event.
static void write_scale(int i)
{
	struct object *o = &world.objects[i];
	char version[32];
	if (!o->exists || !o->wanted || o->wanted->state != INFORMER_PRESENT)
		return;
	o->wanted->replicas = o->replicas = (int)pick(50);
	o->version = ++world.version;
	world.log[world.n_log++] = (struct change){o->version, i, o->replicas, false};
	snprintf(version, sizeof version, "%s%llu", world.no_numbers ? "v" : "", (unsigned long long)o->version);
	assert_int_equal(informer_put(world.asked, &o->wanted->item, o->wanted->key, version, NULL), 0);
}

static void step_some_watch(void)
{
	struct k8s_watch *w;
	int n = 0;
	DL_COUNT(world.watches, w, n);
	if (n == 0)
		return;
	n = (int)pick((uint32_t)n);
	DL_FOREACH(world.watches, w)
	{
		if (n-- == 0)
			break;
	}
	step_watch(w);
}

static void step_some_call(void)
{
	struct k8s_call *call;
	int n = 0;
	DL_COUNT(world.calls, call, n);
	if (n == 0)
		return;
	n = (int)pick((uint32_t)n);
	DL_FOREACH(world.calls, call)
	{
		if (n-- == 0)
			break;
	}
	step_call(call);
}

static void check_one(int i, const struct record *r, const char *what)
{
	const struct object *o = &world.objects[i];
	bool exists = r && r->state == INFORMER_PRESENT;
	if (exists != o->exists || (r && r->state == INFORMER_UNKNOWN))
		fail_msg("d%d is %s, and %s: %s", i, exists ? "present" : "absent or unknown",
		         o->exists ? "exists" : "does not exist", what);
	if (exists && r->replicas != o->replicas)
		fail_msg("d%d has %d replicas, known are %d: %s", i, o->replicas, r->replicas, what);
}

static void check_everything(void)
{
	for (int i = 0; i < world.n_objects; i++) {
		if (world.objects[i].wanted)
			check_one(i, world.objects[i].wanted, "wanted");
		if (world.spaces[world.objects[i].ns].space || is_covered(&world.all))
			check_one(i, world.objects[i].kept, "kept");
	}
}

static void become_quiet(void)
{
	world.is_quiet = true;
	for (int round = 0; round < 400; round++) {
		struct k8s_watch *w, *next_watch;
		struct k8s_call *call, *next_call;
		DL_FOREACH_SAFE(world.watches, w, next_watch)
		{
			size_t before = (size_t)-1;
			while (w->step != STEP_STREAM || before != w->log_at) {
				before = w->log_at;
				step_watch(w);
				if (world.is_all_forbidden && w->ns < 0)
					break;
			}
			next_watch = w->next; // others may have been freed
		}
		DL_FOREACH_SAFE(world.calls, call, next_call)
		step_call(call);
		clock_advance_ms(&world.clock, 60000);
		if (round % 20 == 0) {
			for (int i = 0; i < world.n_objects; i++)
				look(i);
		}
	}
}

static int some_object(void)
{
	int n = pick(4) ? HOT : world.n_objects;
	return (int)pick((uint32_t)n);
}

static void unwant_everything(void)
{
	for (int i = 0; i < world.n_objects; i++)
		want(i, false);
	for (int ns = 0; ns < world.n_namespaces; ns++)
		want_space(ns, false);
	want_all(false);
}

static void happen(void)
{
	int i = some_object();
	switch (pick(14)) {
	case 0:
	case 1:
		change_object(i);
		break;
	case 2:
		want(i, true);
		break;
	case 3:
		want(i, pick(4) > 0);
		break;
	case 4:
		look(i);
		break;
	case 5:
		write_scale(i);
		break;
	case 6:
		step_some_call();
		break;
	case 7:
		clock_advance_ms(&world.clock, pick(20) ? 100 : 40000);
		break;
	case 8:
		if (pick(40) == 0)
			world.is_all_forbidden = pick(3) == 0;
		if (pick(40) == 0)
			unwant_everything();
		want_space((int)pick((uint32_t)world.n_namespaces), pick(4) > 0);
		if (pick(10) == 0)
			want_all(pick(3) > 0);
		adopt(i);
		break;
	default:
		step_some_watch();
		break;
	}
}

static void run_one(uint64_t seed)
{
	struct err e = {0};
	memset(&world, 0, sizeof world);
	world.seed = seed * 0x9E3779B97F4A7C15u + 1;
	for (int i = 0; i < 20; i++)
		(void)pick(2);
	clock_init_manual(&world.clock, 1000);
	world.loop = event_base_new();
	world.client.options = (struct k8s_client_options){.loop = world.loop, .clock = &world.clock};
	world.n_namespaces = 1 + (int)pick(6);
	world.n_objects = pick(20) ? HOT + (int)pick(400) : OBJECTS_MAX;
	world.is_all_forbidden = pick(4) == 0;
	world.stream_lag = 1 + pick(12);
	world.call_lag = 1 + pick(12);
	world.no_numbers = pick(8) == 0;
	for (int i = 0; i < world.n_objects; i++) {
		world.objects[i] = (struct object){.ns = (int)pick((uint32_t)world.n_namespaces)};
		if (pick(5))
			change_object(i);
		world.objects[i].was_ever_absent = !world.objects[i].exists;
		world.n_log = 0;
	}
	struct informer_options options = {.client = &world.client,
	                                   .group_path = "/apis/apps/v1",
	                                   .plural = "deployments",
	                                   .own_watches = (int)pick(4),
	                                   .callbacks = {on_object, on_absent, on_unknown, NULL, NULL},
	                                   .arg = &world.asked};
	world.asked = informer_new(&options, &e);
	options.arg = &world.keeper;
	world.keeper = informer_new(&options, &e);
	for (int step = 0; step < STEPS; step++)
		happen();
	become_quiet();
	uint64_t before = world.requests;
	check_everything();
	assert_int_equal(world.requests, before);
	unwant_everything();
	assert_null(world.watches);
	assert_null(world.calls);
	informer_free(world.asked);
	informer_free(world.keeper);
	event_base_free(world.loop);
}

static int64_t from_environment(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	int64_t n = otherwise;
	if (text)
		assert_int_equal(num_parse_i64(text, strlen(text), 0, 1000000000, &n, NULL), 0);
	return n;
}

static void object_that_exists_is_never_reported_absent(void **state)
{
	int64_t seed = from_environment("GPUSCALE_LAW_SEED", -1), runs = from_environment("GPUSCALE_LAW_RUNS", RUNS);
	for (int64_t i = 0; i < runs; i++) {
		uint64_t one = (uint64_t)(seed >= 0 ? seed : i);
		printf("# GPUSCALE_LAW_SEED=%llu\n", (unsigned long long)one);
		run_one(one);
		if (seed >= 0)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(object_that_exists_is_never_reported_absent)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
