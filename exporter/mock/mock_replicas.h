// SPDX-License-Identifier: Apache-2.0
// Polls the number of ready replicas of the mock's workload from the main loop; any thread may read it. A source that
// fails keeps its last value; its failure and its recovery are each logged once.
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_REPLICAS_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/mock/mock_script.h"

struct err;
struct event_base;
struct log;
struct mock_replicas;

#define MOCK_REPLICAS_MAX 1000000

// `source` must outlive the result. `log` may be NULL. Returns NULL and fills `e` if memory is exhausted.
struct mock_replicas *mock_replicas_new(const struct mock_replicas_source *source, struct log *log, struct err *e);
// Starts polling, with the first request immediately. A constant source does not need it.
int mock_replicas_start(struct mock_replicas *r, struct event_base *loop, struct err *e);
void mock_replicas_free(struct mock_replicas *r);
// Returns the last known number; -1 if there is none. Any thread.
int32_t mock_replicas_get(const struct mock_replicas *r);

// Reads the number at the dotted `path` of a JSON object of the API server. A missing last part is 0, because
// Kubernetes omits zero fields; a missing parent is ERR_INPUT. Returns -1 and fills `e` for values outside 0 ..
// MOCK_REPLICAS_MAX.
int mock_replicas_decode(const char *json, size_t len, const char *path, int32_t *ret_replicas, struct err *e);

#endif
