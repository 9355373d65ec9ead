// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale remediate --replay`: any bytes get lines of JSON as an answer, the limits hold whatever the
// numbers are, and a record of any bytes is refused or written back as it was read. Any bytes as a node or as a list of
// pods are refused, or give a PATCH that is valid JSON.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "remedy/agent/node_view.h"
#include "remedy/plan/remedy_plan.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"
#include "remedy/remedy_replay.h"

#define NOW_MS INT64_C(1700000000000)

static const struct remedy_limits limits[] = {
        {.max_nodes = 1, .max_percent = 100, .attempts = 1, .clean_ms = 60000, .can_reset = true},
        {.max_nodes = 5000, .max_percent = 50, .attempts = 16, .clean_ms = 86400000},
};

// Every line of an answer is an object; an error is alone.
static void check_answer(const struct buf *out, int rc)
{
	const char *at = buf_str(out), *end = at + out->len;
	struct err e;
	size_t errors = 0, n = 0;
	assert(!out->failed);
	for (; at < end; n++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		assert(nl);
		cJSON *tree = json_read(at, (size_t)(nl - at), &e);
		assert(cJSON_IsObject(tree));
		errors += json_get(tree, "error") != NULL;
		cJSON_Delete(tree);
		at = nl + 1;
	}
	assert(errors == (rc != 0) && (errors == 0 || n >= 1));
}

static void check_record(const uint8_t *data, size_t size)
{
	struct remedy_node *node = malloc(sizeof *node), *again = malloc(sizeof *again);
	struct buf text, twice;
	struct err e;
	assert(node && again);
	buf_init(&text, REMEDY_RECORD_BYTES_MAX);
	buf_init(&twice, REMEDY_RECORD_BYTES_MAX);
	if (remedy_record_read((const char *)data, size, NOW_MS, node, &e) == 0) {
		remedy_record_write(node, &text);
		assert(!text.failed && remedy_record_read(buf_str(&text), text.len, NOW_MS, again, &e) == 0);
		remedy_record_write(again, &twice);
		assert(strcmp(buf_str(&text), buf_str(&twice)) == 0);
	}
	buf_done(&text);
	buf_done(&twice);
	free(node);
	free(again);
}

static void answer_all(const struct remedy_limits *l, const uint8_t *data, size_t size)
{
	struct remedy_replay *p = remedy_replay_new(l);
	struct buf out;
	struct err e;
	assert(p);
	buf_init(&out, 64 << 20);
	while (size > 0) {
		const uint8_t *nl = memchr(data, '\n', size);
		size_t len = nl ? (size_t)(nl - data) : size;
		buf_reset(&out);
		check_answer(&out, remedy_replay_answer(p, (const char *)data, len, &out, &e));
		data += len + (nl != NULL);
		size -= len + (nl != NULL);
	}
	buf_done(&out);
	remedy_replay_free(p);
}

static void check_node(const char *json, size_t size)
{
	struct node_view v;
	struct err e;
	if (node_view_read(json, size, &v, &e) < 0)
		return;
	for (unsigned k = 0; k < 8; k++) {
		const struct node_view_change change = {.record = "{}",
		                                        .is_out = k & 1,
		                                        .cordons = k & 2,
		                                        .fault = "XID79",
		                                        .reset_gpu = k & 4 ? "GPU-1" : NULL};
		struct buf out;
		buf_init(&out, 1 << 20);
		node_view_patch(&v, &change, &out);
		cJSON *tree = json_read(buf_str(&out), out.len, &e);
		assert(!out.failed && cJSON_IsObject(tree));
		cJSON_Delete(tree);
		buf_done(&out);
	}
	node_view_done(&v);
}

static void check_pods(const char *json, size_t size)
{
	struct arena a;
	struct node_pod *pods;
	struct err e;
	size_t n;
	arena_init(&a, 1 << 20);
	if (node_pods_read(json, size, &a, &pods, &n, &e) == 0)
		for (size_t i = 0; i < n; i++)
			assert(pods[i].name && pods[i].uid && pods[i].saved_ms >= -1);
	arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
		answer_all(&limits[i], data, size);
	check_record(data, size);
	check_node((const char *)data, size);
	check_pods((const char *)data, size);
	return 0;
}
