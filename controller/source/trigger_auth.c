// SPDX-License-Identifier: Apache-2.0
#include "controller/source/trigger_auth.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "k8s/client/k8s_client.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

#define PATH_BYTES      640
#define BIT(parameter)  (1u << (parameter))
#define TEXT_BYTES      (TRIGGER_SECRET_BYTES_MAX / 3 * 4 + 8) // base64
#define PARAMETERS_MAX  64                                     // of one TriggerAuthentication
#define PARAMETER_BYTES 64
#define MODE_SEPARATORS ", \t"

// ---- the credentials of one use ----

static const char *const parameter_names[TRIGGER_PARAMETER__COUNT] = {
        [TRIGGER_BEARER_TOKEN] = "bearerToken",
        [TRIGGER_USERNAME] = "username",
        [TRIGGER_PASSWORD] = "password",
        [TRIGGER_CA] = "ca",
        [TRIGGER_CERT] = "cert",
        [TRIGGER_KEY] = "key",
        [TRIGGER_HEADER] = "customAuthHeader",
        [TRIGGER_HEADER_VALUE] = "customAuthValue",
};

static const struct {
	const char *name;
	unsigned wanted, optional;
} modes[] = {
        {"bearer", BIT(TRIGGER_BEARER_TOKEN), BIT(TRIGGER_CA)},
        {"basic", BIT(TRIGGER_USERNAME) | BIT(TRIGGER_PASSWORD), BIT(TRIGGER_CA)},
        {"tls", BIT(TRIGGER_CERT) | BIT(TRIGGER_KEY), BIT(TRIGGER_CA)},
        {"custom", BIT(TRIGGER_HEADER) | BIT(TRIGGER_HEADER_VALUE), BIT(TRIGGER_CA)},
};

static int take_mode(struct trigger_credentials *c, const char *text, size_t len, struct err *e)
{
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strlen(modes[i].name) != len || strncmp(modes[i].name, text, len) != 0)
			continue;
		c->wanted |= modes[i].wanted;
		c->optional |= modes[i].optional;
		return 0;
	}
	return err_set(e, ERR_UNSUPPORTED,
	               "not supported: authModes \"%.*s\"; bearer, basic, tls and custom are supported",
	               (int)(len < 64 ? len : 64), text);
}

int trigger_credentials_init(struct trigger_credentials *c, const char *text, struct err *e)
{
	*c = (struct trigger_credentials){0};
	for (const char *at = text + strspn(text, MODE_SEPARATORS); *at;) {
		size_t len = strcspn(at, MODE_SEPARATORS);
		if (take_mode(c, at, len, e) < 0)
			return -1;
		at += len;
		at += strspn(at, MODE_SEPARATORS);
	}
	return c->wanted ? 0 : take_mode(c, "", 0, e);
}

static void forget(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void trigger_credentials_done(struct trigger_credentials *c)
{
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		forget(&c->values[i].value);
	forget(&c->header);
}

// ---- the TriggerAuthentication ----

static int parameter_of(struct json_span text)
{
	char name[PARAMETER_BYTES];
	if (json_span_text(text, name, sizeof name) < 0)
		return -1;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if (strcmp(parameter_names[i], name) == 0)
			return i;
	return -1;
}

static int take_reference(struct trigger_credentials *c, struct json_span ref, struct err *e)
{
	int i = parameter_of(json_span_get(ref, "parameter"));
	if (i < 0 || !((c->wanted | c->optional) & BIT(i)))
		return 0;
	struct trigger_value *v = &c->values[i];
	if (json_span_text(json_span_get(ref, "name"), v->secret, sizeof v->secret) < 0 ||
	    json_span_text(json_span_get(ref, "key"), v->key, sizeof v->key) < 0 || !k8s_name_is_valid(v->secret) ||
	    !v->key[0])
		return err_set(e, ERR_INPUT,
		               "secretTargetRef of the parameter %s needs the name and the key of a Secret",
		               parameter_names[i]);
	return 0;
}

int trigger_credentials_refer(struct trigger_credentials *c, const char *json, size_t len, struct err *e)
{
	const struct json_span object = {json, len}, spec = json_span_get(object, "spec");
	struct json_span_iter it = {.rest = json_span_get(spec, "secretTargetRef")};
	if (!json_span_is_whole(object) || json_span_kind(spec) != '{')
		return err_set(e, ERR_INPUT, "has no spec");
	for (int n = 0; json_span_next(&it); n++) {
		if (n == PARAMETERS_MAX)
			return err_set(e, ERR_LIMIT, "has more than %d parameters", PARAMETERS_MAX);
		if (take_reference(c, it.value, e) < 0)
			return -1;
	}
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if ((c->wanted & BIT(i)) && !c->values[i].secret[0])
			return err_set(e, ERR_UNSUPPORTED,
			               "has no secretTargetRef of the parameter %s; other ways are not supported",
			               parameter_names[i]);
	return 0;
}

const char *trigger_credentials_missing(const struct trigger_credentials *c)
{
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if (c->values[i].secret[0] && !c->values[i].value)
			return c->values[i].secret;
	return NULL;
}

// ---- the Secret ----

static char *decode(struct json_span text, char *scratch)
{
	char *value = NULL;
	size_t n = 0;
	if (json_span_text(text, scratch, TEXT_BYTES) > 0) {
		value = must_alloc(calloc(1, TRIGGER_SECRET_BYTES_MAX + 1));
		n = text_from_base64(scratch, value, TRIGGER_SECRET_BYTES_MAX);
		while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r')) // what editors and `echo` add
			value[--n] = '\0';
	}
	explicit_bzero(scratch, TEXT_BYTES);
	if (value && (n == 0 || strlen(value) != n))
		forget(&value);
	return value;
}

int trigger_credentials_read(struct trigger_credentials *c, const char *name, const char *json, size_t len,
                             struct err *e)
{
	const struct json_span object = {json, len}, data = json_span_get(object, "data");
	char *scratch = must_alloc(malloc(TEXT_BYTES));
	int rc = 0;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT && rc == 0; i++) {
		struct trigger_value *v = &c->values[i];
		if (v->value || strcmp(v->secret, name) != 0)
			continue;
		v->value = decode(json_span_get(data, v->key), scratch);
		if (!v->value)
			rc = err_set(e, ERR_INPUT, "Secret %s has no text of up to %zu bytes under the key %s", name,
			             TRIGGER_SECRET_BYTES_MAX, v->key);
	}
	free(scratch);
	return rc;
}

// ---- use ----

int trigger_credentials_use(struct trigger_credentials *c, struct promql_credentials *ret, struct err *e)
{
	const struct trigger_value *v = c->values;
	forget(&c->header);
	if (c->wanted & BIT(TRIGGER_HEADER)) {
		size_t size = strlen(v[TRIGGER_HEADER].value) + strlen(v[TRIGGER_HEADER_VALUE].value) + sizeof ": ";
		c->header = must_alloc(malloc(size));
		snprintf(c->header, size, "%s: %s", v[TRIGGER_HEADER].value, v[TRIGGER_HEADER_VALUE].value);
	}
	*ret = (struct promql_credentials){.bearer_token = v[TRIGGER_BEARER_TOKEN].value,
	                                   .basic_user = v[TRIGGER_USERNAME].value,
	                                   .basic_password = v[TRIGGER_PASSWORD].value,
	                                   .header = c->header,
	                                   .ca_pem = v[TRIGGER_CA].value,
	                                   .cert_pem = v[TRIGGER_CERT].value,
	                                   .key_pem = v[TRIGGER_KEY].value};
	if (ret->bearer_token && ret->basic_user)
		return err_set(e, ERR_UNSUPPORTED, "not supported: authModes with both bearer and basic");
	return 0;
}

uint64_t trigger_credentials_print(const struct trigger_credentials *c)
{
	uint64_t h = HASH_START;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		h = hash_text(h, c->values[i].value ? c->values[i].value : "");
	return h ? h : 1;
}

// ---- the uses ----

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
	struct event timer;
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

static void on_answer(void *arg, const struct http_response *response, const struct err *error);

static void get(struct trigger_auth *a, const char *path)
{
	const struct k8s_request_options request = {
	        .method = "GET", .path = path, .is_background = true, .done = on_answer, .arg = a};
	struct err e;
	if (k8s_request_with(a->all->options.client, &request, &a->call, &e) < 0) {
		a->call = NULL;
		fail(a, &e);
	}
}

// The TriggerAuthentication, and then each Secret that it names.
static void on_answer(void *arg, const struct http_response *response, const struct err *error)
{
	struct trigger_auth *a = arg;
	struct trigger_credentials *c = &a->reading;
	const char *secret = trigger_credentials_missing(c);
	char path[PATH_BYTES];
	struct err e;
	a->call = NULL;
	if (a->all->closing)
		return;
	if (!error && (secret ? trigger_credentials_read(c, secret, response->body, response->body_len, &e)
	                      : trigger_credentials_refer(c, response->body, response->body_len, &e)) < 0)
		error = &e;
	if (error) {
		fail(a, error);
		return;
	}
	secret = trigger_credentials_missing(c);
	if (!secret) {
		use(a);
		return;
	}
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/secrets/%s", a->namespace_name, secret);
	get(a, path);
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
	get(a, path);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct trigger_auths *t = arg;
	for (struct trigger_auth *a = t->list; a; a = a->next)
		read_again(a);
	timer_start(&t->timer, TRIGGER_AUTH_READ_MS);
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

struct trigger_auths *trigger_auths_new(const struct trigger_auths_options *options)
{
	struct trigger_auths *t = must_alloc(calloc(1, sizeof *t));
	t->options = *options;
	evtimer_assign(&t->timer, options->client->options.loop, on_timer, t);
	if (timer_start(&t->timer, TRIGGER_AUTH_READ_MS) < 0)
		abort(); // base/alloc.h
	return t;
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
		for (struct waiting *w; (w = a->waiting);) {
			a->waiting = w->next;
			free(w);
		}
		free(a->namespace_name);
		free(a->name);
		free(a->modes);
		free(a->like);
		free(a);
	}
	event_del(&t->timer);
	free(t);
}
