// SPDX-License-Identifier: Apache-2.0
// A request of the external metrics API, as a path and a selector in two lines, against two policies. What is given is
// of the namespace and the metric that were asked for and all that the selector takes; what cannot be read is an error.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_text.h"
#include "base/json/json_read.h"
#include "controller/external/external_metrics_server.h"
#include "k8s/server/metrics_api.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS   INT64_C(1767603600000)
#define TEXT_MAX 16384

static void require(bool holds)
{
	if (!holds)
		abort();
}

static const struct policy_signal signals[] = {
        {.name = "queue", .stale_after_ms = 60000},
        {.name = "busy", .stale_after_ms = 60000},
};
static const struct policy policies[] = {
        {.namespace_name = "serving", .name = "llama", .interval_ms = 15000, .signals = signals, .n_signals = 2},
        {.namespace_name = "serving", .name = "mixtral", .interval_ms = 15000, .signals = signals, .n_signals = 1},
        {.namespace_name = "other", .name = "llama", .interval_ms = 15000, .signals = signals, .n_signals = 1},
};
static const struct scale_target targets[] = {{.kind = "Deployment", .name = "llama"},
                                              {.kind = "StatefulSet", .name = "mixtral"},
                                              {.kind = "Deployment", .name = "x"}};
#define N_POLICIES (sizeof policies / sizeof policies[0])

static bool next(void *arg, size_t i, struct external_source *ret_source)
{
	struct decision *decisions = arg;
	if (i >= N_POLICIES)
		return false;
	*ret_source = (struct external_source){&policies[i], &targets[i], &decisions[i], ""};
	return true;
}

// How many items of the metric there are in the namespace under the selector; -1 with *e.
static int count(struct decision *decisions, const struct metrics_path *p, const char *selector, struct err *e)
{
	struct buf out;
	buf_init(&out, 65536);
	err_clear(e);
	int n = external_values_write(&out, next, decisions, p->namespace_name, p->metric, selector, NOW_MS, e);
	if (n < 0) {
		require(e->msg[0] && (e->kind == ERR_NOT_FOUND || e->kind == ERR_INPUT || e->kind == ERR_LIMIT));
		buf_done(&out);
		return -1;
	}
	struct err unused;
	cJSON *root = json_read(buf_str(&out), out.len, &unused);
	const cJSON *items = json_get(root, "items"), *item;
	require(root && cJSON_IsArray(items));
	cJSON_ArrayForEach(item, items)
	{
		const cJSON *labels = json_get(item, "metricLabels");
		require(strcmp(json_get_str(item, "metricName", ""), p->metric) == 0);
		require(json_get_str(labels, "policy", "")[0] && json_get_str(item, "value", "")[0]);
		require(strcmp(p->namespace_name, "serving") == 0 ||
		        strcmp(json_get_str(labels, "target_name", ""), "x") == 0);
	}
	n = cJSON_GetArraySize(items);
	cJSON_Delete(root);
	buf_done(&out);
	return n;
}

static void check_values(const struct metrics_path *p, const char *selector)
{
	struct decision *decisions = calloc(N_POLICIES, sizeof *decisions);
	struct err e;
	require(decisions != NULL);
	for (size_t i = 0; i < N_POLICIES; i++) {
		decisions[i].time_ms = NOW_MS - 1000;
		decisions[i].desired = 3;
		decisions[i].n_signals = policies[i].n_signals;
		for (size_t k = 0; k < policies[i].n_signals; k++)
			decisions[i].signals[k] =
			        (struct decision_signal){.state = SIGNAL_OK, .value = 0.5 + (double)k, .age_ms = 0};
	}
	int all = count(decisions, p, NULL, &e);
	require(all != 0 && (all > 0 || e.kind == ERR_NOT_FOUND));
	int some = count(decisions, p, selector, &e);
	require(some <= all && (all > 0 || some < 0));
	free(decisions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metrics_path p;
	if (size > TEXT_MAX)
		return 0;
	char *text = malloc(size + 1);
	require(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	char *selector = strchr(text, '\n');
	if (selector)
		*selector++ = '\0';
	// As the server hands it on.
	if (http_percent_decode(text, strlen(text), false) >= 0 &&
	    (!selector || http_percent_decode(selector, strlen(selector), true) >= 0)) {
		metrics_path_parse(&external_metrics_api, text, &p);
		require((p.page == METRICS_VALUES) == (p.namespace_name[0] != '\0') &&
		        (p.page == METRICS_VALUES) == (p.metric[0] != '\0'));
		require(!strchr(p.namespace_name, '/') && !strchr(p.metric, '/'));
		if (p.page == METRICS_VALUES)
			check_values(&p, selector);
	}
	free(text);
	return 0;
}
