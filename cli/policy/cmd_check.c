// SPDX-License-Identifier: Apache-2.0
// gpuscale check FILE|DIR..
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file_open.h"
#include "cli/policy/check_report.h"
#include "cli/policy/fix_file.h"
#include "cli/policy/lint_source.h"
#include "cli/term/cli.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/load/file_list.h"
#include "policies/load/file_set.h"
#include "policies/load/pool_set.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

#define FORMATS (OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(SARIF) | OUTPUT_SET(GITHUB))

enum { FAIL_WARNINGS, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {{"warnings", FAIL_COUNT}};

struct check_args {
	struct path_options files;
	struct prometheus_options prometheus;
	struct fail_options fail_on;
	enum output_format output;
	bool quiet, no_lint, ask, fix;
	int dialect; // enum promql_kind
};

static void check_args(void *options, struct argp_state *state)
{
	const struct check_args *a = options;
	for (size_t i = 0; a->fix && i < a->files.n; i++)
		if (strcmp(a->files.paths[i], "-") == 0)
			print_usage(state, "--fix rewrites files, and standard input is not one: name a file");
	if (a->ask && !prometheus_options_given(&a->prometheus))
		print_usage(state, "--ask needs a source: --prometheus or --sources");
	if (a->no_lint && prometheus_options_given(&a->prometheus))
		print_usage(state,
		            "--no-lint checks no sources: leave out --prometheus, --sources and --ask, or --no-lint");
}

// clang-format off
#define FLAGS_OF struct check_args
static const struct flag_set command = {
	.args = "FILE|DIR..",
	.about = "Check files of policies, pools and price books. Every error of every file is "
	         "printed as file:line:col: path: message, every warning as file:line:col: warning: path: message. No "
	         "network is needed. FILE - is standard input. With --prometheus each query is also sent once: does it "
	         "parse, is there data, how many series ($GPUSCALE_PROMETHEUS_URL is not used here). With --sources the "
	         "names of sources are checked; no query is sent without --ask."
	         "\vExit status: 0 when all files are valid, 1 when there are errors, 2 for wrong usage, 3 when "
	         "--fail-on is met.",
	.missing = "name at least one policy file or folder",
	.check = check_args,
	.flags = (const struct flag[]){
		FLAG_SWITCH(1, 'q', "quiet", quiet, "print errors and warnings only"),
		FLAG_OUTPUT(1, output, FORMATS, "text, json, yaml, sarif (2.1.0, for code scanning) or github (annotations of a workflow); default text"),
		FLAG_FAIL_ON(1, fail_on, "warnings, or 'warnings > 5'"),
		FLAG_SWITCH(1, 0, "no-lint", no_lint, "check the fields only: no warnings, no targets, no sources"),
		FLAG_SWITCH(1, 0, "ask", ask, "send each query to its source (implied by --prometheus URL)"),
		FLAG_SWITCH(1, 0, "fix", fix, "rewrite renamed metrics in the queries of the files, then check them"),
		FLAG_CHOICE(1, 0, "dialect", "TYPE", dialect, promql_kind_names, 0, "Prometheus, Thanos, Mimir or VictoriaMetrics (which accepts more): the server that the queries are written for (default: the type of the source, else Prometheus)"),
		FLAG_ARGUMENTS(files, path_options_add),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 2),
		FLAG_END}};
// clang-format on

// ---- one file ----

struct lint_totals {
	size_t errors, warnings; // errors: impossible targets and queries that Prometheus or a source refuses
	size_t n_invalid;        // policies that the decoder accepts and that have such errors
	bool has_note;           // a name of dcgm-exporter 4.9 was mentioned: once per run is enough
};

#define LINT_ARENA_MAX (64 * 1024 * 1024)
#define STDIN_SHOWN    "<stdin>"

static int read_text(const char *path, struct buf *text, struct err *e)
{
	bool is_stdin = strcmp(path, STDIN_SHOWN) == 0;
	if (is_stdin && lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, "%s: cannot be read a second time", path);
	return buf_read_argument(text, is_stdin ? "-" : path, e);
}

// The forecast needs two complete seasons.
static int ask_history(struct connections *source, const struct policy *p, const struct doc_node *root,
                       struct schema_errors *warnings, struct err *e)
{
	if (!p->forecast.set || p->forecast.model != FORECAST_HOLT_WINTERS)
		return 0;
	char ago[NUM_TEXT_BYTES];
	const struct policy_signal *signal = &p->signals[p->forecast.signal_index];
	int64_t then_ms = clock_wall_ms(&source->clock) - 2 * p->forecast.season_ms;
	int had = lint_source_had_data(source, p->namespace_name, signal, then_ms, e);
	num_format_duration_ms(ago, 2 * p->forecast.season_ms);
	if (had == 0)
		schema_report(warnings, lint_nearest(doc_get(root, "spec"), "forecast", "season"),
		              "spec.forecast.season",
		              "needs two seasons of history, and the source had no data %s ago: nothing is forecast "
		              "until then",
		              ago);
	return had < 0 ? -1 : 0;
}

struct lists {
	struct schema_errors decode, errors, warnings, notes;
};

// False when a signal names a source that does not exist or that does not permit the query; then sets bad[i].
static bool check_sources(const struct connections *source, const struct policy *policy, const struct doc_node *root,
                          const char *text, struct schema_errors *errors, bool *bad)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	bool ok = true;
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct policy_signal *signal = &policy->signals[i];
		struct err e;
		char path[64];
		size_t offset;
		if (!signal->query || lint_source_admits(source, policy->namespace_name, signal, &offset, &e))
			continue;
		bool is_of_query = e.kind == ERR_INPUT || e.kind == ERR_LIMIT;
		const char *field = is_of_query ? "query" : "source";
		const struct doc_node *node = lint_nearest(lint_element(signals, i), field, NULL);
		snprintf(path, sizeof path, "spec.signals[%zu].%s", i, field);
		struct lint_query q = {.signal = signal, .node = node, .text = text, .path = path, .warnings = errors};
		if (is_of_query)
			lint_query_warn(&q, offset, 1, "%s", e.msg);
		else
			schema_report(errors, node, path, "%s", e.msg);
		bad[i] = is_of_query;
		ok = false;
	}
	return ok;
}

static int ask(struct connections *source, const struct policy *policy, const struct doc_node *root, const char *text,
               struct lists *lists, bool *bad, struct err *e)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	for (size_t i = 0; i < policy->n_signals; i++) {
		char path[64];
		if (!policy->signals[i].query)
			continue;
		snprintf(path, sizeof path, "spec.signals[%zu].query", i);
		struct lint_query q = {.namespace_name = policy->namespace_name,
		                       .signal = &policy->signals[i],
		                       .node = lint_nearest(lint_element(signals, i), "query", NULL),
		                       .text = text,
		                       .path = path,
		                       .warnings = &lists->warnings};
		size_t n = lists->errors.n;
		if (lint_source_ask(source, &q, &lists->errors, &lists->warnings, &lists->notes, e) < 0)
			return -1;
		bad[i] = lists->errors.n > n;
	}
	return ask_history(source, policy, root, &lists->warnings, e);
}

struct dialect {
	struct connections *source; // NULL: none
	int kind;                   // enum promql_kind
};

static int kind_of(void *arg, const char *name)
{
	const struct dialect *d = arg;
	struct err e;
	const struct promql_source *source =
	        d->kind == PROMQL_KIND_AUTO && d->source ? promql_sources_find(d->source->promql, name, &e) : NULL;
	return source ? (int)promql_source_kind(source, NULL) : d->kind;
}

// Checks one policy of the file.
static int lint_root(const struct doc_node *root, const char *text, struct connections *source, bool ask_source,
                     int dialect, struct arena *a, struct lists *lists, struct lint_totals *totals, struct err *e)
{
	struct policy_document document = {0};
	const struct policy *policy = &document.policy;
	struct dialect d = {source, dialect};
	bool bad[POLICY_SIGNALS_MAX] = {false};
	size_t n_errors = lists->errors.n + lists->errors.dropped, n_notes = lists->notes.n;
	int rc = 0;
	schema_errors_init(&lists->decode, lists->errors.file);
	bool is_valid = policy_decode(root, &document, a, &lists->decode) == 0 && lists->decode.n == 0;
	if (is_valid) {
		lint_policy(policy, root, text, &lists->warnings, totals->has_note ? NULL : &lists->notes);
		totals->has_note |= lists->notes.n > n_notes;
	}
	if (document.target.kind && document.target.api_version)
		lint_target(&document, root, &lists->errors);
	if (is_valid) {
		lint_victims(policy, &document.target, root, &lists->warnings);
		if (source && check_sources(source, policy, root, text, &lists->errors, bad) && ask_source)
			rc = ask(source, policy, root, text, lists, bad, e);
	}
	lint_queries(root, text, kind_of, &d, &lists->errors, &lists->warnings, bad);
	totals->n_invalid += is_valid && lists->errors.n + lists->errors.dropped > n_errors;
	return rc;
}

// Reads the file at `path` ("-" is standard input, which must be seekable) and appends the findings about its policies
// to `out`, as "file:line:col: warning: path: message" with the line of the query and a caret. With
// `sources` (may be NULL), a signal with an unknown source is an error; with `ask_source`, each query is also sent.
// dialect: of the queries (enum promql_kind); PROMQL_KIND_AUTO: that of the source, else Prometheus. Of policies with
// other errors, the queries are checked without a source. Adds to `totals`. Returns -1 and fills `e` if the file cannot
// be read again or the source cannot be queried.
static int lint_file(const char *path, struct connections *source, bool ask_source, int dialect, struct buf *out,
                     struct lint_totals *totals, struct err *e)
{
	struct arena a = ARENA(LINT_ARENA_MAX);
	struct lists *lists = malloc(sizeof *lists);
	struct doc_file doc = {0};
	struct buf text = BUF(DOC_BYTES_MAX);
	path = strcmp(path, "-") == 0 ? STDIN_SHOWN : path;
	int rc = lists ? 0 : err_no_memory(e);
	if (rc == 0)
		rc = read_text(path, &text, e);
	if (rc == 0)
		rc = doc_parse_yaml(&a, path, buf_str(&text), text.len, &doc, e);
	if (rc < 0)
		goto out;
	schema_errors_init(&lists->errors, path);
	schema_errors_init(&lists->warnings, path);
	schema_errors_init(&lists->notes, path);
	lists->warnings.noun = "warning";
	lists->warnings.mark = "warning: ";
	lists->notes.noun = "note";
	lists->notes.mark = "info: ";
	for (size_t i = 0; i < doc.n_roots && rc == 0; i++)
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), POLICY_KIND) == 0)
			rc = lint_root(doc.roots[i], buf_str(&text), source, ask_source, dialect, &a, lists, totals, e);
	schema_errors_print(&lists->errors, out);
	schema_errors_print(&lists->warnings, out);
	schema_errors_print(&lists->notes, out);
	totals->errors += lists->errors.n + lists->errors.dropped;
	totals->warnings += lists->warnings.n + lists->warnings.dropped;
out:
	buf_done(&text);
	free(lists);
	arena_done(&a);
	return rc;
}

// ---- all files ----

// Errors in the file itself were reported when it was read for the first time.
static bool is_reported(const char *path, const struct err *e)
{
	bool is_of_file = (e->kind == ERR_IO || e->kind == ERR_NOT_FOUND) && strncmp(e->msg, path, strlen(path)) == 0;
	return e->kind == ERR_INPUT || e->kind == ERR_LIMIT || is_of_file;
}

// Lints every file. Files that do not parse were reported before.
static int lint(const struct check_args *args, const struct path_list *list, struct connections *source,
                struct buf *report, struct lint_totals *totals, struct err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (lint_file(list->files[i].path, source, args->ask, args->dialect, report, totals, e) < 0 &&
		    !is_reported(list->files[i].path, e))
			return -1;
	return 0;
}

static int lint_all(struct check_args *args, const struct path_list *list, struct buf *report,
                    struct lint_totals *totals)
{
	struct err e = {0};
	struct prometheus_session session;
	bool named = prometheus_options_given(&args->prometheus);
	args->ask |= args->prometheus.query.url != NULL;
	if (!named && args->dialect == PROMQL_KIND_AUTO)
		args->dialect = (int)args->prometheus.query.kind; // --prometheus-type alone
	int rc = named ? prometheus_session_open(&session, &args->prometheus, &e) : 0;
	if (rc == 0 && named)
		progress_watch(&session.progress, session.connections.loop);
	if (rc == 0) {
		rc = lint(args, list, named ? &session.connections : NULL, report, totals, &e);
		if (named)
			prometheus_session_close(&session);
	}
	if (rc < 0)
		print_error("gpuscale check: %s\n", e.msg);
	return rc;
}

// Checks the pools in the same files, and the rules between them and the policies.
static int check_pools(const struct check_args *args, const struct file_set *set, struct buf *report,
                       struct lint_totals *totals, size_t *ret_pools)
{
	struct pool_set pools;
	struct err e;
	for (size_t i = 0; i < args->files.n; i++)
		if (strcmp(args->files.paths[i], "-") == 0)
			(void)lseek(STDIN_FILENO, 0, SEEK_SET); // read before; a terminal or an empty pipe has no more
	int rc = pool_set_load(&pools, args->files.paths, args->files.n, false, report, &e);
	if (rc == 0) {
		totals->errors += pools.n_errors;
		totals->errors += pool_set_check(&pools, set->policies, set->n_policies, report);
		*ret_pools = pools.n;
	} else {
		print_error("gpuscale check: %s\n", e.msg);
	}
	pool_set_done(&pools);
	return rc;
}

// has_policies: the files contain policies, valid or not.
static void print_summary(const struct check_counts *c, bool has_policies)
{
	has_policies |= c->pools || !c->price_books;
	if (has_policies)
		print_error("%zu %s", c->policies, c->policies == 1 ? "policy" : "policies");
	if (c->pools)
		print_error(" and %zu %s", c->pools, c->pools == 1 ? "pool" : "pools");
	if (has_policies)
		print_error(" valid, ");
	if (c->price_books)
		print_error("%zu %s, ", c->price_books, c->price_books == 1 ? "price book" : "price books");
	print_error("%zu %s", c->errors, c->errors == 1 ? "error" : "errors");
	if (c->warnings)
		print_error(", %zu %s", c->warnings, c->warnings == 1 ? "warning" : "warnings");
	print_error("\n");
}

static int print_findings(struct buf *report, const struct check_counts *counts, enum output_format format)
{
	struct buf out = BUF(OUTPUT_MAX);
	if (format == OUTPUT_TEXT || report->failed)
		return output_print("gpuscale check", report, OUTPUT_TEXT);
	check_report_write(&out, buf_str(report), counts, format);
	return output_print("gpuscale check", &out, format);
}

// Replaces fd with a copy of its data. A copy of 1 MiB plus one byte exceeds the ceiling of every reader.
static int keep_pipe(int fd, const char *name, struct err *e)
{
	char chunk[16 * 1024];
	int copy = memfd_create("policies", MFD_CLOEXEC);
	ssize_t n = copy < 0 ? -1 : 1;
	for (size_t kept = 0; n > 0 && kept <= DOC_BYTES_MAX; kept += (size_t)n) {
		do
			n = read(fd, chunk, sizeof chunk);
		while (n < 0 && errno == EINTR);
		if (n > 0 && write(copy, chunk, (size_t)n) != n)
			n = -1;
		if (n <= 0)
			break;
	}
	if (n < 0 || dup2(copy, fd) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		n = -1;
	int why = errno;
	if (copy >= 0)
		close(copy);
	return n < 0 ? err_set_code(e, ERR_IO, why, "%s: %s", name, strerror(why)) : 0;
}

// Policies are read twice, by the decoder and by the linter, so the data of a pipe is copied.
static int keep_pipes(const struct path_options *files, struct err *e)
{
	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->paths[i];
		bool is_stdin = strcmp(path, "-") == 0;
		int fd = !is_stdin                              ? file_inherited_pipe(path)
		         : lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? STDIN_FILENO
		                                                : -1;
		if (fd >= 0 && keep_pipe(fd, is_stdin ? "standard input" : path, e) < 0)
			return -1;
	}
	return 0;
}

// Reads the policies of the files, with --fix after metrics were renamed in them.
static int load(const struct check_args *args, struct arena *a, struct path_list *ret_list, struct file_set *ret_set,
                struct buf *report, struct err *e)
{
	const struct path_options *files = &args->files;
	int rc = file_list_read(a, files->paths, files->n, ret_list, e);
	for (size_t i = 0; rc == 0 && args->fix && i < ret_list->n; i++)
		rc = fix_file(ret_list->files[i].path, report, e);
	if (rc == 0)
		rc = keep_pipes(files, e);
	return rc == 0 ? file_set_load(ret_set, files->paths, files->n, NULL, report, e) : -1;
}

int cmd_check(int argc, char **argv)
{
	struct check_args args = {.output = OUTPUT_TEXT,
	                          .prometheus.query.kind = PROMQL_KIND_AUTO,
	                          .dialect = PROMQL_KIND_AUTO,
	                          .fail_on = FAIL_OPTIONS(fail_metrics)};
	args_parse(&command, argc, argv, &args);
	struct arena a = ARENA(REPORT_MAX);
	struct buf report = BUF(REPORT_MAX);
	struct path_list list;
	struct file_set set;
	struct lint_totals totals = {.has_note = args.quiet};
	struct err e;
	int code = EXIT_OK;
	if (load(&args, &a, &list, &set, &report, &e) < 0) {
		print_error("gpuscale check: %s\n", e.msg);
		buf_done(&report);
		arena_done(&a);
		return EXIT_FAILED;
	}
	if (!args.no_lint && lint_all(&args, &list, &report, &totals) < 0)
		code = EXIT_FAILED;
	size_t n_pools = 0;
	if (check_pools(&args, &set, &report, &totals, &n_pools) < 0)
		code = EXIT_FAILED;
	const size_t n_invalid = totals.n_invalid < set.n_policies ? totals.n_invalid : set.n_policies;
	const struct check_counts counts = {.policies = set.n_policies - n_invalid,
	                                    .pools = n_pools,
	                                    .price_books = set.n_price_books,
	                                    .errors = set.n_errors + totals.errors,
	                                    .warnings = totals.warnings};
	const double values[FAIL_METRIC__COUNT] = {(double)totals.warnings};
	if (print_findings(&report, &counts, args.output) < 0) // before the summary, in case both go to one file
		code = EXIT_FAILED;
	if (counts.errors) {
		code = EXIT_FAILED;
	} else if (set.n_policies == 0 && n_pools == 0 && set.n_price_books == 0) {
		print_error(
		        "gpuscale check: no policies found in %s%s; of a folder, *.yaml, *.yml and *.json are read\n",
		        args.files.paths[0], args.files.n > 1 ? " and the others" : "");
		code = EXIT_FAILED;
	} else if (code == EXIT_OK) {
		code = fail_on_check(&args.fail_on, "gpuscale check", values);
	}
	if (!args.quiet)
		print_summary(&counts, set.n_policies > 0);
	file_set_done(&set);
	buf_done(&report);
	arena_done(&a);
	return code;
}
