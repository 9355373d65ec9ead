// SPDX-License-Identifier: Apache-2.0
// What is counted, between the file that counts and the one that renders.
#ifndef GPUSCALE_RUNTIME_METRICS_METRICS_PRIVATE_H
#define GPUSCALE_RUNTIME_METRICS_METRICS_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"
#include "k8s/client/k8s_client.h"
#include "policies/engine/decision.h"
#include "runtime/metrics/metrics.h"

#define METRICS_API_COUNTS_MAX 128
#define METRICS_SERVERS_MAX    2 // the endpoints, the external metrics

enum { METRICS_RESULT_OK, METRICS_RESULT_DEFERRED, METRICS_RESULT_SCALED, METRICS_RESULT_ERROR, METRICS_RESULT__COUNT };
extern const char *const metrics_result_names[];

#define METRICS_EXTERNAL_CODES 9
extern const int metrics_external_codes[METRICS_EXTERNAL_CODES];

struct metrics {
	struct exposition_histogram duration_seconds, delay_seconds;
	uint64_t results[METRICS_RESULT__COUNT];
	uint64_t decisions[ACTION__COUNT][REASON__COUNT];
	uint64_t counts[FAMILY__COUNT]; // of counters without labels
	uint64_t scaled_up, scaled_down, reloads_ok, reloads_failed;
	int64_t reloaded_ms;
	struct {
		char verb[8], resource[K8S_RESOURCE_CLASS_BYTES];
		int code;
		uint64_t n;
	} api[METRICS_API_COUNTS_MAX];
	size_t n_api;
	struct {
		const char *name;
		const struct http_server *server;
	} servers[METRICS_SERVERS_MAX];
	size_t n_servers;
	size_t max_policies; // with series of their own
	bool serves_external;
	uint64_t external[METRICS_EXTERNAL_CODES];
};

#endif
