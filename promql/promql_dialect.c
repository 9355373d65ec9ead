// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_dialect.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_read.h"
#include "promql/promql_text.h"

const char *const promql_kind_names[] = {
        [PROMQL_KIND_PROMETHEUS] = "Prometheus",
        [PROMQL_KIND_THANOS] = "Thanos",
        [PROMQL_KIND_MIMIR] = "Mimir",
        [PROMQL_KIND_VICTORIAMETRICS] = "VictoriaMetrics",
        [PROMQL_KIND_AUTO] = "Auto",
        [PROMQL_KIND__COUNT] = NULL,
};
_Static_assert(sizeof promql_kind_names / sizeof promql_kind_names[0] == PROMQL_KIND__COUNT + 1, "one name per kind");

static const struct promql_dialect dialects[] = {
        // Prometheus: web/api/v1, lookback_delta since pull request 12088 (March 2023); older ones ignore it, as they
        // do every unknown parameter.
        [PROMQL_KIND_PROMETHEUS] = {"Prometheus", "", "", "lookback_delta", 0},
        // Thanos: docs/components/query.md. Without partial_response=false a store that is away makes the response
        // smaller, and whether a warning says so is for the server's flags to say.
        [PROMQL_KIND_THANOS] = {"Thanos", "&dedup=true&partial_response=false", "&dedup=true&partial_response=false",
                                "lookback_delta", 0},
        [PROMQL_KIND_MIMIR] = {"Mimir", "", "", "lookback_delta", 0},
        // VictoriaMetrics: app/vmselect/prometheus. Unless nocache is set, an instant query is evaluated as of 30 s ago
        // (-search.latencyOffset) under today's time stamp, and the ends of a range are moved; latency_offset keeps the
        // newest points of a range from being overwritten with older ones. Its lookback is guessed from the interval
        // between samples unless max_lookback says it: with Prometheus's own a dead series is seen, and seen to be old.
        [PROMQL_KIND_VICTORIAMETRICS] = {"VictoriaMetrics", "&nocache=1", "&nocache=1&latency_offset=1ms",
                                         "max_lookback", PROMQL_LOOKBACK_MS},
        [PROMQL_KIND_AUTO] = {"Prometheus", "", "", NULL, 0},
};
_Static_assert(sizeof dialects / sizeof dialects[0] == PROMQL_KIND__COUNT, "one dialect per kind");

const struct promql_dialect *promql_dialect_of(enum promql_kind kind)
{
	return &dialects[kind];
}

// Mimir names itself. Thanos is still at version 0, Prometheus never was since its API is v1. VictoriaMetrics gives
// no revision and either no version or that of the Prometheus it is compatible with.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES])
{
	ret_version[0] = '\0';
	cJSON *root = json_read(body, len, NULL);
	const cJSON *data = root ? json_get(root, "data") : NULL;
	enum promql_kind kind = PROMQL_KIND_PROMETHEUS;
	if (cJSON_IsObject(data) && strcmp(json_get_str(root, "status", ""), "success") == 0) {
		const char *version = json_get_str(data, "version", "");
		if (strstr(json_get_str(data, "application", ""), "Mimir"))
			kind = PROMQL_KIND_MIMIR;
		else if (!json_get(data, "revision"))
			kind = PROMQL_KIND_VICTORIAMETRICS;
		else if (version[0] == '0' && version[1] == '.')
			kind = PROMQL_KIND_THANOS;
		if (kind != PROMQL_KIND_VICTORIAMETRICS)
			promql_text_show(ret_version, PROMQL_VERSION_BYTES, version, strlen(version));
	}
	cJSON_Delete(root);
	return kind;
}
