// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_folder.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "controller/metrics.h"
#include "controller/policy_body.h"
#include "controller/policy_set.h"
#include "controller/policy_store.h"

struct policy_folder {
	struct policy_folder_options options;
	struct event *timer;
	struct policy_set set;
	struct buf report; // errors of the last reading
	bool failed;
	uint64_t seen_fingerprint; // of the last reading, good or bad: a bad file is not read again until it changes
	uint64_t new_fingerprint;  // of the last look, when that was another one
	bool is_lost;              // a path could not be looked at, and that was said
};

static void log_report(const struct policy_folder *f)
{
	const char *report = buf_str(&f->report);
	while (*report) { // a line per error
		size_t n = strcspn(report, "\n");
		char line[1024];
		size_t cut = n < sizeof line ? n : sizeof line - 1;
		memcpy(line, report, cut);
		line[cut] = '\0';
		LOG(f->options.log, LOG_ERROR, "Invalid policy", LOG_S("err", line));
		report += n + (report[n] == '\n');
	}
}

static int compare(const struct policy *a, const struct policy *b)
{
	int c = strcmp(a->namespace_name, b->namespace_name);
	return c ? c : strcmp(a->name, b->name);
}

// Tells the store what is in `after` and was not in `before`, and the other way round. Both are sorted by name, and a
// policy that did not change is the same pointer in both. What goes is told first: it may free a target for what comes.
static void put_changes(struct policy_folder *f, const struct policy_set *before, const struct policy_set *after)
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
		struct policy_body *body = policy_body_ref(policy_body_of(p));
		if (policy_store_put(store, POLICY_FROM_FILE, body, NULL, &e) < 0)
			LOG(f->options.log, LOG_ERROR, "Cannot put policy in force",
			    LOG_S("namespace", p->namespace_name), LOG_S("policy", p->name), LOG_S("err", e.msg));
	}
}

static int read_all(struct policy_folder *f, struct err *e)
{
	struct policy_set set;
	int64_t now_ms = clock_wall_ms(f->options.clock);
	buf_reset(&f->report);
	if (policy_set_load(&set, f->options.paths, f->options.n_paths, &f->set, &f->report, e) < 0) {
		buf_printf(&f->report, "%s\n", e->msg);
		f->failed = true;
		metrics_reloaded(f->options.metrics, now_ms, 0);
		return -1;
	}
	f->seen_fingerprint = set.fingerprint;
	f->failed = set.n_errors > 0;
	metrics_reloaded(f->options.metrics, now_ms, !f->failed);
	put_changes(f, &f->set, &set);
	policy_set_done(&f->set);
	f->set = set;
	return 0;
}

static void read_again(struct policy_folder *f, const char *why)
{
	struct err e;
	if (read_all(f, &e) < 0) {
		LOG(f->options.log, LOG_ERROR, "Cannot read policies; the last good ones stay in force",
		    LOG_S("err", e.msg));
		return;
	}
	LOG(f->options.log, f->failed ? LOG_WARNING : LOG_INFO, "Read policies", LOG_S("why", why),
	    LOG_I("policies", (int64_t)f->set.n_policies), LOG_I("errors", (int64_t)f->set.n_errors));
	log_report(f);
}

void policy_folder_reload(struct policy_folder *f, const char *why)
{
	f->set.is_stale = true;
	read_again(f, why);
}

static int look_again(struct policy_folder *f, int64_t after_ms)
{
	struct timeval after = {after_ms / 1000, after_ms % 1000 * 1000};
	return event_add(f->timer, &after);
}

// A file that is being written is a valid one, too, when it is cut between two policies or still empty: taken at its
// word it would end policies, and with them what they remember (cooldowns, windows).
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct policy_folder *f = arg;
	uint64_t now = policy_set_fingerprint(f->options.paths, f->options.n_paths);
	bool is_lost = now == 0, is_at_rest = now == f->new_fingerprint;
	bool has_changed = is_lost ? !f->is_lost : f->is_lost || now != f->seen_fingerprint;
	if (has_changed && is_at_rest) {
		f->is_lost = is_lost;
		read_again(f, is_lost ? "files cannot be looked at" : "files changed");
	}
	f->new_fingerprint = now;
	if (look_again(f, has_changed && !is_at_rest ? POLICY_FOLDER_REST_MS : POLICY_FOLDER_WATCH_MS) < 0)
		LOG(f->options.log, LOG_ERROR, "Cannot look at the policy files any more; SIGHUP still reads them",
		    LOG_S("err", "out of memory"));
}

struct policy_folder *policy_folder_new(const struct policy_folder_options *options, struct err *e)
{
	struct policy_folder *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->options = *options;
	buf_init(&f->report, POLICY_FOLDER_REPORT_MAX);
	if (read_all(f, e) < 0)
		goto fail;
	log_report(f);
	f->timer = evtimer_new(options->loop, on_watch, f);
	if (f->timer && look_again(f, POLICY_FOLDER_WATCH_MS) == 0)
		return f;
	err_set(e, ERR_INTERNAL, "cannot watch the policy files");
fail:
	policy_folder_free(f);
	return NULL;
}

void policy_folder_free(struct policy_folder *f)
{
	if (!f)
		return;
	if (f->timer)
		event_free(f->timer);
	policy_set_done(&f->set);
	buf_done(&f->report);
	free(f);
}

void policy_folder_get_state(const struct policy_folder *f, struct policy_folder_state *ret_state)
{
	*ret_state = (struct policy_folder_state){
	        .n_policies = f->set.n_policies,
	        .n_bad_files = f->set.n_bad_files,
	        .n_errors = f->set.n_errors,
	        .failed = f->failed,
	        .report = buf_str(&f->report),
	};
}
