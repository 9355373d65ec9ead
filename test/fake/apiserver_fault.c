// SPDX-License-Identifier: Apache-2.0
// Requests of the fake API server that go wrong as a test wishes, and the counts of all.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/http/http_server.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_stream.h"

#define HANG_MS 600000

// A request that waits for its delay.
struct fake_delayed {
	struct fake_delayed *prev, *next;
	struct fake_apiserver *server;
	struct http_exchange *exchange;
	struct event *timer;
	struct fake_fault fault; // without its strings
};

// ---- what a request is ----

static bool is_yes(const char *value)
{
	return value && strcmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

static const char *verb_of(struct http_exchange *x, const struct fake_path *p)
{
	static const char *const verbs[][2] = {
	        {"PATCH", "patch"}, {"PUT", "update"}, {"POST", "create"}, {"DELETE", "delete"}};
	const char *method = http_exchange_method(x);
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(method, verbs[i][0]) == 0)
			return verbs[i][1];
	if (!p->plural[0] || p->name[0])
		return "get";
	return is_yes(http_exchange_query(x, "watch")) ? "watch" : "list";
}

static void request_init(struct fake_request *r, struct fake_apiserver *f, struct http_exchange *x)
{
	r->f = f;
	r->x = x;
	r->lose_reply = false;
	r->has_path = fake_path_parse(http_exchange_path(x), &r->path);
	r->verb = verb_of(x, &r->path);
}

void fake_resource_name(const struct fake_request *r, char *out, size_t size)
{
	const struct fake_path *p = &r->path;
	if (!r->has_path)
		snprintf(out, size, "other");
	else if (!p->plural[0])
		snprintf(out, size, "discovery");
	else
		snprintf(out, size, "%s%s%s", p->plural, p->subresource[0] ? "/" : "", p->subresource);
}

// ---- counts ----

static struct fake_counter *counter(const struct fake_apiserver *f, const char *verb, const char *resource)
{
	char key[FAKE_COUNTER_BYTES];
	struct fake_counter *c;
	snprintf(key, sizeof key, "%s %s", verb, resource);
	HASH_FIND_STR(f->counters, key, c);
	return c;
}

static void count_one(struct fake_apiserver *f, const char *verb, const char *resource)
{
	struct fake_counter *c = counter(f, verb, resource);
	if (!c && HASH_COUNT(f->counters) < FAKE_COUNTERS_MAX && (c = calloc(1, sizeof *c))) {
		snprintf(c->key, sizeof c->key, "%s %s", verb, resource);
		HASH_ADD_STR(f->counters, key, c);
	}
	if (c)
		c->n++;
}

static void count(struct fake_apiserver *f, const struct fake_request *r, const char *resource)
{
	const char *method = http_exchange_method(r->x);
	f->counts.total++;
	f->counts.get += strcmp(method, "GET") == 0;
	f->counts.patch += strcmp(method, "PATCH") == 0;
	f->counts.put += strcmp(method, "PUT") == 0;
	f->counts.post += strcmp(method, "POST") == 0;
	f->counts.delete_ += strcmp(method, "DELETE") == 0;
	if (r->path.plural[0] && !r->path.kind)
		resource = "unknown";
	count_one(f, r->verb, resource);
}

void fake_count_conflict(const struct fake_request *r)
{
	char resource[FAKE_COUNTER_BYTES];
	fake_resource_name(r, resource, sizeof resource);
	count_one(r->f, "conflict", resource);
}

uint64_t fake_apiserver_count(const struct fake_apiserver *f, const char *verb, const char *resource)
{
	const struct fake_counter *c = counter(f, verb, resource);
	return c ? c->n : 0;
}

void fake_apiserver_get_counts(const struct fake_apiserver *f, struct fake_counts *ret_counts)
{
	*ret_counts = f->counts;
}

// ---- faults ----

static cJSON *fault_status(struct fake_request *r, const struct fake_fault *fault)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {{400, "BadRequest"}, {401, "Unauthorized"},      {403, "Forbidden"},
	               {404, "NotFound"},   {409, "Conflict"},          {410, "Expired"},
	               {422, "Invalid"},    {429, "TooManyRequests"},   {500, "InternalError"},
	               {504, "Timeout"},    {503, "ServiceUnavailable"}};
	char message[1500] = "made to fail by the test";
	const char *reason = "ServiceUnavailable";
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].status == fault->status)
			reason = reasons[i].reason;
	if (fault->status == 403)
		fake_forbidden_text(r, message, sizeof message);
	return fake_status(fault->status, reason, message, r->path.plural[0] ? &r->path : NULL);
}

// What the fault says, after its delay.
static void fail(struct fake_request *r, const struct fake_fault *fault)
{
	char text[32];
	if (fault->cut || fault->hang) { // a hang has an end for the server only
		http_exchange_abort(r->x);
	} else if (!fault->status) {
		r->lose_reply = fault->lose;
		fake_serve(r);
	} else if (fault->in_stream && strcmp(r->verb, "watch") == 0 && r->path.kind) {
		fake_watch_error(r, fault_status(r, fault));
	} else {
		if (fault->retry_after_s > 0) {
			snprintf(text, sizeof text, "%d", fault->retry_after_s);
			http_exchange_set_header(r->x, "Retry-After", text);
		}
		fake_reply_json(r, fault->status, fault_status(r, fault));
	}
}

static void delayed_free(struct fake_delayed *d)
{
	DL_DELETE(d->server->delayed, d);
	event_free(d->timer);
	free(d);
}

static void on_delay_over(evutil_socket_t fd, short events, void *arg)
{
	struct fake_delayed *d = arg;
	struct fake_request r;
	struct fake_fault fault = d->fault;
	request_init(&r, d->server, d->exchange);
	delayed_free(d);
	fail(&r, &fault);
}

static void delay(struct fake_request *r, const struct fake_fault *fault, int64_t ms)
{
	struct fake_delayed *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->server = r->f;
	d->exchange = r->x;
	d->fault = *fault;
	d->timer = evtimer_new(r->f->options.loop, on_delay_over, d);
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	DL_APPEND(r->f->delayed, d);
	evtimer_add(d->timer, &tv);
}

// The first rule that wants this request, or NULL.
static struct fake_rule *find_rule(struct fake_apiserver *f, const struct fake_request *r, const char *resource)
{
	char line[1200];
	snprintf(line, sizeof line, "%s %s", http_exchange_method(r->x), http_exchange_path(r->x));
	for (size_t i = 0; i < f->n_rules; i++) {
		struct fake_rule *rule = &f->rules[i];
		if (rule->fault.next <= 0 || !strstr(line, rule->match) ||
		    (rule->verb[0] && strcmp(rule->verb, r->verb) != 0) ||
		    (rule->resource[0] && strcmp(rule->resource, resource) != 0))
			continue;
		if (rule->fault.skip > 0) {
			rule->fault.skip--;
			continue;
		}
		return rule;
	}
	return NULL;
}

void fake_take(struct fake_apiserver *f, struct http_exchange *x)
{
	struct fake_request r;
	char resource[2 * FAKE_MATCH_BYTES];
	request_init(&r, f, x);
	fake_resource_name(&r, resource, sizeof resource);
	count(f, &r, resource);
	struct fake_rule *rule = f->n_rules ? find_rule(f, &r, resource) : NULL;
	if (!rule) {
		fake_serve(&r);
		return;
	}
	rule->fault.next--;
	f->counts.faults++;
	int64_t wait_ms = rule->fault.hang ? HANG_MS : rule->fault.delay_ms;
	if (wait_ms > 0)
		delay(&r, &rule->fault, wait_ms);
	else
		fail(&r, &rule->fault);
}

bool fake_apiserver_fail_also(struct fake_apiserver *f, const struct fake_fault *fault)
{
	size_t used = 0;
	for (size_t i = 0; i < f->n_rules; i++) // what has done its work makes room
		if (f->rules[i].fault.next > 0)
			f->rules[used++] = f->rules[i];
	f->n_rules = used;
	if (used == FAKE_FAULTS_MAX)
		return false;
	struct fake_rule *rule = &f->rules[f->n_rules++];
	rule->fault = *fault;
	rule->fault.match = rule->fault.verb = rule->fault.resource = NULL;
	snprintf(rule->match, sizeof rule->match, "%s", fault->match ? fault->match : "");
	snprintf(rule->verb, sizeof rule->verb, "%s", fault->verb ? fault->verb : "");
	snprintf(rule->resource, sizeof rule->resource, "%s", fault->resource ? fault->resource : "");
	return true;
}

void fake_apiserver_fail(struct fake_apiserver *f, const struct fake_fault *fault)
{
	f->n_rules = 0;
	fake_apiserver_fail_also(f, fault);
}

void fake_faults_done(struct fake_apiserver *f)
{
	struct fake_counter *c, *next;
	while (f->delayed) {
		struct http_exchange *x = f->delayed->exchange;
		delayed_free(f->delayed);
		http_exchange_abort(x);
	}
	HASH_ITER(hh, f->counters, c, next)
	{
		HASH_DEL(f->counters, c);
		free(c);
	}
}
