// SPDX-License-Identifier: Apache-2.0
// The number of ready replicas of the mock's workload, asked for in the main loop and read from any thread. A source
// that fails keeps its last value and is logged once, and once more when it is back.
#ifndef GPUSCALE_EXPORTER_MOCK_REPLICAS_H
#define GPUSCALE_EXPORTER_MOCK_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/mock_script.h"

struct err;
struct event_base;
struct log;
struct mock_replicas;

#define MOCK_REPLICAS_MAX 1000000

// source must stay valid. log may be NULL. NULL and *e when memory ends.
struct mock_replicas *mock_replicas_new(const struct mock_replicas_source *source, struct log *log, struct err *e);
// Starts asking, first at once. A constant source needs no start.
int mock_replicas_start(struct mock_replicas *r, struct event_base *loop, struct err *e);
void mock_replicas_free(struct mock_replicas *r);
// The last number known, -1 while none is. From any thread.
int32_t mock_replicas_get(const struct mock_replicas *r);

// The number at a dotted path of a JSON object, as the API server writes it: a last part that is missing is 0, because
// Kubernetes leaves zero fields out; a missing parent is ERR_INPUT. -1 and *e for anything but 0 .. MOCK_REPLICAS_MAX.
int mock_replicas_decode(const char *json, size_t len, const char *path, int32_t *ret_replicas, struct err *e);

#endif
