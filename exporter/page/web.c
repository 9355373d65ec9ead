// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/web.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "base/process/log.h"
#include "exporter/page/peer_rate.h"
#include "exporter/page/web_auth.h"
#include "exporter/page/web_config.h"

#define FILES      4 // configuration, certificate, key, client CA
#define ERRORS_MAX (64 * 1024)

// Identifies a version of a file.
struct stamp {
	int64_t mtime_s, mtime_ns, size;
	uint64_t inode;
};

struct web {
	const char *path;
	const struct clock *clock;
	struct log *log;
	struct web_config config;
	struct web_auth *auth; // NULL: no basic auth
	struct http_server *server;
	struct event *tick;
	struct stamp stamps[FILES]; // stamps of the files, taken just before they were read
	struct stamp seen[FILES];   // stamps of the files at the last check
	bool failing;               // the last change had errors: retry, because a missing file may appear
	char last_error[ERR_MSG_BYTES];
	struct peer_rate rates; // request rates
	struct web_stats stats;
};

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	if (!path || stat(path, &st) < 0)
		return (struct stamp){0};
	return (struct stamp){
	        .mtime_s = st.st_mtim.tv_sec, .mtime_ns = st.st_mtim.tv_nsec, .size = st.st_size, .inode = st.st_ino};
}

static void take_stamps(const struct web *w, const struct web_config *c, struct stamp out[FILES])
{
	const char *const paths[FILES] = {w->path, c->cert_file, c->key_file, c->client_ca_file};
	for (int i = 0; i < FILES; i++)
		out[i] = stamp_of(paths[i]);
}

static bool same_stamps(const struct stamp *a, const struct stamp *b)
{
	for (int i = 0; i < FILES; i++)
		if (a[i].mtime_s != b[i].mtime_s || a[i].mtime_ns != b[i].mtime_ns || a[i].size != b[i].size ||
		    a[i].inode != b[i].inode)
			return false;
	return true;
}

// Reads the file into `c` and its users into `auth`.
static int load(const struct web *w, struct web_config *c, struct web_auth **auth, struct buf *ret_errors,
                struct err *e)
{
	*auth = NULL;
	if (web_config_read(c, w->path, ret_errors, e) < 0)
		return -1;
	if (c->n_users == 0)
		return 0;
	*auth = web_auth_new(c->users, c->n_users, e);
	if (*auth)
		return 0;
	web_config_done(c);
	return err_wrap(e, "%s", w->path);
}

struct web *web_new(const char *path, const struct clock *clock, struct log *log, struct buf *ret_errors, struct err *e)
{
	struct web *w = alloc_zeroed(sizeof *w, e);
	if (!w)
		return NULL;
	w->path = path;
	w->clock = clock;
	w->log = log;
	struct stamp file = stamp_of(path);
	if (path && load(w, &w->config, &w->auth, ret_errors, e) < 0) {
		free(w);
		return NULL;
	}
	take_stamps(w, &w->config, w->stamps);
	w->stamps[0] = file;
	return w;
}

void web_free(struct web *w)
{
	if (!w)
		return;
	if (w->tick)
		event_free(w->tick);
	web_auth_free(w->auth);
	web_config_done(&w->config);
	free(w);
}

static void fill_tls(const struct web_config *c, struct http_server_options *o)
{
	o->tls_cert_file = c->cert_file;
	o->tls_key_file = c->key_file;
	o->tls_client_ca_file = c->client_ca_file;
	o->tls_client_auth = c->client_auth;
	o->tls_min_minor = c->tls_min_minor;
	o->tls_max_minor = c->tls_max_minor;
}

void web_fill_tls(const struct web *w, struct http_server_options *options)
{
	fill_tls(&w->config, options);
}

// Stamps are taken before reading: a change in between causes another read and is never missed.
static int reload(struct web *w, struct buf *ret_errors, struct err *e)
{
	struct stamp stamps[FILES], file = stamp_of(w->path);
	struct web_config *c = malloc(sizeof *c);
	struct web_auth *auth;
	struct http_server_options o = {0};
	if (!c)
		return err_no_memory(e);
	if (load(w, c, &auth, ret_errors, e) < 0) {
		free(c);
		return -1;
	}
	// An empty file may be half written, or the disk is full: neither may open the pages.
	if (c->no_document && (w->auth || w->config.cert_file)) {
		web_config_done(c);
		free(c);
		return err_set(e, ERR_INPUT, "%s: the file is empty: write {} into it to disable TLS and basic auth",
		               w->path);
	}
	fill_tls(c, &o);
	take_stamps(w, c, stamps);
	stamps[0] = file;
	if (http_server_set_tls(w->server, &o, e) < 0) {
		web_auth_free(auth);
		web_config_done(c);
		free(c);
		return -1;
	}
	if (auth && w->auth)
		web_auth_inherit(auth, w->auth);
	web_config_done(&w->config);
	web_auth_free(w->auth);
	w->config = *c; // the arena moves with it
	w->auth = auth;
	memcpy(w->stamps, stamps, sizeof stamps);
	free(c);
	return 0;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct web *w = arg;
	struct stamp now[FILES];
	struct buf errors;
	struct err e;
	take_stamps(w, &w->config, now);
	bool rests = same_stamps(now, w->seen);
	memcpy(w->seen, now, sizeof now);
	// A file that changed since the last check may be half written, and its users may be missing.
	if (!rests || (!w->failing && same_stamps(now, w->stamps)))
		return;
	buf_init(&errors, ERRORS_MAX);
	if (reload(w, &errors, &e) < 0) {
		bool news = !w->failing || strcmp(w->last_error, e.msg) != 0;
		w->failing = true;
		w->stats.reload_errors += news;
		memcpy(w->last_error, e.msg, sizeof e.msg);
		if (news)
			LOG(w->log, LOG_ERROR, "Web configuration reload failed, keeping the previous one",
			    LOG_S("file", w->path), LOG_S("err", e.msg), LOG_S("faults", buf_str(&errors)));
	} else {
		w->failing = false;
		w->stats.reloads++;
		LOG(w->log, LOG_INFO, "Web configuration reloaded", LOG_S("file", w->path),
		    LOG_B("tls", w->config.cert_file != NULL), LOG_I("users", (int64_t)w->config.n_users));
	}
	buf_done(&errors);
}

int web_watch(struct web *w, struct event_base *loop, struct http_server *server, struct err *e)
{
	static const struct timeval every = {.tv_sec = WEB_WATCH_MS / 1000, .tv_usec = WEB_WATCH_MS % 1000 * 1000};
	w->server = server;
	if (!w->path)
		return 0;
	w->tick = event_new(loop, -1, EV_PERSIST, on_tick, w);
	if (!w->tick || event_add(w->tick, &every) < 0)
		return err_set(e, ERR_INTERNAL, "cannot create a timer");
	return 0;
}

// Each address has its own bucket, so that no address uses up the requests of another.
static bool within_rate(struct web *w, const char *peer, int64_t now_ms)
{
	int64_t interval_ms = w->config.rate_interval_ms;
	return interval_ms == 0 || peer_rate_take(&peer_rate_add(&w->rates, peer, false, now_ms)->full_ms, interval_ms,
	                                          w->config.rate_burst, now_ms);
}

static bool refuse_later(struct web *w, struct http_exchange *x)
{
	w->stats.limited++;
	http_exchange_set_header(x, "Retry-After", "1");
	http_exchange_reply_text(x, 429, "too many requests");
	return false;
}

bool web_admit(struct web *w, struct http_exchange *x)
{
	int64_t now_ms = clock_mono_ms(w->clock);
	const char *peer = http_exchange_peer(x);
	if (!within_rate(w, peer, now_ms))
		return refuse_later(w, x);
	if (!w->auth)
		return true;
	switch (web_auth_check(w->auth, http_exchange_header(x, "Authorization"), peer, now_ms)) {
	case WEB_AUTH_GOOD:
		return true;
	case WEB_AUTH_LATER:
		return refuse_later(w, x);
	default:
		w->stats.unauthorized++;
		http_exchange_set_header(x, "WWW-Authenticate", "Basic");
		http_exchange_reply_text(x, 401, "Unauthorized");
		return false;
	}
}

void web_get_stats(const struct web *w, struct web_stats *ret_stats)
{
	*ret_stats = w->stats;
}
