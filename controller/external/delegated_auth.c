// SPDX-License-Identifier: Apache-2.0
// Decides by reviews of the API server whether a request is answered.
#include "base/base.h"
#include "controller/external/external_metrics_server.h"

#include <openssl/sha.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/hash_table.h"
#include "base/http/http_server.h"
#include "base/process/log.h"
#include "k8s/cache/watch.h"
#include "k8s/client/k8s_client.h"
#include "k8s/server/access_review.h"
#include "k8s/server/k8s_user.h"
#include "k8s/server/request_header.h"

#define REVIEW_BYTES_MAX  (256 * 1024)
#define REVIEW_ATTEMPTS   2
#define MESSAGE_BYTES_MAX 1024
#define PEER_BYTES        64 // an address as text

// ---- answers of the API server, by digest of the question ----

struct entry {
	unsigned char key[REVIEW_KEY_BYTES];
	struct review_answer answer;
	int64_t until_ms;
	UT_hash_handle hh;
};

struct review_cache {
	struct entry *entries[2]; // no and yes, each in order of arrival; the first is the oldest
	size_t max;
	int64_t ttl_ms;
};

_Static_assert(REVIEW_KEY_BYTES == SHA256_DIGEST_LENGTH, "a key is a SHA-256");

struct review_cache *review_cache_new(size_t max, int64_t ttl_ms)
{
	struct review_cache *c = must_alloc(calloc(1, sizeof *c));
	c->max = max;
	c->ttl_ms = ttl_ms;
	return c;
}

static void drop(struct review_cache *c, struct entry *entry)
{
	HASH_DEL(c->entries[entry->answer.yes], entry);
	k8s_user_unref(entry->answer.user);
	free(entry);
}

void review_cache_free(struct review_cache *c)
{
	if (!c)
		return;
	for (int yes = 0; yes < 2; yes++)
		while (c->entries[yes])
			drop(c, c->entries[yes]);
	free(c);
}

static struct entry *find(const struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES])
{
	struct entry *found = NULL;
	for (int yes = 0; yes < 2 && !found; yes++)
		HASH_FIND(hh, c->entries[yes], key, REVIEW_KEY_BYTES, found);
	return found;
}

const struct review_answer *review_cache_get(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                                             int64_t mono_ms)
{
	for (int yes = 0; yes < 2; yes++)
		while (c->entries[yes] && c->entries[yes]->until_ms <= mono_ms) // all have the same lifetime
			drop(c, c->entries[yes]);
	const struct entry *found = find(c, key);
	return found ? &found->answer : NULL;
}

void review_cache_put(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                      const struct review_answer *answer, int64_t mono_ms)
{
	struct entry *entry = find(c, key), **list = &c->entries[answer->yes];
	if (entry)
		drop(c, entry);
	while (*list && HASH_COUNT(*list) >= c->max)
		drop(c, *list);
	entry = must_alloc(calloc(1, sizeof *entry));
	memcpy(entry->key, key, REVIEW_KEY_BYTES);
	entry->answer = *answer;
	entry->until_ms = mono_ms + c->ttl_ms;
	HASH_ADD(hh, *list, key, REVIEW_KEY_BYTES, entry);
	if (entry->answer.user)
		k8s_user_ref(entry->answer.user);
}

// ---- one request ----

struct delegated_auth {
	struct k8s_client *client;
	struct log *log;
	struct k8s_watch *watch;
	struct authenticator *authenticator; // NULL: not known
	bool seen;                           // the list in progress contains the ConfigMap
	struct review_cache *tokens, *accesses;
	int n_checks, n_waiting; // checks in flight; of these, waiting for a review
	struct check *strangers; // of the latter, those with a bearer token
};

// One request that passes through the reviews.
struct check {
	struct delegated_auth *auth;
	bool is_stranger;          // presents a bearer token
	bool is_waiting;           // counted in n_waiting, and in the list of strangers if is_stranger
	struct check *prev, *next; // of the strangers that wait
	char peer[PEER_BYTES];     // address
	struct k8s_user *user;     // once it is known
	struct access_attributes attributes;
	unsigned char key[REVIEW_KEY_BYTES]; // of the review in flight
	delegated_auth_fn *done;
	void *arg;
};

static int64_t mono_ms(const struct delegated_auth *a)
{
	return clock_mono_ms(a->client->options.clock);
}

// ---- the authenticator ----

static void forget_authenticator(struct delegated_auth *a)
{
	authenticator_free(a->authenticator);
	a->authenticator = NULL;
}

static void on_list(void *arg)
{
	struct delegated_auth *a = arg;
	a->seen = false;
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct delegated_auth *a = arg;
	struct err e;
	struct authenticator *fresh = authenticator_new(json, len, &e);
	a->seen = true;
	if (!fresh) {
		LOG(a->log, LOG_ERROR,
		    "Cannot use ConfigMap extension-apiserver-authentication; keeping the previous version",
		    LOG_S("err", e.msg));
		return;
	}
	LOG(a->log, LOG_INFO, "Read ConfigMap extension-apiserver-authentication",
	    LOG_S("configMap", REQUEST_HEADER_NAMESPACE "/" REQUEST_HEADER_CONFIGMAP));
	forget_authenticator(a);
	a->authenticator = fresh;
}

// Without the ConfigMap no client is authenticated.
static void on_deleted(void *arg, const char *json, size_t len)
{
	struct delegated_auth *a = arg;
	forget_authenticator(a);
	LOG(a->log, LOG_WARNING, "ConfigMap extension-apiserver-authentication was deleted; refusing all requests",
	    LOG_S("configMap", REQUEST_HEADER_NAMESPACE "/" REQUEST_HEADER_CONFIGMAP));
}

static void on_synced(void *arg)
{
	struct delegated_auth *a = arg;
	if (!a->seen)
		on_deleted(a, NULL, 0);
}

static void on_error(void *arg, const struct err *error)
{
	struct delegated_auth *a = arg;
	if (error)
		LOG(a->log, LOG_WARNING, "Cannot watch ConfigMap extension-apiserver-authentication",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
}

struct delegated_auth *delegated_auth_new(struct k8s_client *client, struct log *log, struct err *e)
{
	struct delegated_auth *a = must_alloc(calloc(1, sizeof *a));
	a->client = client;
	a->log = log;
	a->tokens = review_cache_new(DELEGATED_AUTH_CACHE_MAX, DELEGATED_AUTH_TTL_MS);
	a->accesses = review_cache_new(DELEGATED_AUTH_CACHE_MAX, DELEGATED_AUTH_TTL_MS);
	const struct k8s_watch_options watch = {
	        .client = client,
	        .path = "/api/v1/namespaces/" REQUEST_HEADER_NAMESPACE "/configmaps",
	        .field_selector = "metadata.name=" REQUEST_HEADER_CONFIGMAP,
	        .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	        .arg = a,
	};
	a->watch = k8s_watch_new(&watch, e);
	if (!a->watch) {
		delegated_auth_free(a);
		return NULL;
	}
	return a;
}

void delegated_auth_stop(struct delegated_auth *a)
{
	k8s_watch_free(a->watch);
	a->watch = NULL;
}

void delegated_auth_free(struct delegated_auth *a)
{
	if (!a)
		return;
	assert(!a->watch && a->n_checks == 0);
	forget_authenticator(a);
	review_cache_free(a->tokens);
	review_cache_free(a->accesses);
	free(a);
}

bool delegated_auth_is_ready(const struct delegated_auth *a)
{
	return a->authenticator != NULL;
}

// ---- ends of a check ----

#define TOO_MANY "too many requests wait for the API server to say whether they may be answered"

// Returns whether there is room for one more bearer token. An address that uses up their places leaves some to each
// other address.
static bool has_room(const struct check *c)
{
	const struct check *other;
	int n = 0, max = DELEGATED_AUTH_STRANGERS_MAX + DELEGATED_AUTH_FIRSTS_MAX;
	DL_FOREACH(c->auth->strangers, other)
	{
		n++;
		if (strcmp(other->peer, c->peer) == 0)
			max = DELEGATED_AUTH_STRANGERS_MAX;
	}
	return n < max;
}

// Counts the check among those that wait for a review, until it ends. Returns false at the limit.
static bool may_wait(struct check *c)
{
	struct delegated_auth *a = c->auth;
	if (c->is_waiting)
		return true;
	if (a->n_waiting >= DELEGATED_AUTH_CHECKS_MAX || (c->is_stranger && !has_room(c)))
		return false;
	c->is_waiting = true;
	a->n_waiting++;
	if (c->is_stranger)
		DL_APPEND(a->strangers, c);
	return true;
}

static void end(struct check *c, int status, const char *message)
{
	struct delegated_auth *a = c->auth;
	delegated_auth_fn *done = c->done;
	void *arg = c->arg;
	a->n_checks--;
	a->n_waiting -= c->is_waiting;
	if (c->is_waiting && c->is_stranger)
		DL_DELETE(a->strangers, c);
	k8s_user_unref(c->user);
	free(c);
	done(arg, status, message);
}

static void end_failed(struct check *c, const char *what, const struct err *error)
{
	char message[MESSAGE_BYTES_MAX];
	LOG(c->auth->log, LOG_WARNING, "Refused a request: cannot ask the API server", LOG_S("what", what),
	    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	snprintf(message, sizeof message, "cannot ask the API server for %s: %s", what,
	         err_kind_info(error->kind)->name);
	end(c, 500, message);
}

static void end_judged(struct check *c, const struct review_answer *answer)
{
	const struct access_attributes *t = &c->attributes;
	char message[MESSAGE_BYTES_MAX];
	const char *name = k8s_user_name(c->user), *colon = answer->reason[0] ? ": " : "";
	if (answer->yes) {
		end(c, 200, "");
		return;
	}
	if (t->resource)
		snprintf(message, sizeof message,
		         "%.200s.%s is forbidden: User \"%.200s\" cannot %s resource \"%.200s%s%.200s\" in API group "
		         "\"%s\" in the namespace \"%s\"%s%s",
		         t->resource, t->group, name, t->verb, t->resource, t->subresource ? "/" : "",
		         t->subresource ? t->subresource : "", t->group, t->namespace_name, colon, answer->reason);
	else
		snprintf(message, sizeof message, "forbidden: User \"%.200s\" cannot %s path \"%.200s\"%s%s", name,
		         t->verb, t->path, colon, answer->reason);
	end(c, 403, message);
}

// ---- reviews ----

// Sends the question in `body`, which is wiped: it may hold a token.
static int send_review(struct check *c, const char *path, struct buf *body, k8s_done_fn *done, struct err *e)
{
	const struct k8s_request_options request = {
	        .method = "POST",
	        .path = path,
	        .content_type = "application/json",
	        .body = buf_str(body),
	        .body_len = body->len,
	        .is_unguarded = true, // changes nothing, so a process without a lease may send it
	        .timeout_ms = DELEGATED_AUTH_TIMEOUT_MS,
	        .max_attempts = REVIEW_ATTEMPTS,
	        .done = done,
	        .arg = c,
	};
	int rc = body->failed ? err_set(e, ERR_LIMIT, "a review larger than %d bytes", REVIEW_BYTES_MAX)
	                      : k8s_request_with(c->auth->client, &request, NULL, e);
	buf_wipe(body);
	return rc;
}

static void on_access(void *arg, const struct http_response *response, const struct err *error)
{
	struct check *c = arg;
	struct review_answer answer = {0};
	struct err e;
	_Static_assert(sizeof answer.reason == ACCESS_REASON_BYTES, "one size of a reason");
	answer.yes = error ? -1 : subject_access_review_read(response->body, response->body_len, answer.reason, &e);
	if (answer.yes < 0) {
		end_failed(c, "an access review", error ? error : &e);
		return;
	}
	review_cache_put(c->auth->accesses, c->key, &answer, mono_ms(c->auth));
	end_judged(c, &answer);
}

static void ask_access(struct check *c)
{
	struct delegated_auth *a = c->auth;
	struct buf body;
	struct err e;
	buf_init(&body, REVIEW_BYTES_MAX);
	subject_access_review_write(&body, c->user, &c->attributes);
	// The whole question: user, groups, extra and what for.
	SHA256((const unsigned char *)buf_str(&body), body.len, c->key);
	const struct review_answer *known = body.failed ? NULL : review_cache_get(a->accesses, c->key, mono_ms(a));
	if (known) {
		buf_done(&body);
		end_judged(c, known);
		return;
	}
	if (!may_wait(c)) {
		buf_done(&body);
		end(c, 429, TOO_MANY);
		return;
	}
	if (send_review(c, SUBJECT_ACCESS_REVIEW_PATH, &body, on_access, &e) < 0)
		end_failed(c, "an access review", &e);
}

// The API server has reviewed the token: it belongs to a user, or to none.
static void go_on_as(struct check *c, const struct review_answer *answer)
{
	if (!answer->yes) {
		end(c, 401, "Unauthorized");
		return;
	}
	c->user = k8s_user_ref(answer->user);
	ask_access(c);
}

static void on_token(void *arg, const struct http_response *response, const struct err *error)
{
	struct check *c = arg;
	struct review_answer answer = {0};
	struct err e;
	answer.yes = error ? -1 : token_review_read(response->body, response->body_len, &answer.user, &e);
	if (answer.yes < 0) {
		end_failed(c, "a token review", error ? error : &e);
		return;
	}
	review_cache_put(c->auth->tokens, c->key, &answer, mono_ms(c->auth));
	go_on_as(c, &answer);
	k8s_user_unref(answer.user);
}

static void ask_token(struct check *c, const char *token)
{
	struct delegated_auth *a = c->auth;
	struct buf body;
	struct err e;
	c->is_stranger = true;
	SHA256((const unsigned char *)token, strlen(token), c->key);
	const struct review_answer *known = review_cache_get(a->tokens, c->key, mono_ms(a));
	if (known) {
		go_on_as(c, known);
		return;
	}
	if (!may_wait(c)) {
		end(c, 429, TOO_MANY);
		return;
	}
	buf_init(&body, REVIEW_BYTES_MAX);
	token_review_write(&body, token);
	if (send_review(c, TOKEN_REVIEW_PATH, &body, on_token, &e) < 0)
		end_failed(c, "a token review", &e);
}

// ---- beginning ----

static struct check *check_new(struct delegated_auth *a, const struct access_attributes *t, delegated_auth_fn *done,
                               void *arg)
{
	struct check *c = must_alloc(calloc(1, sizeof *c));
	c->attributes = *t;
	c->auth = a;
	c->done = done;
	c->arg = arg;
	a->n_checks++;
	return c;
}

void delegated_auth_check(struct delegated_auth *a, const struct http_exchange *x,
                          const struct access_attributes *attributes, delegated_auth_fn *done, void *arg)
{
	const char *token;
	struct err e;
	struct check *c = check_new(a, attributes, done, arg);
	snprintf(c->peer, sizeof c->peer, "%s", http_exchange_peer(x));
	switch (authenticator_identify(a->authenticator, x, &c->user, &token, &e)) {
	case IDENTITY_USER:
		ask_access(c);
		return;
	case IDENTITY_TOKEN:
		ask_token(c, token);
		return;
	default:
		break;
	}
	LOG(a->log, LOG_DEBUG, "Refused an unauthenticated request", LOG_S("peer", http_exchange_peer(x)),
	    LOG_S("err", e.kind == ERR_NONE ? "no certificate or token" : e.msg));
	if (a->authenticator)
		end(c, 401, "Unauthorized");
	else
		end(c, 503,
		    "not ready: ConfigMap " REQUEST_HEADER_NAMESPACE "/" REQUEST_HEADER_CONFIGMAP
		    " could not be read, so no client can be authenticated");
}
