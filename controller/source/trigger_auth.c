// SPDX-License-Identifier: Apache-2.0
#include "controller/source/trigger_auth.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/object_name.h"
#include "promql/promql_source.h"

#define PATH_BYTES 640

// Objects that wait for an answer, by name.
struct waiting {
	struct waiting *next;
	char object[];
};

struct trigger_auth {
	struct trigger_auths *all;
	struct trigger_auth *next;
	char *namespace_name, *name, *modes, *like;
	char source[PROMQL_SOURCE_NAME_MAX + 1];
	bool is_ready;  // the source exists
	uint64_t print; // of the credentials that the source has; 0: none
	char why[TRIGGER_AUTH_WHY_BYTES];
	struct waiting *waiting;
	struct trigger_credentials reading; // while `is_reading`
	bool is_reading;
	struct k8s_call *call; // NULL: none in flight
};

struct trigger_auths {
	struct trigger_auths_options options;
	struct trigger_auth *list;
	size_t n;
	struct event *timer;
	bool closing;
	char why[TRIGGER_AUTH_WHY_BYTES];
};

// ---- the end of a reading ----

static void end_reading(struct trigger_auth *a)
{
	trigger_credentials_done(&a->reading);
	a->is_reading = false;
}

static void tell_waiting(struct trigger_auth *a)
{
	struct waiting *w = a->waiting;
	a->waiting = NULL; // an object that still waits comes back
	while (w) {
		struct waiting *next = w->next;
		a->all->options.on_changed(a->all->options.arg, a->namespace_name, w->object);
		free(w);
		w = next;
	}
}

// What proves that there are no valid credentials; after any other error the last ones stay in use.
static bool is_final(const struct err *error)
{
	return error->code == 404 || error->kind == ERR_INPUT || error->kind == ERR_UNSUPPORTED;
}

static void fail(struct trigger_auth *a, const struct err *error)
{
	char why[TRIGGER_AUTH_WHY_BYTES];
	struct err unused;
	end_reading(a);
	snprintf(why, sizeof why, "TriggerAuthentication %s: %s", a->name, error->msg);
	if (strcmp(why, a->why) == 0)
		return;
	snprintf(a->why, sizeof a->why, "%s", why);
	LOG(a->all->options.log, LOG_ERROR, "Cannot use credentials of triggers", LOG_S("namespace", a->namespace_name),
	    LOG_S("err", why));
	if (a->is_ready && a->print && is_final(error)) { // the server refuses the queries, so their policies hold
		const struct promql_credentials none = {0};
		(void)promql_source_set_credentials(promql_sources_find(a->all->options.sources, a->source, &unused),
		                                    &none, &unused);
		a->print = 0;
	}
	tell_waiting(a);
}

static int set_credentials(struct trigger_auth *a, const struct promql_credentials *c, struct err *e)
{
	struct promql_sources *sources = a->all->options.sources;
	struct promql_source *source = promql_sources_find(sources, a->is_ready ? a->source : a->like, e);
	if (!source)
		return -1;
	return a->is_ready ? promql_source_set_credentials(source, c, e)
	                   : promql_sources_add(sources, source, a->source, a->namespace_name, c, e);
}

static void use(struct trigger_auth *a)
{
	struct promql_credentials c;
	struct err e;
	uint64_t print = trigger_credentials_print(&a->reading);
	if (trigger_credentials_use(&a->reading, &c, &e) < 0 || (print != a->print && set_credentials(a, &c, &e) < 0)) {
		fail(a, &e);
		return;
	}
	if (print != a->print)
		LOG(a->all->options.log, LOG_INFO, "Using credentials of triggers",
		    LOG_S("namespace", a->namespace_name), LOG_S("triggerAuthentication", a->name),
		    LOG_S("source", a->source));
	a->print = print;
	a->is_ready = true;
	a->why[0] = '\0';
	end_reading(a);
	tell_waiting(a);
}

// ---- reading ----

static void on_secret(void *arg, const struct http_response *response, const struct err *error);

static void get(struct trigger_auth *a, const char *path, k8s_done_fn *done)
{
	const struct k8s_request_options request = {
	        .method = "GET", .path = path, .is_background = true, .done = done, .arg = a};
	struct err e;
	if (k8s_request_with(a->all->options.client, &request, &a->call, &e) < 0) {
		a->call = NULL;
		fail(a, &e);
	}
}

static void read_next(struct trigger_auth *a)
{
	char path[PATH_BYTES];
	const char *secret = trigger_credentials_missing(&a->reading);
	if (!secret) {
		use(a);
		return;
	}
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/secrets/%s", a->namespace_name, secret);
	get(a, path, on_secret);
}

// Returns whether there is an answer to read.
static bool is_answered(struct trigger_auth *a, const struct err *error)
{
	a->call = NULL;
	if (error && !a->all->closing)
		fail(a, error);
	return !error && !a->all->closing;
}

static void on_secret(void *arg, const struct http_response *response, const struct err *error)
{
	struct trigger_auth *a = arg;
	struct err e;
	if (!is_answered(a, error))
		return;
	if (trigger_credentials_read(&a->reading, trigger_credentials_missing(&a->reading), response->body,
	                             response->body_len, &e) < 0)
		fail(a, &e);
	else
		read_next(a);
}

static void on_authentication(void *arg, const struct http_response *response, const struct err *error)
{
	struct trigger_auth *a = arg;
	struct err e;
	if (!is_answered(a, error))
		return;
	if (trigger_credentials_refer(&a->reading, response->body, response->body_len, &e) < 0)
		fail(a, &e);
	else
		read_next(a);
}

static void read_again(struct trigger_auth *a)
{
	char path[PATH_BYTES];
	struct err e;
	if (a->is_reading)
		return;
	a->is_reading = true;
	if (trigger_credentials_init(&a->reading, a->modes, &e) < 0) {
		fail(a, &e);
		return;
	}
	snprintf(path, sizeof path, "/apis/keda.sh/v1alpha1/namespaces/%s/triggerauthentications/%s", a->namespace_name,
	         a->name);
	get(a, path, on_authentication);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct trigger_auths *t = arg;
	for (struct trigger_auth *a = t->list; a; a = a->next)
		read_again(a);
	timer_start(t->timer, TRIGGER_AUTH_READ_MS);
}

// ---- uses ----

static struct trigger_auth *find(const struct trigger_auths *t, const struct trigger_auth_use *u, size_t *ret_here)
{
	*ret_here = 0;
	for (struct trigger_auth *a = t->list; a; a = a->next) {
		if (strcmp(a->namespace_name, u->namespace_name) != 0)
			continue;
		++*ret_here;
		if (strcmp(a->name, u->name) == 0 && strcmp(a->modes, u->modes) == 0 && strcmp(a->like, u->like) == 0)
			return a;
	}
	return NULL;
}

// "NAME-HASH": a name in the metrics that people recognize, and that no other use has.
static void name_source(struct trigger_auth *a)
{
	uint64_t h = hash_text(hash_text(hash_text(HASH_START, a->namespace_name), a->modes), a->like);
	h = hash_mix(hash_text(h, a->name));
	snprintf(a->source, sizeof a->source, "%.40s-%016llx", a->name, (unsigned long long)h);
}

static struct trigger_auth *add(struct trigger_auths *t, const struct trigger_auth_use *u)
{
	struct trigger_auth *a = must_alloc(calloc(1, sizeof *a));
	a->all = t;
	a->namespace_name = must_alloc(strdup(u->namespace_name));
	a->name = must_alloc(strdup(u->name));
	a->modes = must_alloc(strdup(u->modes));
	a->like = must_alloc(strdup(u->like));
	name_source(a);
	snprintf(a->why, sizeof a->why, "TriggerAuthentication %s is not read yet", a->name);
	a->next = t->list;
	t->list = a;
	t->n++;
	return a;
}

static void wait_for(struct trigger_auth *a, const char *object)
{
	size_t size = strlen(object) + 1;
	for (const struct waiting *w = a->waiting; w; w = w->next)
		if (strcmp(w->object, object) == 0)
			return;
	struct waiting *w = must_alloc(malloc(sizeof *w + size));
	memcpy(w->object, object, size);
	w->next = a->waiting;
	a->waiting = w;
}

const char *trigger_auths_find(struct trigger_auths *t, const struct trigger_auth_use *u, const char **ret_why)
{
	size_t n_here;
	struct trigger_auth *a = find(t, u, &n_here);
	if (!a && (t->n == TRIGGER_AUTHS_MAX || n_here == TRIGGER_AUTHS_NAMESPACE_MAX || !k8s_name_is_valid(u->name))) {
		if (k8s_name_is_valid(u->name))
			snprintf(
			        t->why, sizeof t->why,
			        "not supported: more than %d uses of TriggerAuthentications, %d of them in a namespace",
			        TRIGGER_AUTHS_MAX, TRIGGER_AUTHS_NAMESPACE_MAX);
		else
			snprintf(t->why, sizeof t->why, "\"%.80s\" is not a valid name of a TriggerAuthentication",
			         u->name);
		*ret_why = t->why;
		return NULL;
	}
	if (!a) {
		a = add(t, u);
		read_again(a);
	}
	if (a->is_ready)
		return a->source;
	wait_for(a, u->object);
	*ret_why = a->why;
	return NULL;
}

// ---- life ----

struct trigger_auths *trigger_auths_new(const struct trigger_auths_options *options, struct err *e)
{
	struct trigger_auths *t = calloc(1, sizeof *t);
	if (!t) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	t->options = *options;
	t->timer = evtimer_new(options->loop, on_timer, t);
	if (t->timer && timer_start(t->timer, TRIGGER_AUTH_READ_MS) == 0)
		return t;
	trigger_auths_free(t);
	err_set(e, ERR_INTERNAL, "out of memory");
	return NULL;
}

void trigger_auths_free(struct trigger_auths *t)
{
	if (!t)
		return;
	t->closing = true;
	while (t->list) {
		struct trigger_auth *a = t->list;
		t->list = a->next;
		if (a->call)
			k8s_call_cancel(a->call);
		end_reading(a);
		while (a->waiting) {
			struct waiting *next = a->waiting->next;
			free(a->waiting);
			a->waiting = next;
		}
		free(a->namespace_name);
		free(a->name);
		free(a->modes);
		free(a->like);
		free(a);
	}
	if (t->timer)
		event_free(t->timer);
	free(t);
}
