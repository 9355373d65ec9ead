// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/tls_follower.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file_open.h"
#include "base/http/http_server.h"
#include "base/process/log.h"

#define FILES 3

struct tls_follower {
	struct http_server *server;
	struct http_server_options tls;
	const char *name;
	struct log *log;
	struct event *tick;
	struct file_stamp stamps[FILES]; // of the files just before they were read
	bool known;                      // the stamps are those of the last attempt
	bool failing;                    // the last attempt failed; retry, because the other file may change later
	char last_error[ERR_MSG_BYTES];
};

static void take_stamps(const struct tls_follower *f, struct file_stamp out[FILES])
{
	const char *const paths[FILES] = {f->tls.tls_cert_file, f->tls.tls_key_file, f->tls.tls_client_ca_file};
	for (int i = 0; i < FILES; i++)
		out[i] = file_stamp_of(paths[i]);
}

static bool same(const struct file_stamp *a, const struct file_stamp *b)
{
	for (int i = 0; i < FILES; i++)
		if (!file_stamp_is_same(&a[i], &b[i]))
			return false;
	return true;
}

static void failed(struct tls_follower *f, const struct err *e)
{
	bool news = !f->failing || strcmp(f->last_error, e->msg) != 0;
	f->failing = true;
	memcpy(f->last_error, e->msg, sizeof e->msg);
	if (!news)
		return;
	LOG(f->log, LOG_ERROR, "Cannot use changed certificate; keeping the previous one", LOG_S("server", f->name),
	    LOG_S("err", e->msg));
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct tls_follower *f = arg;
	struct file_stamp now[FILES];
	struct err e;
	take_stamps(f, now);
	if (f->known && !f->failing && same(now, f->stamps))
		return;
	memcpy(f->stamps, now, sizeof now);
	if (http_server_set_tls(f->server, &f->tls, &e) < 0) {
		failed(f, &e);
	} else {
		if (f->known)
			LOG(f->log, LOG_INFO, "Reloaded certificate", LOG_S("server", f->name),
			    LOG_S("file", f->tls.tls_cert_file));
		f->failing = false;
	}
	f->known = true;
}

struct tls_follower *tls_follower_new(struct event_base *loop, struct http_server *server,
                                      const struct http_server_options *tls, const char *name, struct log *log,
                                      struct err *e)
{
	static const struct timeval every = {.tv_sec = TLS_FOLLOWER_MS / 1000,
	                                     .tv_usec = TLS_FOLLOWER_MS % 1000 * 1000};
	struct tls_follower *f = calloc(1, sizeof *f);
	if (f) {
		f->server = server;
		f->tls = *tls;
		f->name = name;
		f->log = log;
		f->tick = event_new(loop, -1, EV_PERSIST, on_tick, f);
	}
	// The first check reloads the files, because they may have changed since the server read them.
	if (!f || !f->tick || event_add(f->tick, &every) < 0) {
		tls_follower_free(f);
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	return f;
}

void tls_follower_free(struct tls_follower *f)
{
	if (!f)
		return;
	if (f->tick)
		event_free(f->tick);
	free(f);
}
