// SPDX-License-Identifier: Apache-2.0
// A small stateful API server for tests and the demo: workloads with /scale, and pods that follow them. It knows no
// watch, no admission, no RBAC beyond one read-only token. What it does answer, it answers as the real one does:
// test/contract runs the same suite against both.
#ifndef GPUSCALE_TEST_FAKE_APISERVER_H
#define GPUSCALE_TEST_FAKE_APISERVER_H

#include <stdint.h>

struct err;
struct event_base;
struct fake_apiserver;

struct fake_apiserver_options {
	struct event_base *loop;  // not owned
	const char *listen;       // as http_server_options
	const char *token;        // NULL = everybody is admin
	const char *token_file;   // instead of token: read at every request, so that it can be rotated
	const char *viewer_token; // may only GET
	const char *tls_cert_file, *tls_key_file;
	int64_t ready_after_ms; // a scheduled pod becomes ready this long after
	int gpus;               // pods that can be scheduled at once, each takes one; -1 = any number
};

struct fake_apiserver *fake_apiserver_new(const struct fake_apiserver_options *options, struct err *e);
void fake_apiserver_free(struct fake_apiserver *f);
uint16_t fake_apiserver_port(const struct fake_apiserver *f);
// "NAMESPACE/KIND/NAME=REPLICAS", of the kinds Deployment, StatefulSet, ReplicaSet and Widget (example.dev/v1).
int fake_apiserver_add(struct fake_apiserver *f, const char *object, struct err *e);

struct fake_fault {
	int next;          // how many matching requests it hits; 0 = off
	int status;        // reply with this; 0 = only the delay
	int retry_after_s; // header; 0 = none
	int64_t delay_ms;  // before the reply
	const char *match; // part of "METHOD /path"; NULL = all
};
// Replaces the fault in force.
void fake_apiserver_fail(struct fake_apiserver *f, const struct fake_fault *fault);

struct fake_counts {
	uint64_t total, get, patch, put, post, delete_, faults;
};
void fake_apiserver_get_counts(const struct fake_apiserver *f, struct fake_counts *ret_counts);

#endif
