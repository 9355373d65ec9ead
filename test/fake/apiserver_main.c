// SPDX-License-Identifier: Apache-2.0
// The fake API server as a program. Prints "listening on URL" once it is ready, ends on SIGTERM or SIGINT.
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "test/fake/apiserver.h"

#define OBJECTS_MAX 20000

static const char usage[] =
        "usage: fake-apiserver [OPTION]..\n"
        "  --listen ADDR               default 127.0.0.1:0, any free port\n"
        "  --object NS/KIND/NAME=N     a workload with N replicas; repeatable\n"
        "  --gpus N                    only N pods can be scheduled at once; the rest stays Pending\n"
        "  --ready-after SECONDS       from scheduled to ready (default 0)\n"
        "  --token T | --token-file F  its sender is admin; without either every client is\n"
        "  --viewer-token T            its sender may only GET scales of Deployments\n"
        "  --no-pods                   workloads have no pods, and are ready at once\n"
        "  --keda                      serve ScaledObjects\n"
        "  --tls-cert F --tls-key F    serve HTTPS\n"
        "  --write-kubeconfig F        a kubeconfig for this server\n"
        "SIGHUP: reads certificate and key again, and cuts streams and idle connections, like a restart. Tests steer "
        "it with GET\n"
        "  /_fake/fail?next=N[&skip=N][&status=S[&retryAfter=SECONDS][&inStream=1]][&delayMs=MS][&hang=1][&cut=1]\n"
        "             [&lose=1][&match=TEXT][&verb=VERB][&resource=RESOURCE][&also=1]\n"
        "  /_fake/drop?orderly=0|1   ends all streams       /_fake/compact   old resourceVersions get 410\n"
        "  /_fake/bookmarks?everyMs=MS; 0: none             /_fake/mute?on=0|1   streams say nothing\n"
        "  /_fake/serve?group=G&on=0|1                      /_fake/put   an object as the body, as it is\n"
        "and ask it by /_fake/requests and /_fake/objects.\n";

struct arguments {
	struct fake_apiserver_options server;
	const char *kubeconfig, *objects[OBJECTS_MAX];
	size_t n_objects;
};

static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"object", required_argument, NULL, 'o'},
        {"gpus", required_argument, NULL, 'g'},
        {"ready-after", required_argument, NULL, 'r'},
        {"token", required_argument, NULL, 't'},
        {"token-file", required_argument, NULL, 'f'},
        {"viewer-token", required_argument, NULL, 'v'},
        {"tls-cert", required_argument, NULL, 'c'},
        {"tls-key", required_argument, NULL, 'k'},
        {"write-kubeconfig", required_argument, NULL, 'w'},
        {"no-pods", no_argument, NULL, 'n'},
        {"keda", no_argument, NULL, 'K'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
};

// 0 to go on, 1 for --help, -1 with *e.
static int parse(int argc, char **argv, struct arguments *a, struct err *e)
{
	struct fake_apiserver_options *s = &a->server;
	*s = (struct fake_apiserver_options){.listen = "127.0.0.1:0", .gpus = -1};
	int64_t number;
	double seconds;
	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (c) {
		case 'l':
			s->listen = optarg;
			break;
		case 'o':
			if (a->n_objects == OBJECTS_MAX)
				return err_set(e, ERR_USAGE, "more than %d --object", OBJECTS_MAX);
			a->objects[a->n_objects++] = optarg;
			break;
		case 'g':
			if (num_parse_i64(optarg, strlen(optarg), 0, 1000000, &number, e) < 0)
				return err_wrap(e, "--gpus");
			s->gpus = (int)number;
			break;
		case 'r':
			if (num_parse_f64(optarg, strlen(optarg), &seconds, e) < 0)
				return err_wrap(e, "--ready-after");
			if (seconds < 0 || seconds > 86400)
				return err_set(e, ERR_USAGE, "--ready-after: between 0 and 86400 seconds");
			s->ready_after_ms = (int64_t)(seconds * 1000);
			break;
		case 't':
			s->token = optarg;
			break;
		case 'f':
			s->token_file = optarg;
			break;
		case 'v':
			s->viewer_token = optarg;
			break;
		case 'c':
			s->tls_cert_file = optarg;
			break;
		case 'k':
			s->tls_key_file = optarg;
			break;
		case 'n':
			s->no_pods = true;
			break;
		case 'K':
			s->keda = true;
			break;
		case 'w':
			a->kubeconfig = optarg;
			break;
		case 'h':
			return 1;
		default:
			return err_set(e, ERR_USAGE, "see --help");
		}
	}
	return optind == argc ? 0 : err_set(e, ERR_USAGE, "unexpected argument \"%s\"", argv[optind]);
}

static int write_kubeconfig(const struct arguments *a, const char *url, struct err *e)
{
	const struct fake_apiserver_options *s = &a->server;
	FILE *out = fopen(a->kubeconfig, "we");
	if (!out)
		return err_set(e, ERR_IO, "cannot write %s: %s", a->kubeconfig, strerror(errno));
	char *cert = s->tls_cert_file ? realpath(s->tls_cert_file, NULL) : NULL;
	char *token = s->token_file ? realpath(s->token_file, NULL) : NULL;
	fprintf(out,
	        "apiVersion: v1\nkind: Config\ncurrent-context: fake\nclusters:\n- name: fake\n  cluster:\n    server: "
	        "%s\n",
	        url);
	if (cert)
		fprintf(out, "    certificate-authority: \"%s\"\n", cert);
	fprintf(out, "contexts:\n- {name: fake, context: {cluster: fake, user: fake, namespace: default}}\nusers:\n"
	             "- name: fake\n  user: {");
	if (token)
		fprintf(out, "tokenFile: \"%s\"", token);
	else if (s->token)
		fprintf(out, "token: \"%s\"", s->token);
	fputs("}\n", out);
	free(cert);
	free(token);
	bool failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed)
		return err_set(e, ERR_IO, "cannot write %s", a->kubeconfig);
	return 0;
}

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
	event_base_loopbreak(arg);
}

static void on_hangup(evutil_socket_t fd, short events, void *arg)
{
	struct err e = {0};
	if (fake_apiserver_reload_tls(arg, &e) < 0)
		fprintf(stderr, "fake-apiserver: %s\n", e.msg);
}

static int run(const struct arguments *a, struct event_base *loop, struct err *e)
{
	char url[64];
	struct fake_apiserver *f = fake_apiserver_new(&a->server, e);
	int rc = f ? 0 : -1;
	for (size_t i = 0; rc == 0 && i < a->n_objects; i++)
		rc = fake_apiserver_add(f, a->objects[i], e);
	if (rc == 0)
		snprintf(url, sizeof url, "%s://127.0.0.1:%u", a->server.tls_cert_file ? "https" : "http",
		         (unsigned)fake_apiserver_port(f));
	if (rc == 0 && a->kubeconfig)
		rc = write_kubeconfig(a, url, e);
	if (rc == 0) {
		struct event *term = evsignal_new(loop, SIGTERM, on_signal, loop);
		struct event *intr = evsignal_new(loop, SIGINT, on_signal, loop);
		struct event *hup = evsignal_new(loop, SIGHUP, on_hangup, f);
		if (!term || !intr || !hup || event_add(term, NULL) < 0 || event_add(intr, NULL) < 0 ||
		    event_add(hup, NULL) < 0) {
			rc = err_set(e, ERR_INTERNAL, "cannot watch for signals");
		} else {
			printf("listening on %s\n", url);
			fflush(stdout);
			event_base_dispatch(loop);
		}
		if (term)
			event_free(term);
		if (intr)
			event_free(intr);
		if (hup)
			event_free(hup);
	}
	fake_apiserver_free(f);
	return rc;
}

int main(int argc, char **argv)
{
	static struct arguments arguments;
	struct err e = {0};
	int rc = parse(argc, argv, &arguments, &e);
	if (rc == 1) {
		fputs(usage, stdout);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	struct event_base *loop = rc == 0 ? event_base_new() : NULL;
	arguments.server.loop = loop;
	if (loop)
		rc = run(&arguments, loop, &e);
	else if (rc == 0)
		rc = err_set(&e, ERR_INTERNAL, "cannot make an event loop");
	if (loop)
		event_base_free(loop);
	libevent_global_shutdown();
	if (rc == 0)
		return 0;
	fprintf(stderr, "fake-apiserver: %s\n", e.msg);
	return err_kind_info(e.kind)->exit_code;
}
