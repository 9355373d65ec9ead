// SPDX-License-Identifier: Apache-2.0
#include "test/sim/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "test/sim/world.h"

#define ANSWER_BYTES_MAX (256 * 1024)

extern char **environ;

int filter_open(struct filter *f, const char *gpuscale, const char *policy, const char *signals, struct err *e)
{
	*f = (struct filter){.pid = -1, .signals = signals};
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0)
		return err_set(e, ERR_IO, "pipe: %s", strerror(errno));
	if (pipe2(out, O_CLOEXEC) < 0) {
		close(in[0]);
		close(in[1]);
		return err_set(e, ERR_IO, "pipe: %s", strerror(errno));
	}
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	char *argv[] = {(char[]){"gpuscale"}, (char[]){"step"}, (char[]){"-f"}, strdup(policy), NULL};
	int rc = posix_spawn(&f->pid, gpuscale, &actions, NULL, argv, environ);
	free(argv[3]);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	f->to = fdopen(in[1], "w");
	f->from = fdopen(out[0], "r");
	if (rc != 0 || !f->to || !f->from) {
		f->pid = rc != 0 ? -1 : f->pid;
		filter_close(f, NULL);
		return err_set(e, ERR_IO, "%s: %s", gpuscale, strerror(rc ? rc : errno));
	}
	return 0;
}

static void put_signal(struct filter *f, const char **before, const char *name, double value)
{
	if (!strstr(f->signals, name))
		return;
	fprintf(f->to, "%s\"%s\":%.9g", *before, name, value);
	*before = ",";
}

int filter_ask(struct filter *f, double time_s, int32_t replicas, int32_t ready, const struct world_view *view,
               int32_t *ret_replicas, struct err *e)
{
	static const char key[] = "\"desiredReplicas\":";
	fprintf(f->to, "{\"time\":%.3f,\"replicas\":%d,\"ready\":%d,\"pending\":0,\"signals\":{", time_s, replicas,
	        ready);
	const char *before = "";
	put_signal(f, &before, "demand", view->demand);
	put_signal(f, &before, "backlog", view->backlog);
	put_signal(f, &before, "utilization", view->utilization);
	fputs("}}\n", f->to);
	if (fflush(f->to) != 0)
		return err_set(e, ERR_IO, "gpuscale step takes no more lines");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len = getline(&line, &cap, f->from);
	const char *at = len > 0 && len < ANSWER_BYTES_MAX ? strstr(line, key) : NULL;
	int64_t n = -1;
	if (at) {
		at += sizeof key - 1;
		if (num_parse_i64(at, strspn(at, "0123456789"), 0, INT32_MAX, &n, NULL) < 0)
			n = -1;
	}
	int rc = 0;
	if (n < 0)
		rc = err_set(e, ERR_PROTOCOL, "gpuscale step answered %.200s", len > 0 ? line : "nothing");
	free(line);
	*ret_replicas = (int32_t)n;
	return rc;
}

int filter_close(struct filter *f, struct err *e)
{
	int status = 0;
	if (f->to)
		fclose(f->to);
	if (f->from)
		fclose(f->from);
	if (f->pid > 0 && waitpid(f->pid, &status, 0) < 0)
		status = -1;
	*f = (struct filter){.pid = -1};
	return status == 0 ? 0 : err_set(e, ERR_IO, "gpuscale step ended with status %d", status);
}
