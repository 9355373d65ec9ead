// SPDX-License-Identifier: Apache-2.0
// What the demo looks at each second: the exporter's series, the controller's last decision, the target's scale.
#ifndef GPUSCALE_TEST_DEMO_WATCH_H
#define GPUSCALE_TEST_DEMO_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct err;
struct watch;

#define WATCH_TEXT_BYTES 200

struct watch_row {
	double demand, backlog;   // as the mock says
	double utilization_ratio; // mean SM activity of the GPUs that ready replicas hold
	int32_t spec, desired, ready, pending;
	bool decided;
	char action[32], reason[64], message[WATCH_TEXT_BYTES];
};

struct watch_options {
	struct event_base *loop;
	const char *exporter_url, *controller_url;
	const char *kubeconfig, *context; // of the cluster with the target
	const char *namespace_name, *deployment;
	const char *replicas_path; // the mock exporter reads the ready replicas here: the loop's last link
};

// Follows the target's ready pods from now on and writes their number to replicas_path, four times a second.
struct watch *watch_new(const struct watch_options *options, struct err *e);
void watch_free(struct watch *w);
typedef void watch_row_fn(void *arg, const struct watch_row *row, const struct err *error);
// Reads everything once; fn is called from the loop. Only one at a time.
void watch_read(struct watch *w, watch_row_fn *fn, void *arg);

#endif
