// SPDX-License-Identifier: Apache-2.0
// A loop with the fake API server and a Kubernetes client of it, for unit tests. Every wait is bounded.
#ifndef GPUSCALE_TEST_FAKE_K8S_HARNESS_H
#define GPUSCALE_TEST_FAKE_K8S_HARNESS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/scale.h"
#include "test/fake/apiserver.h"

#define HARNESS_WAIT_MS 60000

struct harness {
	struct event_base *loop;
	struct fake_apiserver *server; // NULL after harness_start_loop
	struct http_client *http;
	struct k8s_client *client;
	struct clock clock;
	struct k8s_config config;
	int64_t timeout_ms; // of a request; 0: the client's default
	char url[64];
	int observed;    // attempts seen by the hook
	int last_status; // of the last one
	char last_class[K8S_RESOURCE_CLASS_BYTES];
};

// What a callback got. Copied.
struct outcome {
	bool is_done, is_error;
	struct err error;
	struct scale scale;
	struct pod_counts counts;
	char body[16384]; // its beginning
};

// Only the loop and the clock; config is the caller's to fill.
void harness_start_loop(struct harness *h);
// server may be NULL: all defaults. Asserts (cmocka) that everything starts.
void harness_start(struct harness *h, const struct fake_apiserver_options *server);
// A client of h->config, which must stay.
void harness_start_client(struct harness *h, int max_attempts);
// A loop and a client of the API server that a kubeconfig names. arena: made here, holds the config. variable: of the
// environment, the file's name. -1 and a line to stderr.
int harness_start_kubeconfig(struct harness *h, struct arena *arena, const char *variable);
void harness_stop(struct harness *h);
// Runs the loop until o is done; fails the test after HARNESS_WAIT_MS.
void harness_wait(struct harness *h, const struct outcome *o);

// Callbacks that fill a struct outcome.
void outcome_of_request(void *arg, const struct http_response *response, const struct err *error);
void outcome_of_scale(void *arg, const struct scale *scale, const struct err *error);
void outcome_of_pods(void *arg, const struct pod_counts *counts, const struct err *error);

// Asks and waits.
void harness_get(struct harness *h, const struct scale_ref *ref, struct outcome *o);
void harness_patch(struct harness *h, const struct scale_ref *ref, const char *version, int replicas,
                   struct outcome *o);
void harness_request(struct harness *h, const char *method, const char *path, const char *type, const char *body,
                     struct outcome *o);
void harness_count(struct harness *h, const char *ns, const char *selector, struct outcome *o);

#endif
