// SPDX-License-Identifier: Apache-2.0
// What the files of the fake API server share.
//   apiserver.c            paths, who may, requests, its life
//   apiserver_fault.c      requests that go wrong as a test wishes; counts
//   apiserver_control.c    /_fake/..: the same from outside the process
//   apiserver_discovery.c  which kinds there are
//   apiserver_resource.c   one object: get, create, change, delete
//   apiserver_list.c       lists, in pages
//   apiserver_watch.c      streams of changes, and the window of the past that they can resume from
//   apiserver_select.c     label and field selectors
//   apiserver_workload.c   pods that follow their workloads
//   apiserver_store.c, apiserver_tree.c   the objects
//   apiserver_reply.c      replies and Status objects
#ifndef GPUSCALE_TEST_FAKE_APISERVER_PRIVATE_H
#define GPUSCALE_TEST_FAKE_APISERVER_PRIVATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "test/fake/apiserver.h"
#include "test/fake/apiserver_store.h"

struct fake_watches;
struct http_exchange;
struct http_server;

#define FAKE_MATCH_BYTES       128
#define FAKE_COUNTERS_MAX      512
#define FAKE_COUNTER_BYTES     96
#define FAKE_REPLY_BYTES_MAX   (256 * 1024 * 1024)
#define FAKE_REQUEST_BYTES_MAX (4 * 1024 * 1024)
#define FAKE_CONNECTIONS_MAX   4096

struct fake_rule {
	struct fake_fault fault;
	char match[FAKE_MATCH_BYTES], verb[FAKE_MATCH_BYTES], resource[FAKE_MATCH_BYTES];
};

struct fake_counter {
	char key[FAKE_COUNTER_BYTES]; // "patch deployments/scale"
	uint64_t n;
	UT_hash_handle hh;
};

struct fake_apiserver {
	struct fake_apiserver_options options;
	struct clock clock;
	struct http_server *server;
	struct fake_store store;
	struct fake_watches *watches;
	bool is_served[FAKE_N_KINDS];
	struct event *pod_timer;
	struct fake_object *waiting, *starting; // pods; the latter in the order of their readiness
	struct fake_object *changed;            // workloads
	int n_scheduled;                        // pods that have a GPU
	struct fake_rule rules[FAKE_FAULTS_MAX];
	size_t n_rules;
	struct fake_counts counts;
	struct fake_counter *counters;
	struct fake_delayed *delayed;
};

// Where a request points. Strings are parts of `text`.
struct fake_path {
	char text[1024];
	const char *group, *version, *ns, *plural, *name, *subresource; // "" when absent
	const struct fake_kind *kind;                                   // NULL when unknown
};

struct fake_request {
	struct fake_apiserver *f;
	struct http_exchange *x;
	const char *verb; // of Kubernetes
	bool has_path;    // of the API; else path is empty
	struct fake_path path;
	bool lose_reply;
};

// apiserver.c: p is filled in place, and must stay where it is.
bool fake_path_parse(const char *text, struct fake_path *p);
void fake_serve(struct fake_request *r);

// apiserver_fault.c: counts the request, and makes it go wrong, or serves it.
void fake_take(struct fake_apiserver *f, struct http_exchange *x);
void fake_faults_done(struct fake_apiserver *f);
// Whether "discovery", "deployments", "deployments/scale".. of a request; for counts and faults.
void fake_resource_name(const struct fake_request *r, char *out, size_t size);
// The request is refused as out of date: counted as "conflict RESOURCE", too.
void fake_count_conflict(const struct fake_request *r);

// apiserver_control.c
int fake_control_routes(struct fake_apiserver *f, struct err *e);

// apiserver_workload.c: makes and removes pods so that workload o has as many as it asks for; then its status.
void fake_workload_follow(struct fake_apiserver *f, struct fake_object *o);
// A pod that the fake made itself; its workload must follow afterwards.
void fake_workload_remove_pod(struct fake_apiserver *f, struct fake_object *pod);
void fake_workload_removed(struct fake_apiserver *f, struct fake_object *o);

// apiserver_discovery.c
void fake_discovery(struct fake_request *r);
// apiserver_resource.c: one request on objects.
void fake_resource(struct fake_request *r);
// apiserver_list.c
void fake_list(struct fake_request *r);

// apiserver_watch.c
struct fake_watches *fake_watches_new(struct fake_apiserver *f);
void fake_watches_free(struct fake_watches *w);
void fake_watches_tell(void *watches, const struct fake_change *change); // fake_change_fn
void fake_watch(struct fake_request *r);
// A stream that begins, and brings one ERROR event.
void fake_watch_error(struct fake_request *r, cJSON *status);
// The oldest version of a kind that a watch or a page can start from.
uint64_t fake_watches_oldest(const struct fake_watches *w, const struct fake_kind *kind);
int fake_watches_open(const struct fake_watches *w);

// apiserver_select.c: selectors may be NULL. The first two say whether the fake understands them.
bool fake_labels_are_known(const char *selector);
bool fake_fields_are_known(const struct fake_kind *kind, const char *selector);
bool fake_selected(const cJSON *root, const char *labels, const char *fields);
// Both of a request, checked; false: it has been answered.
bool fake_selectors_of(struct fake_request *r, const char **ret_labels, const char **ret_fields);

// apiserver_reply.c: replies with a tree (freed).
void fake_reply_text(struct fake_request *r, int status, const char *content_type, const char *text, size_t len);
void fake_reply_json(struct fake_request *r, int status, cJSON *root);
// An object: its text, led by kind and apiVersion.
void fake_reply_object(struct fake_request *r, int status, const struct fake_kind *kind, const struct fake_text *text);
void fake_put_object(struct buf *b, const struct fake_kind *kind, const struct fake_text *text);
// "apps/v1"
void fake_put_group_version(struct buf *b, const struct fake_kind *kind);
// Status objects as the real one words them. details may be NULL.
cJSON *fake_status(int code, const char *reason, const char *message, const struct fake_path *details);
void fake_reply_status(struct fake_request *r, int code, const char *reason, const char *message,
                       const struct fake_path *details);
void fake_reply_not_found(struct fake_request *r);
void fake_reply_conflict(struct fake_request *r);
void fake_reply_forbidden(struct fake_request *r);
void fake_reply_no_resource(struct fake_request *r);
void fake_reply_no_page(struct fake_request *r);
void fake_reply_bad_method(struct fake_request *r);
// "deployments.apps \"web\"", "pods"; name may be "".
void fake_resource_text(const struct fake_path *p, const char *name, char *out, size_t size);
// Writes why the viewer, or a client that a fault treats as one, is refused.
void fake_forbidden_text(const struct fake_request *r, char *out, size_t size);

#endif
