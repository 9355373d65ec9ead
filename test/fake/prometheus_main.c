// SPDX-License-Identifier: Apache-2.0
// A Prometheus that answers as a file defines: the same numbers and ages at every run, and faults that no real one
// has. Prints "listening on URL" once it is ready, reads the file again on SIGHUP, ends on SIGTERM or SIGINT.
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "base/http/http_text.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "promql/freshness.h"
#include "promql/similar.h"
#include "test/support/http_request.h"

#define RULES_MAX      200
#define FILE_BYTES_MAX (1024 * 1024)
#define BODY_BYTES_MAX (64 * 1024 * 1024)
#define STEPS_MAX      11000
#define QUERY_MAX      (64 * 1024)
#define HELD_MAX       1000

static const char usage[] = "usage: fake-prometheus --answers FILE [--listen ADDR]\n"
                            "Each line of FILE is `[range ][tenant T ][with A=B ]QUERY => ANSWER`; the first whose "
                            "QUERY the query asked begins\n"
                            "with counts, none means no series. A `range` line is for range queries only, a `tenant` "
                            "line for requests with\n"
                            "that X-Scope-OrgID, a `with` line for those whose form says so. QUERY `buildinfo` is "
                            "/api/v1/status/buildinfo.\n"
                            "ANSWER is one of\n"
                            "  = V.. [@AGE]     one series per value, the data behind them AGE seconds old; a range is "
                            "that value all along\n"
                            "  each V           the same as `= V`, but one series for each of A|B when the query has a "
                            "matcher L=~\"A|B\"\n"
                            "  status CODE BODY this body\n"
                            "  bytes N          200 with N bytes that begin as JSON and never end it\n"
                            "  hang             no answer\n";

enum answer { ANSWER_VALUES, ANSWER_EACH, ANSWER_BODY, ANSWER_BYTES, ANSWER_HANG };

struct rule {
	bool range_only;
	enum answer answer;
	const char *tenant, *with; // NULL: any
	const char *query, *rest;  // in the file's text
	int64_t number;            // status or bytes
};

struct fake {
	struct http_server *server;
	const char *path; // of the file
	struct buf text;
	struct rule rules[RULES_MAX];
	size_t n_rules;
	struct http_exchange *held[HELD_MAX]; // that get no answer; they end with the program
	size_t n_held;
};

// ---- the file ----

static bool take_word(const char **at, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(*at, word, n) != 0 || ((*at)[n] != ' ' && (*at)[n] != '\0'))
		return false;
	*at += n + ((*at)[n] == ' ');
	return true;
}

// "word VALUE rest": the value, cut off, when the line begins with the word.
static const char *take_value(char **at, const char *word)
{
	const char *p = *at;
	if (!take_word(&p, word))
		return NULL;
	char *value = *at + (p - *at);
	*at = value + strcspn(value, " ");
	if (**at)
		*(*at)++ = '\0';
	return value;
}

static int read_rule(struct fake *f, char *line, struct err *e)
{
	struct rule *r = &f->rules[f->n_rules];
	char *arrow = strstr(line, " => ");
	if (f->n_rules == RULES_MAX || !arrow)
		return err_set(e, ERR_INPUT, "\"%.60s\": %s", line, arrow ? "one rule too many" : "no \" => \"");
	*arrow = '\0';
	const char *from = line, *answer = arrow + 4;
	*r = (struct rule){.range_only = take_word(&from, "range")};
	char *query = line + (from - line);
	r->tenant = take_value(&query, "tenant");
	r->with = take_value(&query, "with");
	r->query = query;
	if (take_word(&answer, "=")) {
		r->answer = ANSWER_VALUES;
	} else if (take_word(&answer, "each")) {
		r->answer = ANSWER_EACH;
	} else if (take_word(&answer, "hang")) {
		r->answer = ANSWER_HANG;
	} else {
		r->answer = take_word(&answer, "bytes") ? ANSWER_BYTES : ANSWER_BODY;
		if (r->answer == ANSWER_BODY && !take_word(&answer, "status"))
			return err_set(e, ERR_INPUT, "\"%.60s\": unknown answer", answer);
		size_t n = strcspn(answer, " ");
		if (num_parse_i64(answer, n, 0, BODY_BYTES_MAX / 2, &r->number, e) < 0)
			return err_wrap(e, "\"%.60s\"", answer);
		answer += n + (answer[n] == ' ');
	}
	r->rest = answer;
	f->n_rules++;
	return 0;
}

static int read_rules(struct fake *f, struct err *e)
{
	buf_done(&f->text);
	buf_init(&f->text, FILE_BYTES_MAX);
	f->n_rules = 0;
	if (buf_read_file(&f->text, f->path, e) < 0)
		return -1;
	for (char *line = f->text.data, *next; line && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (line[0] && line[0] != '#' && read_rule(f, line, e) < 0)
			return err_wrap(e, "%s", f->path);
	}
	return 0;
}

// ---- answers ----

// A field of the form in the body, decoded; "" when it is not there.
static void form_field(const char *body, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);
	out[0] = '\0';
	for (const char *p = body; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL) {
		if (strncmp(p, name, n) != 0 || p[n] != '=')
			continue;
		size_t len = strcspn(p + n + 1, "&");
		if (len >= size)
			return;
		memcpy(out, p + n + 1, len);
		out[len] = '\0';
		if (http_percent_decode(out, len, true) < 0)
			out[0] = '\0';
		return;
	}
}

static double form_number(const char *body, const char *name)
{
	char text[64];
	double value = 0;
	form_field(body, name, text, sizeof text);
	return num_parse_f64(text, strlen(text), &value, NULL) < 0 ? 0 : value;
}

static void write_sample(struct json_writer *w, double time, const char *value)
{
	json_write_array_begin(w);
	json_write_f64(w, time);
	json_write_str(w, value);
	json_write_array_end(w);
}

static void write_series(struct json_writer *w, const char *label, const char *label_value, const char *value,
                         bool is_range, const double *times, const char *mark)
{
	json_write_object_begin(w);
	json_write_key(w, "metric");
	json_write_object_begin(w);
	if (label) {
		json_write_key(w, label);
		json_write_str(w, label_value);
	}
	if (mark) {
		json_write_key(w, FUSE_LABEL);
		json_write_str(w, mark);
	}
	json_write_object_end(w);
	json_write_key(w, is_range ? "values" : "value");
	if (is_range) {
		json_write_array_begin(w);
		for (int i = 0; i <= STEPS_MAX && times[2] > 0 && times[0] + i * times[2] <= times[1] + 1e-6; i++)
			write_sample(w, times[0] + i * times[2], value);
		json_write_array_end(w);
	} else {
		write_sample(w, times[0], value);
	}
	json_write_object_end(w);
}

// Series per value of the rule, and the one that carries their age, when the query asks for it. times: that of an
// instant query, or start, end and step of a range. mark: the number of the query when several are asked at once, or
// NULL.
static void write_values(struct json_writer *w, const char *values, const char *query, bool is_range,
                         const double *times, const char *mark)
{
	double age = 0;
	int pod = 0;
	for (const char *p = values; *p;) {
		size_t n = strcspn(p, " ");
		char word[64], name[32];
		snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : 0), p);
		p += n + strspn(p + n, " ");
		if (word[0] == '@') {
			num_parse_f64(word + 1, strlen(word + 1), &age, NULL);
			continue;
		}
		snprintf(name, sizeof name, "pod-%d", pod++);
		write_series(w, "pod", name, word, is_range, times, mark);
	}
	if (!is_range && pod > 0 && strstr(query, FRESHNESS_LABEL)) {
		char newest[NUM_TEXT_BYTES];
		num_format_f64(newest, times[0] - age);
		write_series(w, FRESHNESS_LABEL, "newest", newest, false, times, mark);
	}
}

// A series for each alternative of the first =~ matcher. Returns false when the query has none.
static bool write_each(struct json_writer *w, const char *value, const char *query, const double *times)
{
	const char *match = strstr(query, "=~\""), *name = match;
	char label[64], alternative[64];
	if (!match)
		return false;
	while (name > query && !strchr("{, ", name[-1]))
		name--;
	snprintf(label, sizeof label, "%.*s", (int)(match - name), name);
	for (const char *p = match + 3; *p && *p != '"'; p += *p == '|') {
		size_t n = strcspn(p, "|\"");
		snprintf(alternative, sizeof alternative, "%.*s", (int)n, p);
		write_series(w, label, alternative, value, false, times, NULL);
		p += n;
	}
	return true;
}

static void begin_values(struct json_writer *w, struct buf *out, bool is_range)
{
	buf_init(out, BODY_BYTES_MAX);
	json_write_init(w, out, 0);
	json_write_object_begin(w);
	json_write_key(w, "status");
	json_write_str(w, "success");
	json_write_key(w, "data");
	json_write_object_begin(w);
	json_write_key(w, "resultType");
	json_write_str(w, is_range ? "matrix" : "vector");
	json_write_key(w, "result");
	json_write_array_begin(w);
}

static void reply_written(struct http_exchange *x, struct json_writer *w, struct buf *out)
{
	json_write_array_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
	http_exchange_reply(x, 200, "application/json", buf_str(out), out->len);
	buf_done(out);
}

static void reply_values(struct http_exchange *x, const struct rule *r, const char *query, bool is_range,
                         const double *times)
{
	struct buf out;
	struct json_writer w;
	begin_values(&w, &out, is_range);
	if (is_range || r->answer != ANSWER_EACH || !write_each(&w, r->rest, query, times))
		write_values(&w, r->rest, query, is_range, times, NULL);
	reply_written(x, &w, &out);
}

static void reply_bytes(struct http_exchange *x, int64_t n)
{
	static const char head[] =
	        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[],\"filler\":\"";
	char *body = malloc((size_t)n + sizeof head);
	if (!body)
		abort();
	memset(body, 'x', (size_t)n);
	memcpy(body, head, sizeof head - 1 < (size_t)n ? sizeof head - 1 : (size_t)n);
	http_exchange_reply(x, 200, "application/json", body, (size_t)n);
	free(body);
}

static bool form_says(const char *body, const char *pair)
{
	size_t n = strlen(pair);
	for (const char *p = body; p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
		if (strncmp(p, pair, n) == 0 && (p[n] == '&' || p[n] == '\0'))
			return true;
	return false;
}

static const struct rule *find_rule(const struct fake *f, struct http_exchange *x, const char *query, bool is_range)
{
	const char *tenant = http_exchange_header(x, "X-Scope-OrgID"), *body = http_exchange_body(x, &(size_t){0});
	for (size_t i = 0; i < f->n_rules; i++) {
		const struct rule *r = &f->rules[i];
		if (r->range_only <= is_range && (!r->tenant || (tenant && strcmp(tenant, r->tenant) == 0)) &&
		    (!r->with || form_says(body, r->with)) && strncmp(query, r->query, strlen(r->query)) == 0)
			return r;
	}
	return NULL;
}

static void on_buildinfo(void *arg, struct http_exchange *x)
{
	const struct rule *r = find_rule(arg, x, "buildinfo", false);
	if (r && r->answer == ANSWER_BODY)
		http_exchange_reply(x, (int)r->number, "application/json", r->rest, strlen(r->rest));
	else
		http_exchange_reply_text(x, 404, "404 page not found\n");
}

static void reply_rule(struct fake *f, struct http_exchange *x, const struct rule *r, const char *query, bool is_range,
                       const double *times)
{
	static const struct rule none = {.answer = ANSWER_VALUES, .rest = ""};
	if (!r)
		r = &none;
	if (r->answer <= ANSWER_EACH)
		reply_values(x, r, query, is_range, times);
	else if (r->answer == ANSWER_BODY)
		http_exchange_reply(x, (int)r->number, "application/json", r->rest, strlen(r->rest));
	else if (r->answer == ANSWER_BYTES)
		reply_bytes(x, r->number);
	else if (f->n_held < HELD_MAX)
		f->held[f->n_held++] = x;
	else
		http_exchange_reply_text(x, 500, "too many requests wait for ever\n");
}

// The next of several queries in one (promql/similar.h), cut out of the text; its number is left in ret_mark.
static char *next_of_fused(char **at, char ret_mark[static 8])
{
	static const char before[] = "label_replace((", behind[] = "\n),\"" FUSE_LABEL "\",\"";
	char *p = strstr(*at, before), *end = p ? strstr(p, behind) : NULL;
	if (!end)
		return NULL;
	*end = '\0';
	char *mark = end + sizeof behind - 1;
	snprintf(ret_mark, 8, "%.*s", (int)strcspn(mark, "\""), mark);
	*at = mark;
	return p + sizeof before - 1;
}

static void reply_fused(struct fake *f, struct http_exchange *x, char *query, const double *times)
{
	struct buf out;
	struct json_writer w;
	char mark[8];
	begin_values(&w, &out, false);
	for (char *at = query, *one; (one = next_of_fused(&at, mark));) {
		const struct rule *r = find_rule(f, x, one, false);
		if (r && r->answer > ANSWER_EACH) { // one that fails is the failure of all
			buf_done(&out);
			reply_rule(f, x, r, one, false, times);
			return;
		}
		if (r)
			write_values(&w, r->rest, one, false, times, mark);
	}
	reply_written(x, &w, &out);
}

static void on_request(void *arg, struct http_exchange *x)
{
	struct fake *f = arg;
	static char query[QUERY_MAX];
	const char *body = http_exchange_body(x, &(size_t){0});
	bool is_range = strcmp(http_exchange_path(x), "/api/v1/query_range") == 0;
	form_field(body, "query", query, sizeof query);
	const double times[3] = {form_number(body, is_range ? "start" : "time"), form_number(body, "end"),
	                         form_number(body, "step")};
	if (strstr(query, FUSE_LABEL))
		reply_fused(f, x, query, times);
	else
		reply_rule(f, x, find_rule(f, x, query, is_range), query, is_range, times);
}

// ---- the program ----

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
	event_base_loopbreak(arg);
}

static void on_hangup(evutil_socket_t fd, short events, void *arg)
{
	struct err e;
	if (read_rules(arg, &e) == 0)
		return;
	fprintf(stderr, "fake-prometheus: %s\n", e.msg); // a script that went wrong is not played on
	exit(1);
}

static int serve(struct fake *f, const char *listen, struct event_base *loop, struct err *e)
{
	struct http_server_options options = {
	        .loop = loop, .listen = listen, .max_unread_bytes = (size_t)8 * BODY_BYTES_MAX};
	f->server = http_server_new(&options, e);
	if (!f->server || http_server_route(f->server, "/api/v1/query", on_request, f, e) < 0 ||
	    http_server_route(f->server, "/api/v1/query_range", on_request, f, e) < 0 ||
	    http_server_route(f->server, "/api/v1/status/buildinfo", on_buildinfo, f, e) < 0)
		return -1;
	struct event *term = evsignal_new(loop, SIGTERM, on_signal, loop),
	             *intr = evsignal_new(loop, SIGINT, on_signal, loop),
	             *hup = evsignal_new(loop, SIGHUP, on_hangup, f);
	if (!term || !intr || !hup || event_add(term, NULL) < 0 || event_add(intr, NULL) < 0 ||
	    event_add(hup, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "cannot watch for signals");
	printf("listening on http://127.0.0.1:%u\n", (unsigned)http_server_port(f->server));
	fflush(stdout);
	event_base_dispatch(loop);
	event_free(term);
	event_free(intr);
	event_free(hup);
	return 0;
}

int main(int argc, char **argv)
{
	static struct fake fake;
	static const struct option options[] = {{"answers", required_argument, NULL, 'a'},
	                                        {"listen", required_argument, NULL, 'l'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	const char *answers = NULL, *listen = "127.0.0.1:0";
	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (c == 'a')
			answers = optarg;
		else if (c == 'l')
			listen = optarg;
		else {
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (!answers || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	struct err e;
	struct event_base *loop = event_base_new();
	int rc = loop ? 0 : err_set(&e, ERR_INTERNAL, "cannot make an event loop");
	fake.path = answers;
	if (rc == 0)
		rc = read_rules(&fake, &e);
	if (rc == 0)
		rc = serve(&fake, listen, loop, &e);
	while (fake.n_held)
		http_exchange_reply_text(fake.held[--fake.n_held], 503, "the end\n");
	http_server_free(fake.server);
	buf_done(&fake.text);
	if (loop)
		event_base_free(loop);
	libevent_global_shutdown();
	if (rc < 0)
		fprintf(stderr, "fake-prometheus: %s\n", e.msg);
	return rc < 0 ? 1 : 0;
}
