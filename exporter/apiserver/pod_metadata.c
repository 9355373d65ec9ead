// SPDX-License-Identifier: Apache-2.0
#include "exporter/apiserver/pod_metadata.h"

#include <ctype.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/http/service_account.h"
#include "base/json/json_span.h"
#include "base/process/log.h"
#include "base/process/process.h"
#include "base/timer.h"
#include "exporter/http_call.h"
#include "exporter/kubelet/pod_resources.h"

// ---- labels ----

static bool is_key(const char *s)
{
	size_t len = strlen(s);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_./", s[i]))
			return false;
	return len <= POD_LABEL_KEY_BYTES_MAX;
}

static void write_name(char out[POD_LABEL_NAME_BYTES], const char *key)
{
	size_t n = sizeof "label_" - 1;
	memcpy(out, "label_", n);
	for (size_t i = 0; key[i]; i++) {
		unsigned char c = (unsigned char)key[i], before = i > 0 ? (unsigned char)key[i - 1] : '_';
		if (isupper(c) && (islower(before) || isdigit(before)))
			out[n++] = '_';
		out[n++] = isalnum(c) ? (char)tolower(c) : '_';
	}
	out[n] = '\0';
}

static int add(struct pod_labels *l, const char *key, struct err *e)
{
	if (!is_key(key))
		return err_set(e, ERR_INPUT, "\"%.100s\" is not a valid key of a label", key);
	if (l->n == POD_LABELS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d labels", POD_LABELS_MAX);
	write_name(l->names[l->n], key);
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->names[i], l->names[l->n]) == 0)
			return err_set(e, ERR_INPUT, "\"%.100s\" and \"%.100s\" are both %.100s", l->keys[i], key,
			               l->names[i]);
	l->keys[l->n++] = key;
	return 0;
}

char *pod_labels_next(char **list)
{
	char *item = *list;
	while (item && *item == ',')
		item++;
	if (!item || !*item)
		return NULL;
	*list = item + strcspn(item, ",");
	if (**list)
		*(*list)++ = '\0';
	return item;
}

int pod_labels_parse(struct pod_labels *l, char *list, struct err *e)
{
	l->n = 0;
	for (char *key; (key = pod_labels_next(&list));)
		if (add(l, key, e) < 0)
			return -1;
	return 0;
}

// ---- the reply ----

// Reads a text of a pod into `out`, which is "" and stays so when the text is absent.
static int read_text(struct json_span text, char *out, size_t size, const char *what, struct err *e)
{
	if (!text.text || json_span_text(text, out, size) >= 0)
		return 0;
	return json_span_kind(text) == '"'
	               ? err_set(e, ERR_LIMIT, "%s of a pod of the reply exceeds %zu bytes", what, size - 1)
	               : err_set(e, ERR_PROTOCOL, "%s of a pod of the reply is not a string", what);
}

static int read_pod(struct metadata_list *l, struct json_span object, struct err *e)
{
	struct metadata_list_item p = {.uid = ""};
	struct json_span metadata = json_span_get(object, "metadata"), labels = json_span_get(metadata, "labels");
	if (++l->n > METADATA_LIST_PODS_MAX)
		return err_set(e, ERR_LIMIT, "the node has more than %d pods", METADATA_LIST_PODS_MAX);
	if (read_text(json_span_get(metadata, "namespace"), p.namespace_, sizeof p.namespace_, "the namespace", e) <
	            0 ||
	    read_text(json_span_get(metadata, "name"), p.name, sizeof p.name, "the name", e) < 0 ||
	    read_text(json_span_get(metadata, "uid"), p.uid, sizeof p.uid, "the UID", e) < 0)
		return -1;
	for (size_t i = 0; i < l->labels->n; i++) {
		struct json_span value = json_span_get(labels, l->labels->keys[i]);
		if (read_text(value, p.labels[i], sizeof p.labels[i], "a label", e) < 0)
			return -1;
	}
	if (!p.namespace_[0] || !p.name[0] || !p.uid[0])
		return err_set(e, ERR_PROTOCOL, "a pod of the reply lacks its namespace, name or UID");
	return l->fn(l->arg, &p, e);
}

static void on_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len)
{
	struct metadata_list *l = arg;
	if (l->error.kind != ERR_NONE)
		return;
	if (part == WATCH_PART_ITEM)
		read_pod(l, (struct json_span){json, len}, &l->error);
	else if (part == WATCH_PART_TOO_LARGE)
		err_set(&l->error, ERR_LIMIT, "a pod of the reply exceeds %d bytes", METADATA_LIST_POD_BYTES_MAX);
}

void metadata_list_init(struct metadata_list *l, const struct pod_labels *labels, metadata_list_fn *fn, void *arg)
{
	*l = (struct metadata_list){.labels = labels, .fn = fn, .arg = arg};
	watch_scan_init(&l->scan, WATCH_SCAN_METADATA, METADATA_LIST_POD_BYTES_MAX, on_part, l);
}

int metadata_list_feed(struct metadata_list *l, const char *data, size_t len, struct err *e)
{
	int rc = watch_scan_feed(&l->scan, data, len, e);
	if (l->error.kind == ERR_NONE)
		return rc;
	*e = l->error; // the first one
	return -1;
}

// ---- the requests ----

#define TICK_MS         1000
#define URL_BYTES       2048
#define PATH_BYTES      512
#define MESSAGE_BYTES   300 // longest error message of the API server
#define TABLE_BYTES_MAX (16 * 1024 * 1024)
#define SINGLE_MS       (10 * 60 * 1000) // pods are requested one by one for this time

// A pod that uses devices.
struct holder {
	const char *namespace_, *pod;
	uint64_t held;  // struct pod_holder
	uint64_t since; // the request that knows it is this one or a later one
	bool is_known;
	struct pod_known known;
};

// Replaced as a whole. Sorted by namespace and pod.
struct table {
	struct arena arena;
	struct holder *list;
	size_t n;
};

// The request in flight. Allocated on its own, so that no memory is used between requests.
struct call {
	struct http_call *http;
	struct metadata_list list;
	struct table found; // `list` has room for `room` pods, in the order of the reply
	size_t room;
	bool is_single; // pods are requested one by one
	size_t next;    // next entry of the table
};

struct pod_metadata {
	struct pod_metadata_options options;
	int server_len; // length of `url` without the path
	char url[URL_BYTES], token_file[PATH_BYTES], ca_file[PATH_BYTES];
	struct event tick;
	struct call *call;       // NULL between requests
	uint64_t asked;          // number of the last request
	int64_t asked_ms;        // mono_ms of its start
	int64_t single_until_ms; // the list of the node exceeds a limit: pods are requested one by one until then
	int64_t retry_ms;        // delay after it while it failed or pods are missing; 0: no pod is missing
	char last_error[ERR_MSG_BYTES];

	pthread_mutex_t lock; // protects the members below
	struct table table;
	int64_t reply_ms; // mono_ms of the last successful reply; -1: none
	bool is_usable;   // while it is acquired: the reply is not too old
	struct pod_metadata_status status;
};

static int by_name(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	int order = strcmp(x->namespace_, y->namespace_);
	return order ? order : strcmp(x->pod, y->pod);
}

static struct holder *find(const struct table *t, const char *namespace_, const char *pod)
{
	const struct holder key = {.namespace_ = namespace_, .pod = pod};
	return t->n ? bsearch(&key, t->list, t->n, sizeof *t->list, by_name) : NULL;
}

static int table_init(struct table *t, size_t room)
{
	*t = (struct table){.n = 0};
	arena_init(&t->arena, TABLE_BYTES_MAX);
	t->list = arena_calloc(&t->arena, room ? room : 1, sizeof *t->list);
	return t->list ? 0 : -1;
}

// Appends a copy of `h`. -1 above the limit.
static int table_add(struct table *t, const struct holder *h)
{
	struct holder *to = &t->list[t->n];
	*to = *h;
	to->namespace_ = arena_strdup(&t->arena, h->namespace_);
	to->pod = arena_strdup(&t->arena, h->pod);
	bool ok = to->namespace_ && to->pod;
	if (h->is_known) {
		to->known.uid = arena_strdup(&t->arena, h->known.uid);
		ok = ok && to->known.uid;
		for (size_t i = 0; i < POD_LABELS_MAX; i++) {
			const char *value = h->known.labels[i];
			to->known.labels[i] = value && value[0] ? arena_strdup(&t->arena, value) : "";
			ok = ok && to->known.labels[i];
		}
	}
	t->n += ok;
	return ok ? 0 : -1;
}

// Takes over `next`, and counts the pods that are not known.
static void replace_table(struct pod_metadata *p, const struct table *next)
{
	size_t missing = 0;
	for (size_t i = 0; i < next->n; i++)
		missing += !next->list[i].is_known;
	pthread_mutex_lock(&p->lock);
	struct table old = p->table;
	p->table = *next;
	p->status.missing = missing;
	pthread_mutex_unlock(&p->lock);
	arena_done(&old.arena);
}

static void end_call(struct pod_metadata *p)
{
	struct call *c = p->call;
	p->call = NULL;
	if (!c)
		return;
	http_call_free(c->http);
	watch_scan_done(&c->list.scan);
	arena_done(&c->found.arena);
	free(c);
}

// Completes the request: with what it found, or with *e.
static void finish(struct pod_metadata *p, const struct err *e)
{
	int64_t now_ms = clock_mono_ms(p->options.clock);
	pthread_mutex_lock(&p->lock);
	struct pod_metadata_status *st = &p->status;
	st->polls++;
	st->errors += e != NULL;
	st->last_ok = !e;
	st->last_ms = now_ms - p->asked_ms;
	if (!e)
		p->reply_ms = now_ms;
	bool is_complete = !e && st->missing == 0;
	pthread_mutex_unlock(&p->lock);
	end_call(p);
	process_trim(); // TLS has mapped 3 MiB of code that is not used until the next request
	p->retry_ms = is_complete ? 0 : p->retry_ms ? p->retry_ms * 2 : p->options.min_ms;
	if (p->retry_ms > POD_METADATA_REFRESH_MS)
		p->retry_ms = POD_METADATA_REFRESH_MS;
	if (e && strcmp(p->last_error, e->msg) != 0)
		LOG(p->options.log, LOG_WARNING, "Pod metadata request failed, retrying", LOG_S("url", p->url),
		    LOG_S("err", e->msg));
	else if (!e && p->last_error[0])
		LOG(p->options.log, LOG_INFO, "Pod metadata requests recovered", LOG_S("url", p->url));
	snprintf(p->last_error, sizeof p->last_error, "%s", e ? e->msg : "");
}

// A pod of the reply. Kept if it used devices before the request: a later one may be a new pod of the same name.
static int on_pod(void *arg, const struct metadata_list_item *pod, struct err *e)
{
	struct pod_metadata *p = arg;
	struct call *c = p->call;
	const struct holder *h = find(&p->table, pod->namespace_, pod->name);
	if (!h || h->since > p->asked || c->found.n == c->room)
		return 0;
	struct holder found = {
	        .namespace_ = pod->namespace_, .pod = pod->name, .is_known = true, .known = {.uid = pod->uid}};
	for (size_t i = 0; i < POD_LABELS_MAX; i++)
		found.known.labels[i] = pod->labels[i];
	return table_add(&c->found, &found) == 0
	               ? 0
	               : err_set(e, ERR_LIMIT, "the pods exceed the ceiling of %d bytes", TABLE_BYTES_MAX);
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	struct pod_metadata *p = arg;
	return metadata_list_feed(&p->call->list, data, len, e);
}

// Joins the reply with the pods that use devices now.
static int join(struct pod_metadata *p, struct err *e)
{
	struct table next, *found = &p->call->found;
	qsort(found->list, found->n, sizeof *found->list, by_name);
	int rc = table_init(&next, p->table.n);
	for (size_t i = 0; rc == 0 && i < p->table.n; i++) {
		struct holder h = p->table.list[i];
		const struct holder *now = find(found, h.namespace_, h.pod);
		if (h.since <= p->asked) {
			h.is_known = now != NULL;
			h.known = now ? now->known : (struct pod_known){.uid = NULL};
		}
		rc = table_add(&next, &h);
	}
	if (rc < 0) {
		arena_done(&next.arena);
		return err_set(e, ERR_LIMIT, "the pods exceed the ceiling of %d bytes", TABLE_BYTES_MAX);
	}
	replace_table(p, &next);
	return 0;
}

// "HTTP status 403: pods is forbidden: ..", with the message of the API server's Status.
static void explain_status(int status, const char *body, size_t len, struct err *e)
{
	char message[MESSAGE_BYTES];
	const struct json_span whole = {.text = body, .len = len};
	bool ok = json_span_text(json_span_get(whole, "message"), message, sizeof message) > 0;
	err_set_code(e, err_kind_of_http_status(status), status, "HTTP status %d%s%s", status, ok ? ": " : "",
	             ok ? message : "");
}

static void on_done(void *arg, int status, const char *body, size_t len, const struct err *error);

static int send_to(struct pod_metadata *p, const char *url, struct err *e)
{
	char *token;
	struct call *c = p->call;
	http_call_free(c->http);
	watch_scan_done(&c->list.scan);
	metadata_list_init(&c->list, p->options.labels, on_pod, p);
	c->http = http_call_new(p->options.loop, url, p->ca_file, POD_METADATA_TIMEOUT_MS, on_done, p, e);
	if (!c->http || token_file_read(p->token_file, &token, e) < 0)
		return -1;
	http_call_stream(c->http, METADATA_LIST_ACCEPT, METADATA_LIST_BYTES_MAX, on_data);
	int rc = http_call_start(c->http, token, e);
	alloc_wipe(token);
	return rc;
}

static bool is_object_name(const char *s)
{
	size_t len = strlen(s);
	return len > 0 && len <= POD_NAME_BYTES_MAX && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

// Requests the next of the pods that use devices alone, by a list of one: the right to list suffices. Returns 1 when
// none is left.
static int send_single(struct pod_metadata *p, struct err *e)
{
	struct call *c = p->call;
	while (c->next < p->table.n) {
		char url[URL_BYTES];
		const struct holder *h = &p->table.list[c->next++];
		if (!is_object_name(h->namespace_) || !is_object_name(h->pod))
			continue;
		int n = snprintf(url, sizeof url,
		                 "%.*s/api/v1/namespaces/%s/pods?fieldSelector=metadata.name%%3D%s&resourceVersion=0",
		                 p->server_len, p->url, h->namespace_, h->pod);
		return n > 0 && (size_t)n < sizeof url ? send_to(p, url, e)
		                                       : err_set(e, ERR_LIMIT, "the URL is too long");
	}
	return 1;
}

// The pods that use no devices, with annotations of any size, must not cost the others their labels.
static void become_single(struct pod_metadata *p, const struct err *e)
{
	struct call *c = p->call;
	LOG(p->options.log, LOG_WARNING, "Pods of the node exceed a limit, requesting those on GPUs one by one",
	    LOG_S("url", p->url), LOG_S("err", e->msg));
	p->single_until_ms = clock_mono_ms(p->options.clock) + SINGLE_MS;
	c->is_single = true;
	c->found.n = 0;
}

static void on_done(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	struct pod_metadata *p = arg;
	struct call *c = p->call;
	struct err e = {.kind = ERR_NONE}, later;
	if (error)
		e = *error;
	else if (status != 200)
		explain_status(status, body, len, &e);
	else if (json_scan_finish(&c->list.scan.json, &e) == 0 && !c->is_single)
		join(p, &e);
	if (e.kind == ERR_LIMIT && !c->is_single)
		become_single(p, &e);
	if (c->is_single && (e.kind == ERR_NONE || e.kind == ERR_LIMIT)) {
		int rc = send_single(p, &later);
		if (rc == 0)
			return;
		if (rc < 0)
			e = later;
		else if (c->found.n > 0 || e.kind == ERR_NONE) {
			e.kind = ERR_NONE;
			join(p, &e);
		}
	}
	finish(p, e.kind == ERR_NONE ? NULL : &e);
}

static int send_request(struct pod_metadata *p, struct err *e)
{
	struct call *c = p->call = calloc(1, sizeof *c);
	if (!c)
		return err_no_memory(e);
	c->room = p->table.n;
	c->is_single = p->asked_ms < p->single_until_ms;
	if (table_init(&c->found, c->room) < 0)
		return err_no_memory(e);
	if (!c->is_single)
		return send_to(p, p->url, e);
	int rc = send_single(p, e);
	return rc <= 0 ? rc : err_set(e, ERR_INPUT, "no pod on a GPU has a valid name");
}

static bool is_due(const struct pod_metadata *p, int64_t now_ms)
{
	bool is_new = false;
	for (size_t i = 0; i < p->table.n; i++)
		is_new = is_new || p->table.list[i].since > p->asked;
	int64_t wait_ms = is_new ? p->options.min_ms : p->retry_ms ? p->retry_ms : POD_METADATA_REFRESH_MS;
	return p->table.n > 0 && (p->asked == 0 || now_ms - p->asked_ms >= wait_ms);
}

static void ask_if_due(struct pod_metadata *p)
{
	int64_t now_ms = clock_mono_ms(p->options.clock);
	struct err e;
	if (p->call || !is_due(p, now_ms))
		return;
	p->asked++;
	p->asked_ms = now_ms;
	if (send_request(p, &e) < 0)
		finish(p, &e);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	ask_if_due(arg);
}

void pod_metadata_take_map(struct pod_metadata *p, const struct pod_map *m)
{
	struct table next;
	struct pod_holder pod;
	int rc = table_init(&next, pod_map_entries(m));
	for (size_t at = 0; rc == 0 && pod_map_next(m, &at, &pod);) {
		const struct holder *old = find(&p->table, pod.namespace_, pod.pod);
		struct holder h = {
		        .namespace_ = pod.namespace_, .pod = pod.pod, .held = pod.held, .since = p->asked + 1};
		if (old && old->held == pod.held) {
			h.since = old->since;
			h.is_known = old->is_known;
			h.known = old->known;
		}
		rc = table_add(&next, &h);
	}
	if (rc < 0) { // better no metadata than that of another pod
		LOG(p->options.log, LOG_WARNING, "Pods on GPUs exceed the memory for their metadata",
		    LOG_I("bytesMax", TABLE_BYTES_MAX));
		next.n = 0;
	}
	replace_table(p, &next);
	ask_if_due(p);
}

static int init(struct pod_metadata *p, struct err *e)
{
	const struct pod_metadata_options *o = &p->options;
	if (!is_object_name(o->node))
		return err_set(e, ERR_INPUT, "\"%.100s\" is not a valid name of a node", o->node);
	int url = snprintf(p->url, sizeof p->url, "%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&resourceVersion=0",
	                   o->server, o->node);
	int token = snprintf(p->token_file, sizeof p->token_file, "%s/token", o->folder);
	int ca = snprintf(p->ca_file, sizeof p->ca_file, "%s/ca.crt", o->folder);
	if (url < 0 || (size_t)url >= sizeof p->url || token < 0 || (size_t)token >= sizeof p->token_file || ca < 0)
		return err_set(e, ERR_LIMIT,
		               "the address of the API server or the path of its credentials is too long");
	p->server_len = (int)strlen(o->server);
	return timer_start(&p->tick, TICK_MS) < 0 ? err_set(e, ERR_INTERNAL, "cannot create a timer") : 0;
}

struct pod_metadata *pod_metadata_new(const struct pod_metadata_options *options, struct err *e)
{
	struct pod_metadata *p = err_calloc(sizeof *p, e);
	if (!p)
		return NULL;
	p->options = *options;
	p->options.min_ms = options->min_ms ? options->min_ms : POD_METADATA_MIN_MS;
	p->reply_ms = -1;
	pthread_mutex_init(&p->lock, NULL);
	event_assign(&p->tick, options->loop, -1, EV_PERSIST, on_tick, p);
	if (init(p, e) < 0) {
		pod_metadata_free(p);
		return NULL;
	}
	return p;
}

void pod_metadata_free(struct pod_metadata *p)
{
	if (!p)
		return;
	end_call(p);
	event_del(&p->tick);
	arena_done(&p->table.arena);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

bool pod_metadata_is_busy(const struct pod_metadata *p)
{
	return p->call != NULL;
}

static bool is_stale(const struct pod_metadata *p, int64_t now_ms)
{
	return p->reply_ms >= 0 && now_ms - p->reply_ms > POD_METADATA_STALE_MS;
}

void pod_metadata_get_status(struct pod_metadata *p, struct pod_metadata_status *ret_status)
{
	int64_t now_ms = clock_mono_ms(p->options.clock);
	pthread_mutex_lock(&p->lock);
	*ret_status = p->status;
	ret_status->stale = p->table.n > 0 && is_stale(p, now_ms);
	ret_status->age_ms = p->table.n > 0 && p->reply_ms >= 0 ? now_ms - p->reply_ms : -1;
	pthread_mutex_unlock(&p->lock);
}

void pod_metadata_acquire(struct pod_metadata *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_usable = !is_stale(p, clock_mono_ms(p->options.clock));
}

const struct pod_known *pod_metadata_find(const struct pod_metadata *p, const char *namespace_, const char *pod)
{
	const struct holder *h = p->is_usable ? find(&p->table, namespace_, pod) : NULL;
	return h && h->is_known ? &h->known : NULL;
}

void pod_metadata_release(struct pod_metadata *p)
{
	pthread_mutex_unlock(&p->lock);
}
