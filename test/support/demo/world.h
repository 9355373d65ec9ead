// SPDX-License-Identifier: Apache-2.0
// The demo's cast: fake API server (unless a real one is given), mock exporter, Prometheus, controller; each a real
// process.
#ifndef GPUSCALE_TEST_DEMO_WORLD_H
#define GPUSCALE_TEST_DEMO_WORLD_H

#include "test/support/demo/process.h"

struct err;

#define WORLD_NAMESPACE  "demo"
#define WORLD_DEPLOYMENT "llm"
#define WORLD_PATH_BYTES 512

struct world_options {
	const char *bin_dir;    // gpuscale, gpuscale-exporter, fake-apiserver
	const char *config_dir; // policy.yaml, mock.yaml, the trace
	const char *work_dir;   // logs, Prometheus data, generated configuration; emptied by the caller
	const char *kubeconfig; // NULL: the fake API server
	const char *context;
	const char *ready_after; // seconds a pod takes to become ready at the fake API server
};

struct world {
	struct process_list processes;
	char work_dir[WORLD_PATH_BYTES];
	char kubeconfig[WORLD_PATH_BYTES];
	char replicas_path[WORLD_PATH_BYTES];
	char exporter_url[64], prometheus_url[64], controller_url[64];
};

// Starts everything and waits until each answers (at most 30 s). Progress goes to stderr. On failure all is stopped
// again.
int world_start(struct world *w, const struct world_options *options, struct err *e);
void world_stop(struct world *w);

#endif
