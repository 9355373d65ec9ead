// SPDX-License-Identifier: Apache-2.0
#include "controller/source/file_source.h"

#include <event2/event.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/source/policy_store.h"
#include "policies/load/policy_ref.h"
#include "runtime/metrics/metrics.h"

void file_source_log(struct log *log, const char *message, const char *report)
{
	while (*report) {
		size_t n = strcspn(report, "\n");
		char line[1024];
		size_t cut = n < sizeof line ? n : sizeof line - 1;
		memcpy(line, report, cut);
		line[cut] = '\0';
		LOG(log, LOG_ERROR, message, LOG_S("err", line));
		report += n + (report[n] == '\n');
	}
}

static int compare(const struct policy *a, const struct policy *b)
{
	int c = strcmp(a->namespace_name, b->namespace_name);
	return c ? c : strcmp(a->name, b->name);
}

// Puts the changes from `before` to `after` into the store. Both are sorted by name, and an unchanged policy is the
// same pointer in both. Removes first, because a removed policy may free the target of a new one.
static void put_changes(struct file_source *f, const struct file_set *before, const struct file_set *after)
{
	struct policy_store *store = f->options.store;
	struct err e;
	for (size_t i = 0, k = 0; i < before->n_policies; i++) {
		const struct policy *p = before->policies[i];
		while (k < after->n_policies && compare(after->policies[k], p) < 0)
			k++;
		if (k == after->n_policies || compare(after->policies[k], p) != 0)
			policy_store_remove(store, POLICY_FROM_FILE, p->namespace_name, p->name);
	}
	for (size_t i = 0, k = 0; k < after->n_policies; k++) {
		const struct policy *p = after->policies[k];
		while (i < before->n_policies && compare(before->policies[i], p) < 0)
			i++;
		if (i < before->n_policies && before->policies[i] == p)
			continue;
		struct policy_ref *body = policy_ref_acquire(policy_ref_of(p));
		if (policy_store_put(store, POLICY_FROM_FILE, body, NULL, &e) < 0)
			LOG(f->options.log, LOG_ERROR, "Cannot activate policy", LOG_S("namespace", p->namespace_name),
			    LOG_S("policy", p->name), LOG_S("err", e.msg));
	}
}

static int read_all(struct file_source *f, struct err *e)
{
	struct file_set set;
	int64_t now_ms = clock_wall_ms(f->options.clock);
	buf_reset(&f->report);
	bool is_before_bad = f->options.before && f->options.before(f->options.arg, e) < 0;
	if ((is_before_bad && !f->is_started) ||
	    file_set_load(&set, f->options.paths, f->options.n_paths, &f->set, &f->report, e) < 0) {
		buf_printf(&f->report, "%s\n", e->msg);
		f->failed = true;
		metrics_reloaded(f->options.metrics, now_ms, 0);
		return -1;
	}
	f->seen_fingerprint = set.fingerprint;
	f->failed = is_before_bad || set.n_errors > 0;
	metrics_reloaded(f->options.metrics, now_ms, !f->failed);
	put_changes(f, &f->set, &set);
	file_set_done(&f->set);
	f->set = set;
	return 0;
}

static void read_again(struct file_source *f, const char *why)
{
	struct err e;
	if (read_all(f, &e) < 0) {
		LOG(f->options.log, LOG_ERROR, "Cannot read policies; keeping the last valid versions",
		    LOG_S("err", e.msg));
		return;
	}
	LOG(f->options.log, f->failed ? LOG_WARNING : LOG_INFO, "Read policies", LOG_S("why", why),
	    LOG_I("policies", (int64_t)f->set.n_policies), LOG_I("errors", (int64_t)f->set.n_errors));
	file_source_log(f->options.log, "Invalid policy", buf_str(&f->report));
}

void file_source_reload(struct file_source *f, const char *why)
{
	f->set.is_stale = true;
	read_again(f, why);
}

// A file that is being written can be valid although it is incomplete: cut between two policies, or still empty.
// Reading it would remove policies, and with them their state (cooldowns, windows).
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct file_source *f = arg;
	uint64_t now = file_set_fingerprint(f->options.paths, f->options.n_paths);
	bool is_lost = now == 0, is_at_rest = now == f->new_fingerprint;
	bool has_changed = is_lost ? !f->is_lost : f->is_lost || now != f->seen_fingerprint;
	if (has_changed && is_at_rest) {
		f->is_lost = is_lost;
		read_again(f, is_lost ? "files cannot be read" : "files changed");
	}
	f->new_fingerprint = now;
	if (timer_start(&f->timer, has_changed && !is_at_rest ? FILE_SOURCE_REST_MS : FILE_SOURCE_WATCH_MS) < 0)
		LOG(f->options.log, LOG_ERROR, "Cannot watch policy files; SIGHUP still reloads them",
		    LOG_S("err", "out of memory"));
}

struct file_source *file_source_new(const struct file_source_options *options, struct err *e)
{
	struct file_source *f = must_alloc(calloc(1, sizeof *f));
	f->options = *options;
	buf_init(&f->report, FILE_SOURCE_REPORT_MAX);
	evtimer_assign(&f->timer, options->loop, on_watch, f);
	if (read_all(f, e) < 0) {
		file_source_free(f);
		return NULL;
	}
	f->is_started = true;
	file_source_log(f->options.log, "Invalid policy", buf_str(&f->report));
	if (timer_start(&f->timer, FILE_SOURCE_WATCH_MS) < 0)
		abort(); // base/alloc.h
	return f;
}

void file_source_free(struct file_source *f)
{
	if (!f)
		return;
	event_del(&f->timer);
	file_set_done(&f->set);
	buf_done(&f->report);
	free(f);
}
