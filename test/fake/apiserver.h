// SPDX-License-Identifier: Apache-2.0
// A small stateful API server for tests, benches and the demo: workloads with /scale, pods that follow them, custom
// resources with status, leases, events, HPAs; list and watch of all. It knows no admission, no schemas, no RBAC beyond
// one token that may only look at scales, no SubjectAccessReview. What it does answer, it answers as the real one does:
// test/integration/contract runs the same suite against both.
#ifndef GPUSCALE_TEST_FAKE_APISERVER_H
#define GPUSCALE_TEST_FAKE_APISERVER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct event_base;
struct fake_apiserver;

#define FAKE_FAULTS_MAX 32

struct fake_apiserver_options {
	struct event_base *loop;  // not owned
	const char *listen;       // as http_server_options
	const char *token;        // NULL = every user is admin
	const char *token_file;   // instead of token: read at every request, so that it can be rotated
	const char *viewer_token; // may GET scales, and nothing else
	const char *tls_cert_file, *tls_key_file;
	int64_t ready_after_ms; // a scheduled pod becomes ready this long after
	int gpus;               // pods that can be scheduled at once, each takes one; -1 = any number
	bool no_pods;           // workloads have none, and are ready at once: for benches
	bool keda;              // ScaledObjects are served from the beginning
};

struct fake_apiserver *fake_apiserver_new(const struct fake_apiserver_options *options, struct err *e);
void fake_apiserver_free(struct fake_apiserver *f);
uint16_t fake_apiserver_port(const struct fake_apiserver *f);
// "NAMESPACE/KIND/NAME=REPLICAS", of the kinds Deployment, StatefulSet, ReplicaSet and Widget (example.dev/v1).
int fake_apiserver_add(struct fake_apiserver *f, const char *object, struct err *e);
// Any object of a known kind, as JSON with kind, apiVersion and metadata.
int fake_apiserver_put(struct fake_apiserver *f, const char *json, struct err *e);

struct fake_fault {
	int next;             // how many matching requests it hits; 0 = off
	int skip;             // matching requests that pass before
	int status;           // reply with this; 0 = serve
	int retry_after_s;    // header; 0 = none
	int64_t delay_ms;     // before that
	bool hang;            // never answers
	bool cut;             // closes the connection instead of an answer
	bool lose;            // serves, and closes the connection instead of the answer
	bool in_stream;       // of a watch: begins it, and sends the status as an ERROR event
	const char *match;    // part of "METHOD /path"; NULL = all
	const char *verb;     // get list watch create update patch delete; NULL = all
	const char *resource; // "deployments", "deployments/scale", "discovery"; NULL = all
};
// Replaces the faults in force. Strings are copied.
void fake_apiserver_fail(struct fake_apiserver *f, const struct fake_fault *fault);
// Adds one; false when there are FAKE_FAULTS_MAX. The first that matches hits.
bool fake_apiserver_fail_also(struct fake_apiserver *f, const struct fake_fault *fault);

struct fake_counts {
	uint64_t total, get, patch, put, post, delete_, faults;
	uint64_t streams; // watches, ever
};
void fake_apiserver_get_counts(const struct fake_apiserver *f, struct fake_counts *ret_counts);
// Requests of one verb and resource, as in fake_fault.
uint64_t fake_apiserver_count(const struct fake_apiserver *f, const char *verb, const char *resource);

// Ends all streams, orderly or by cutting the connection.
void fake_apiserver_drop_streams(struct fake_apiserver *f, bool is_orderly);
// Forgets what was: a watch that resumes from before now gets 410.
void fake_apiserver_compact(struct fake_apiserver *f);
// Streams that asked for bookmarks get one every so often (60 s from the beginning); 0: none, not even before their
// end.
void fake_apiserver_set_bookmarks(struct fake_apiserver *f, int64_t every_ms);
// As a server that hangs: streams stay open and say nothing. When it ends they are cut.
void fake_apiserver_mute(struct fake_apiserver *f, bool is_mute);
// Whether the kinds of an API group are served; all are but those of other autoscalers than the HPA.
void fake_apiserver_serve_group(struct fake_apiserver *f, const char *group, bool is_served);
// Reads certificate and key again, and cuts streams and idle connections: a server that was restarted.
int fake_apiserver_reload_tls(struct fake_apiserver *f, struct err *e);

#endif
