// SPDX-License-Identifier: Apache-2.0
// What the controller serves: its endpoints (controller/endpoints.h) as plain HTTP or TLS, with or without a token, and
// the external metrics API (controller/external_metrics.h).
#ifndef GPUSCALE_CONTROLLER_SERVING_H
#define GPUSCALE_CONTROLLER_SERVING_H

struct connections;
struct controller;
struct err;
struct log;
struct metrics;
struct serve_options;
struct serving;

struct serving_options {
	const struct serve_options *flags; // not owned, as all below; its texts must live as long. NULL: none
	const char *listen;                // of the endpoints; NULL or "": none
	struct connections *connections;
	struct controller *controller;
	struct log *log;
	struct metrics *metrics; // may be NULL
};

// Listens at once. NULL and *e.
struct serving *serving_new(const struct serving_options *options, struct err *e);
// Ends what watches the API server: before connections_cancel(). NULL is fine.
void serving_disconnect(struct serving *s);
// After connections_cancel(), so that nothing is under way. NULL is fine.
void serving_free(struct serving *s);

#endif
