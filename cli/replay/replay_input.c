// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/replay_input.h"

#include "base/text.h"
#include "cli/replay/replay_fetch.h"
#include "cli/term/cli.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"

#define CAPACITY_MAX     WORLD_REPLICAS_MAX
#define LATE_DEFAULT     0.01
#define NOTES_MAX        (64 * 1024)
#define PER_REPLICA_MIN  1e-9
#define PER_REPLICA_MAX  1e15
#define SINCE_DEFAULT_MS (INT64_C(7) * 24 * 3600 * 1000)
#define STEP_DEFAULT_MS  15000
#define STEP_MIN_MS      1000
#define STARTUP_MAX_S    86400
#define TIME_MAX_S       253402300799.0 // 9999-12-31T23:59:59Z
#define WAIT_DEFAULT_S   10

void replay_args_init(struct replay_args *a)
{
	*a = (struct replay_args){.config = {.per_replica = 1, .late_ratio = NAN, .wait_s = NAN}};
	prometheus_options_init(&a->prometheus);
}

static void set_until(void *until_ms, char *text, struct argp_state *state)
{
	int64_t *ms = until_ms;
	double s;
	if (num_parse_rfc3339_ms(text, strlen(text), ms, NULL) == 0)
		return;
	if (num_parse_f64(text, strlen(text), &s, NULL) < 0 || !(s > 0 && s <= TIME_MAX_S))
		print_usage(state,
		            "--until: expected a time such as 2026-01-05T09:00:00Z, or seconds since 1970, got \"%s\"",
		            text);
	*ms = llround(s * 1000);
}

static void check(void *options, struct argp_state *state)
{
	const struct replay_args *a = options;
	bool names_server = prometheus_options_given(&a->prometheus);
	if (a->files.n == 0)
		print_usage(state, "name the policy: -f FILE");
	if (!a->data && !names_server)
		print_usage(state, "name the recording: --data FILE, or --prometheus URL and --since DURATION");
	if (a->demand && a->config.demand_column)
		print_usage(state, "--demand and --demand-column cannot be used together");
	if (!a->data)
		return;
	if (names_server && !a->prometheus.url_from_environment)
		print_usage(state, "--data and --prometheus cannot be used together");
	if (a->demand)
		print_usage(state,
		            "--demand is an expression for --prometheus; in a file, --demand-column names the column");
	if (a->target)
		print_usage(state, "--target is for --prometheus; --data is the recording of one target");
	if (a->since_ms || a->until_ms || a->step_ms)
		print_usage(state, "--since, --until and --step are for --prometheus; --data is used as a whole");
}

// clang-format off
#define FLAGS_OF struct replay_args
const struct flag_set replay_input_flags = {.check = check, .flags = (const struct flag[]){
	FLAG_HEADING(1, "What is replayed:"),
	FLAG_FILES(1, "FILE", files, "policy file or folder"),
	FLAG_POLICY(1, policy),
	FLAG_TEXT(1, 0, "target", "NAME", target, "with --prometheus: of a policy with scaleTargets, the target that is replayed (NAME or NAMESPACE/NAME)"),
	FLAG_TEXT(1, 0, "data", "FILE", data, "recording: CSV with a header, or OpenMetrics; - is standard input"),
	FLAG_DURATION(1, 0, "since", since_ms, STEP_MIN_MS, 0, "with --prometheus: length of the period, such as 30d (7d)"),
	FLAG_CALL(1, 0, "until", "TIME", until_ms, set_until, "with --prometheus: end of the period, such as 2026-01-05T09:00:00Z (now)"),
	FLAG_DURATION(1, 0, "step", step_ms, STEP_MIN_MS, 0, "with --prometheus: time between two rows (15s)"),
	FLAG_TEXT(1, 0, "demand", "EXPR", demand, "with --prometheus: expression of the demand (arriving work), for policies without a signal of it"),
	FLAG_TEXT(1, 0, "demand-column", "NAME", config.demand_column, "column or signal that is the demand (that of the objective, else \"demand\")"),
	FLAG_F64(1, 0, "per-replica", "X", config.per_replica, PER_REPLICA_MIN, PER_REPLICA_MAX, "demand that one replica serves (1)"),
	FLAG_INCLUDE(&prometheus_flags, prometheus, 4),
	FLAG_END}};
// clang-format on

// ---- the simulated world ----

static double duration_s(const char *flag, const char *text, struct argp_state *state)
{
	return (double)option_duration_ms(flag, text, 0, state) / 1000;
}

static void set_startups(void *world, char *arg, struct argp_state *state)
{
	struct world_config *w = world;
	const char *list = arg;
	char item[OPTION_ITEM_BYTES];
	w->n_startups = 0;
	while (option_next_item("--startup", &list, item, state)) {
		if (w->n_startups == WORLD_STARTUPS_MAX)
			print_usage(state, "--startup: more than %d times", WORLD_STARTUPS_MAX);
		double s = duration_s("--startup", item, state);
		if (s > STARTUP_MAX_S)
			print_usage(state, "--startup: %s is longer than a day", item);
		w->startups_s[w->n_startups++] = s;
	}
}

// "1%,10s", "1%" or "10s".
static void set_objective(void *config, char *arg, struct argp_state *state)
{
	struct backtest_config *c = config;
	const char *list = arg;
	char item[OPTION_ITEM_BYTES];
	while (option_next_item("--objective", &list, item, state)) {
		size_t len = strlen(item);
		double percent = 0;
		if (item[len - 1] != '%')
			c->wait_s = duration_s("--objective", item, state);
		else if (num_parse_f64(item, len - 1, &percent, NULL) < 0 || !(percent >= 0 && percent <= 100))
			print_usage(state, "--objective: expected 0%% to 100%%, got \"%s\"", item);
		else
			c->late_ratio = percent / 100;
	}
}

// clang-format off
const struct flag_set replay_world_flags = {.flags = (const struct flag[]){
	FLAG_TEXT(2, 0, "demand-signal", "NAME", config.signals[ORIGIN_DEMAND], "signal of the policy that is the simulated demand"),
	FLAG_TEXT(2, 0, "backlog-signal", "NAME", config.signals[ORIGIN_BACKLOG], "signal of the policy that is the simulated backlog, in replica-seconds"),
	FLAG_TEXT(2, 0, "utilization-signal", "NAME", config.signals[ORIGIN_UTILIZATION], "signal of the policy that is the simulated utilization, 0 to 1"),
	FLAG_CALL(2, 0, "startup", "TIME[,TIME..]", config.world, set_startups, "time from order to ready (as learnt in the status of the policy, else its startup.seconds, else 2m); with several times, each start draws one"),
	FLAG_I64(2, 0, "seed", "N", config.world.seed, 0, INT64_MAX, "seed of the random start-up times (0)"),
	FLAG_I32(2, 0, "capacity", "N", config.world.capacity, 1, CAPACITY_MAX, "replicas that fit in the cluster (unlimited)"),
	FLAG_F64(2, 0, "capacity-ratio", "RATIO", config.world.capacity_ratio, 0.1, 10, "work that a replica really serves, as a ratio to what the queries take for one (as learnt in the status of the policy, else 1)"),
	FLAG_I32(2, 0, "replicas", "N", config.replicas, 1, WORLD_REPLICAS_MAX, "replicas that are ready at the start (the recorded replicas if not 0, else the mean demand, rounded up)"),
	FLAG_CALL(2, 0, "objective", "LATE%,WAIT", config, set_objective, "at most LATE% of the requests wait longer than WAIT (that of the policy, else 1%,10s)"),
	FLAG_END}};
// clang-format on

// ---- reading ----

// Prints the errors of the files themselves; *e is set for all others.
static int load_policy(const struct replay_args *a, struct replay_input *ret, struct err *e)
{
	struct buf report = BUF(REPORT_MAX);
	int rc = file_set_load(&ret->set, a->files.paths, a->files.n, NULL, &report, e);
	print_notes(&report);
	buf_done(&report);
	if (rc < 0)
		return -1;
	if (ret->set.n_errors == 0)
		ret->policy = file_set_pick(&ret->set, a->policy, e);
	if (!ret->policy)
		return -1;
	if (!policy_ref_of(ret->policy)->fleet.set)
		return a->target ? err_set(e, ERR_INPUT, "--target: policy %s has no scaleTargets", ret->policy->name)
		                 : 0;
	if (!a->data && !a->target)
		return err_set(e, ERR_INPUT,
		               "policy %s has scaleTargets: name the target that is replayed with --target NAME",
		               ret->policy->name);
	return 0;
}

// ---- what the controller has learnt ----

// Returns -1 when memory is exhausted.
static int read_record(const char *text, const struct policy *p, struct policy_learnt *l)
{
	void *state = calloc(1, decide_state_bytes(p));
	if (!state)
		return -1;
	decide_state_init(p, state);
	l->n_record = text_from_base64(text, l->record, sizeof l->record);
	if (l->n_record > 0 && decide_objective_restore(p, state, l->record, l->n_record, INT64_MAX / 2))
		l->capacity_ratio = decide_objective_capacity(p, state);
	else
		l->n_record = 0;
	free(state);
	return 0;
}

static int read_learnt(struct replay_args *a, struct replay_input *in, struct err *e)
{
	const struct policy_ref *ref = policy_ref_of(in->policy);
	struct policy_learnt *l = &a->learnt;
	const char *record = ref->objective_record, *seconds = ref->startup_seconds;
	int64_t startup_s;
	struct err fault;
	l->startup_s = -1;
	if (a->config.open_loop)
		return 0;
	a->config.learnt = l;
	if (seconds && *seconds && num_parse_i64(seconds, strlen(seconds), 0, STARTUP_MAX_S, &startup_s, &fault) < 0)
		print_to(&in->notes, "status.startupSeconds of the policy is ignored: %s\n", fault.msg);
	else if (seconds && *seconds)
		l->startup_s = (double)startup_s;
	if (!record || !*record)
		return 0;
	if (read_record(record, in->policy, l) < 0)
		return err_no_memory(e);
	if (l->n_record == 0)
		print_to(&in->notes, "status.objectiveRecord of the policy is ignored: it is damaged, or of another "
		                     "version of gpuscale, or of an objective with other queries\n");
	return 0;
}

static int read_file(const struct replay_args *a, struct replay_input *ret, struct err *e)
{
	struct buf text = BUF(RECORDING_BYTES_MAX);
	ret->file = a->data;
	int rc = -1;
	if (buf_read_argument(&text, a->data, e) == 0)
		rc = recording_parse(buf_str(&text), text.len, a->data, &ret->recording, e);
	buf_done(&text); // the numbers are enough
	return rc;
}

static int read_prometheus(const struct replay_args *a, struct replay_input *ret, struct err *e)
{
	const struct replay_fetch fetch = {.prometheus = &a->prometheus,
	                                   .policy = ret->policy,
	                                   .target = a->target,
	                                   .demand = a->demand,
	                                   .since_ms = a->since_ms ? a->since_ms : SINCE_DEFAULT_MS,
	                                   .until_ms = a->until_ms,
	                                   .step_ms = a->step_ms ? a->step_ms : STEP_DEFAULT_MS};
	ret->file = "Prometheus";
	return replay_fetch(&fetch, &ret->recording, &ret->notes, e);
}

void replay_config_complete(struct backtest_config *c, const struct policy *p, const struct recording *r)
{
	const struct policy_objective *o = &p->objective;
	if (isnan(c->late_ratio))
		c->late_ratio = o->set ? o->late_ratio : LATE_DEFAULT;
	if (isnan(c->wait_s))
		c->wait_s = o->set ? (double)o->wait_ms / 1000 : WAIT_DEFAULT_S;
	if (!o->set)
		return;
	if (!c->demand_column && recording_column(r, o->demand) >= 0)
		c->demand_column = o->demand;
	if (!c->signals[ORIGIN_DEMAND])
		c->signals[ORIGIN_DEMAND] = o->demand;
	if (!c->signals[ORIGIN_BACKLOG])
		c->signals[ORIGIN_BACKLOG] = o->backlog;
}

int replay_input_read(struct replay_args *a, const char *command, struct replay_input *ret)
{
	struct err e = {0};
	memset(ret, 0, sizeof *ret);
	buf_init(&ret->notes, NOTES_MAX);
	if (load_policy(a, ret, &e) == 0 && read_learnt(a, ret, &e) == 0 &&
	    (a->data ? read_file(a, ret, &e) : read_prometheus(a, ret, &e)) == 0) {
		if (a->demand)
			a->config.demand_column = REPLAY_DEMAND_COLUMN;
		replay_config_complete(&a->config, ret->policy, &ret->recording);
		return EXIT_OK;
	}
	if (e.kind != ERR_NONE)
		print_error("gpuscale %s: %s\n", command, e.msg);
	return EXIT_FAILED;
}

void replay_input_done(struct replay_input *in)
{
	recording_done(&in->recording);
	file_set_done(&in->set);
	buf_done(&in->notes);
}
