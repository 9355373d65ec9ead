// SPDX-License-Identifier: Apache-2.0
// gpuscale plan: prints one decision per policy, exactly like the first decision of `run`, and writes nothing.
#include <event2/event.h>

#include "base/alloc.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/policy/lint_source.h"
#include "cli/run/plan_objects.h"
#include "cli/term/cli.h"
#include "controller/fleet/fleet.h"
#include "controller/pool/pools.h"
#include "controller/tick/observe.h"
#include "controller/tick/refill.h"
#include "controller/tick/variant_scale.h"
#include "controller/tick/victim_marks.h"
#include "k8s/client/scale.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"

#define HINTS_MAX 10 // queries about labels under another name

struct plan_args {
	struct prometheus_options prometheus;
	struct policy_scope scope; // of the policies of the cluster that are shown
	struct path_options files;
	int32_t replicas; // -1: ask the cluster
	enum output_format output;
	struct fail_options fail_on;
	struct price_option price_option;
	double price;             // of one GPU-hour, by flag; NaN: that of each policy
	int32_t gpus_per_replica; // 0: those of each policy
	struct arena arena;       // of the price book
	struct price_book book;
};

struct plan;
struct plan_item {
	struct plan *plan;
	const struct policy *policy;
	const struct binding *binding; // of the policy
	void *state;
	struct refill_call refill;
	struct observation_call observation;
	struct variant_scale *variants; // NULL: the policy has none, or the replicas are given
	struct decision decision;
	bool decided;
	struct pool_membership *membership;
	char *pool;                       // why its pool changed the decision; NULL: it did not
	char victims[VICTIMS_TEXT_BYTES]; // the pods that the decision removes; "": none
	struct err error;
};

struct plan {
	const struct plan_args *args;
	struct connections connections;
	struct observe_sources sources;
	struct plan_objects *objects; // NULL: the policies and pools are in files
	const struct policy *const *policies;
	size_t n_policies;
	struct plan_item *items; // one per binding of the policies that are not fleets
	size_t n, n_done;
	struct reconcile_env tick; // of the fleets
	struct fleet_env env;
	struct fleet **fleets;
	size_t n_fleets, n_failed_fleets;
	struct decided *rows; // one per target of a fleet that has a decision
	size_t n_rows, room;
	struct decided *shown; // the first n_own are of items, the others of fleets
	size_t n_shown, n_own;
	int64_t now_ms;
	struct progress progress;
};

enum { FAIL_CHANGES, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {{"changes", FAIL_COUNT}};

static bool prints_prices(const struct plan_args *a)
{
	return a->output == OUTPUT_TABLE || a->output == OUTPUT_WIDE;
}

static void check(void *options, struct argp_state *state)
{
	struct plan_args *a = options;
	if (a->files.n == 0 && a->replicas >= 0)
		print_usage(state, "--replicas needs the policies of files: -f FILE|DIR");
	if (a->files.n && (a->scope.namespace_name || a->scope.all_namespaces))
		print_usage(state, "-n and -A select policies of the cluster: leave out -f, or -n and -A");
	if ((a->price_option.model || a->price_option.prices) && !prints_prices(a))
		print_usage(state, "--prices and --gpu-model are for -o table and -o wide");
	if (a->price_option.model)
		a->price = price_option_get(&a->price_option, NAN, state);
}

// clang-format off
#define FLAGS_OF struct plan_args
static const struct flag_set command = {
	.args = "",
	.about = "Show what each policy would do now, and why, stage by stage. The GPUPools beside the policies limit their "
	         "members. Without -f, the policies and pools of the cluster are planned, and those of the namespace are "
	         "shown. Writes nothing."
	         "\vExit status: 0 done, 1 failed or no policy has data, 2 wrong usage, 3 when --fail-on is met.",
	.surplus = "; policies are named by -f",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_FILES(1, "FILE|DIR", files, "policies from these files, - for standard input, instead of those of the cluster"),
		FLAG_I32(1, 0, "replicas", "N", replicas, 0, POLICY_REPLICAS_MAX, "assume N ready replicas of the target; do not query the cluster"),
		FLAG_OUTPUT(1, output, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_FAIL_ON(1, fail_on, "changes, or 'changes > 2': so many policies want other replicas. A policy without data then fails the plan"),
		FLAG_GPU_MODEL(1, price_option.model),
		FLAG_I32(1, 0, "gpus-per-replica", "N", gpus_per_replica, 1, POLICY_GPUS_PER_REPLICA_MAX, "GPUs of one replica (default: spec.gpus.perReplica of the policy, else what the pod template of the target requests, else 1)"),
		FLAG_PRICES(1, price_option.prices),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_END}};
// clang-format on

static void item_done(struct plan_item *it)
{
	it->plan->progress.done = ++it->plan->n_done;
	if (it->plan->n_done == it->plan->n)
		event_base_loopbreak(it->plan->connections.loop);
}

// Without history, the trace reports empty windows.
static void on_refilled(void *arg, bool ok, const struct err *error)
{
	struct plan_item *it = arg;
	observe_capacity(&it->observation);
	if (it->variants)
		variant_scale_fill(it->variants, &it->observation.observation);
	decide(it->policy, &it->observation.observation, it->plan->now_ms, it->state, &it->decision);
	if (it->variants)
		variant_scale_plan(it->variants, &it->plan->args->book, -1, it->plan->now_ms, &it->decision);
	it->decided = true;
	item_done(it);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct plan_item *it = arg;
	it->error = c->error;
	if (c->error.kind != ERR_NONE)
		item_done(it);
	else if (refill_is_needed(it->policy))
		refill_start(&it->refill, it->plan->connections.promql, it->policy, it->state,
		             observation_ready(&c->observation), it->plan->now_ms, on_refilled, it);
	else
		on_refilled(it, true, NULL);
}

// The targets of the variants have been read; the signals follow.
static void on_variants(void *arg, const struct err *error)
{
	struct plan_item *it = arg;
	struct observe_sources sources = it->plan->sources;
	if (error) {
		it->error = *error;
		item_done(it);
		return;
	}
	sources.k8s = NULL;
	sources.given_replicas = variant_scale_units(it->variants);
	observe_start(&it->observation, &sources, it->binding, it->plan->now_ms, on_observed, it);
}

static void ask(struct plan_item *it)
{
	struct plan *p = it->plan;
	it->variants = p->sources.k8s ? variant_scale_new(&p->sources, NULL, it->binding) : NULL;
	if (it->variants) {
		variant_scale_acquire(it->variants);
		variant_scale_observe(it->variants, p->now_ms, false, on_variants, it);
	} else {
		observe_start(&it->observation, &p->sources, it->binding, p->now_ms, on_observed, it);
	}
}

static void ask_all(struct plan *p)
{
	struct err unused; // the trace says that the capacity is unknown
	for (size_t i = 0; i < p->n; i++)
		if (!p->items[i].binding->variants)
			p->items[i].observation.fit = observe_acquire_fit(&p->sources, p->items[i].binding, &unused);
	for (size_t i = 0; i < p->n; i++)
		ask(&p->items[i]);
	p->progress = (struct progress){.what = "querying", .done = p->n_done, .total = p->n};
	progress_watch(&p->progress, p->connections.loop);
	if (p->n_done < p->n)
		event_base_dispatch(p->connections.loop);
	progress_clear(&p->progress);
}

// ---- fleets ----

static bool permit(void *owner, enum tick_permission permission, struct err *e)
{
	return permission == TICK_MAY_CONTINUE; // a plan writes nothing
}

static void finished(void *owner)
{
	const struct plan *p = owner;
	event_base_loopbreak(p->connections.loop);
}

static void ask_fleet(void *owner) {} // one tick is enough

static const char *find_policy(void *owner, const struct scale_ref *ref)
{
	const struct plan *p = owner;
	for (size_t i = 0; i < p->n_policies; i++) {
		const struct policy_ref *b = policy_ref_of(p->policies[i]);
		if (strcmp(p->policies[i]->namespace_name, ref->namespace_name) == 0 &&
		    strcmp(b->target.kind, ref->kind) == 0 && strcmp(b->target.name, ref->name) == 0)
			return p->policies[i]->name;
	}
	return NULL;
}

static void add_row(struct plan *p, const struct policy *policy, const struct fleet_target *t)
{
	const struct policy_ref *b = policy_ref_of(policy);
	if (t->role != FLEET_SCALES || !t->decision) {
		print_error("gpuscale plan: %s/%s: %s is not planned: %s%s%s\n", policy->namespace_name, policy->name,
		            t->name, fleet_role_names[t->role], t->detail ? ": " : "", t->detail ? t->detail : "");
		return;
	}
	must_reserve(&p->rows, p->n_rows, &p->room, sizeof *p->rows, 64);
	struct scale_target *target = must_alloc(malloc(sizeof *target));
	*target = (struct scale_target){b->fleet.api_version, b->fleet.kind, t->name, NULL};
	p->rows[p->n_rows++] = (struct decided){.policy = policy, .target = target, .decision = t->decision};
}

static int by_name(const void *a, const void *b)
{
	const struct decided *x = a, *y = b;
	int order = strcmp(x->policy->name, y->policy->name);
	return order ? order : strcmp(x->target->name, y->target->name);
}

static void run_fleet(struct plan *p, const struct policy *policy)
{
	struct fleet *f = fleet_new(&p->env, policy_ref_of(policy), NULL, p);
	p->fleets[p->n_fleets++] = f;
	fleet_tick(f, p->now_ms);
	if (f->phase != TICK_PHASE_IDLE)
		event_base_dispatch(p->connections.loop);
	if (f->error[0]) {
		print_error("gpuscale plan: %s/%s: %s\n", policy->namespace_name, policy->name, f->error);
		p->n_failed_fleets++;
	}
	for (const struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));)
		add_row(p, policy, t);
}

// Decides for the targets of those of the policies that are fleets, by one tick of each, which writes nothing; reports
// on stderr those that could not be read, and targets that are left to others.
static void run_fleets(struct plan *p)
{
	p->tick = (struct reconcile_env){.sources = p->sources, .dry_run = true, .permit = permit};
	p->env = (struct fleet_env){.tick = &p->tick,
	                            .find_policy = find_policy,
	                            .finished = finished,
	                            .ask = ask_fleet,
	                            .spans_anywhere = true};
	p->fleets = must_alloc(calloc(p->n_policies ? p->n_policies : 1, sizeof *p->fleets));
	for (size_t i = 0; i < p->n_policies; i++)
		if (policy_ref_of(p->policies[i])->fleet.set)
			run_fleet(p, p->policies[i]);
	if (p->n_rows)
		qsort(p->rows, p->n_rows, sizeof *p->rows, by_name);
}

// Call it after connections_cancel(), and before the connections are closed.
static void fleets_done(struct plan *p)
{
	fleets_disconnect(&p->env);
	for (size_t i = 0; i < p->n_rows; i++)
		free((void *)(uintptr_t)p->rows[i].target);
	for (size_t i = 0; i < p->n_fleets; i++)
		fleet_free(p->fleets[i]);
	free(p->fleets);
	free(p->rows);
}

// ---- pools ----

// Limits the decision to what the pool grants, or only reports to the pool what the item wants and has.
static int decide_in_pool(struct plan_item *it, bool only_reports)
{
	struct decision copy = it->decision;
	struct buf text = BUF(POOL_TEXT_BYTES_MAX);
	const struct pool_tick tick = {.policy = it->policy,
	                               .existing_replicas = it->observation.observation.status_replicas,
	                               .unacked = -1,
	                               .dry_run = true,
	                               .now_ms = it->plan->now_ms,
	                               .now_mono_ms = it->plan->now_ms};
	pool_membership_decide(it->membership, &tick, only_reports ? &copy : &it->decision, &text);
	free(it->pool);
	it->pool = text.len > 0 ? strdup(buf_str(&text)) : NULL;
	int rc = text.len > 0 && !it->pool ? -1 : 0;
	buf_done(&text);
	return rc;
}

// A pool is shared once each member has reported what it wants and has. So each reports first, and is decided then.
static int decide_in_pools(struct plan *p, struct pools *pools, struct err *e)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct policy *policy = p->items[i].policy;
		p->items[i].membership = pool_membership_new(pools, policy->namespace_name, policy->name,
		                                             p->items[i].binding->key, policy->label_lines, NULL);
	}
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < p->n; i++)
			if (p->items[i].decided && decide_in_pool(&p->items[i], round == 0) < 0)
				return err_no_memory(e);
	return 0;
}

// Limits the decisions as the controller limits them (controller/pool). Returns -1 after an error, which is printed:
// then no decision has changed, because the controller does not start with an invalid pool in a file. An invalid object
// holds its members, as in the controller.
static int share_pools(struct plan *p)
{
	struct err e;
	struct pools *pools = plan_pools_new(p->objects, &p->args->files, &e);
	int rc = pools ? 0 : -1;
	if (pools && pools->n > 0)
		rc = decide_in_pools(p, pools, &e);
	if (rc < 0)
		print_error("gpuscale plan: %s\n", e.msg);
	for (size_t i = 0; i < p->n; i++)
		pool_membership_free(p->items[i].membership);
	pools_free(pools);
	return rc;
}

// ---- victims ----

static void on_victims(void *arg, const struct victims_result *v)
{
	struct plan_item *it = arg;
	decide_victims(&v->plan, v->outcome, &it->decision);
	snprintf(it->victims, sizeof it->victims, "%s", v->text);
	item_done(it);
}

// Chooses the pods that the decisions remove, as `run` does, but marks none.
static void ask_victims(struct plan *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_item *it = &p->items[i];
		n += it->decided && victims_are_chosen(it->policy, &it->decision) && p->sources.k8s;
	}
	p->n_done = p->n - n;
	for (size_t i = 0; i < p->n && n > 0; i++) {
		struct plan_item *it = &p->items[i];
		const struct scale *s = &it->observation.scale;
		const struct victims_question question = {
		        .sources = &p->sources,
		        .binding = it->binding,
		        .selector = s->selector,
		        .replicas = s->spec_replicas > s->status_replicas ? s->spec_replicas : s->status_replicas,
		        .desired = it->decision.desired,
		        .is_down = true,
		        .now_ms = p->now_ms};
		if (it->decided && victims_are_chosen(it->policy, &it->decision))
			victim_marks_start(&question, on_victims, it);
	}
	if (p->n_done < p->n)
		event_base_dispatch(p->connections.loop);
}

// ---- output ----

static struct decided as_decided(const struct plan_item *it)
{
	struct decided d = {.policy = it->policy,
	                    .target = it->binding->target,
	                    .decision = &it->decision,
	                    .details = it->observation.details,
	                    .pool = it->pool,
	                    .victims = it->victims[0] ? it->victims : NULL};
	if (it->variants)
		d.variants = variant_scale_rows(it->variants, &d.n_variants);
	return d;
}

// What the pod template of the target requests; 1 where that is unknown, as for a policy with --replicas.
static int32_t read_gpus(struct plan *p, const struct policy *policy)
{
	const struct scale_ref ref = binding_scale_ref(policy_ref_of(policy)->bindings); // others have as many
	struct err e;
	int32_t n = p->connections.k8s ? shape_read_gpus(&p->connections, &ref, &e) : 0;
	return n > 0 ? n : 1;
}

// Appends what the change of each policy costs: "default/llm: +2 replicas, +7.35 USD/h". Policies without spec.gpus are
// left out, unless --gpu-model names the price of all.
static void put_prices(struct plan *plan, struct buf *out)
{
	const struct plan_args *args = plan->args;
	bool is_first = true;
	for (size_t i = 0; i < plan->n_shown; i++) {
		const struct policy *p = plan->shown[i].policy;
		bool by_flag = !isnan(args->price);
		int32_t change = plan->shown[i].decision->desired - plan->shown[i].decision->current;
		enum price_basis basis = PRICE_LISTED;
		int64_t micro =
		        by_flag ? price_micro(args->price) : policy_gpu_micro(&args->book, p->gpus.model, &basis);
		if (!by_flag && !p->gpus.set)
			continue;
		int32_t gpus = args->gpus_per_replica ? args->gpus_per_replica
		               : p->gpus.set          ? p->gpus.per_replica
		                                      : read_gpus(plan, p);
		buf_puts(out, is_first ? "\n" : "");
		print_to(out, "%s/%s: %+d %s, ", p->namespace_name, p->name, change,
		         change == 1 || change == -1 ? "replica" : "replicas");
		is_first = false;
		if (basis == PRICE_NONE)
			print_to(out, "no price: %s%s\n",
			         p->gpus.model[0] ? "add the model to a file for --prices: "
			                          : "name the model in spec.gpus.model",
			         p->gpus.model);
		else
			print_to(out, "%+.2f %s/h%s\n", (double)change * gpus * (double)micro / 1e6,
			         by_flag ? args->price_option.currency : args->book.currency,
			         basis == PRICE_ASSUMED ? " (assumed price)" : "");
	}
}

// Policies of other namespaces are planned because they share pools, and not shown.
static bool is_shown(const struct plan *p, const struct policy *policy)
{
	const char *namespace_name = p->objects ? p->args->scope.namespace_name : NULL;
	return !namespace_name || strcmp(namespace_name, policy->namespace_name) == 0;
}

// Collects what is shown. Returns -1 after an error, which is printed.
static int collect_shown(struct plan *p)
{
	int rc = p->n_failed_fleets ? -1 : 0;
	p->shown = calloc(p->n + p->n_rows + 1, sizeof *p->shown);
	if (!p->shown)
		return -1;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_item *it = &p->items[i];
		const char *namespace_name = it->policy->namespace_name, *name = it->policy->name;
		if (!is_shown(p, it->policy))
			continue;
		if (!it->decided) {
			print_error("gpuscale plan: %s/%s: %s\n", namespace_name, name, it->error.msg);
			rc = -1;
			continue;
		}
		p->shown[p->n_own++] = as_decided(it);
		if (!it->observation.pods_known)
			print_error("gpuscale plan: %s/%s: cannot count ready pods: %s\n", namespace_name, name,
			            it->observation.pods_error.msg);
	}
	p->n_shown = p->n_own;
	for (size_t i = 0; i < p->n_rows; i++)
		if (is_shown(p, p->rows[i].policy))
			p->shown[p->n_shown++] = p->rows[i];
	return rc;
}

static int print(struct plan *p)
{
	enum output_format format = p->args->output;
	struct buf out = BUF(OUTPUT_MAX);
	int rc = collect_shown(p);
	if (p->n_shown == 0 && rc == 0 && !output_is_document(format)) {
		policy_fetch_say_none(&p->args->scope);
	} else if (p->n_shown && prints_prices(p->args)) {
		plan_render(&out, p->shown, p->n_shown, format == OUTPUT_WIDE);
		put_prices(p, &out);
	} else if (p->n_shown || (p->shown && output_is_document(format))) {
		explain_list(&out, p->shown, p->n_shown, format);
	}
	return output_print("gpuscale plan", &out, format) < 0 ? -1 : rc;
}

// True if the policy decides without data: an unchanged target is then not a finding.
static bool is_blind(const struct decision *d)
{
	size_t n_missing = 0;
	for (size_t i = 0; i < d->n_signals; i++)
		n_missing += d->signals[i].state == SIGNAL_MISSING;
	bool misses = d->reason == REASON_ALL_SIGNALS_MISSING || n_missing > 0;
	return misses && (d->action == ACTION_HOLD || n_missing == d->n_signals);
}

// Reports labels that exist under another name.
static void print_hints(struct plan *p, const struct decided *x, size_t *n_hints)
{
	for (size_t i = 0; i < x->decision->n_signals && *n_hints < HINTS_MAX; i++) {
		const struct policy_signal *s = &x->policy->signals[i];
		char hint[LINT_HINT_BYTES];
		if (!s->query || x->decision->signals[i].reason != REASON_NO_DATA)
			continue;
		++*n_hints;
		if (lint_source_hint(&p->connections, x->policy->namespace_name, s, hint)[0])
			print_error("gpuscale plan: %s/%s: signal %s: %s\n", x->policy->namespace_name, x->policy->name,
			            s->name, hint);
	}
}

// Returns the exit code, and reports policies without data. Without --fail-on, only a plan in which all policies lack
// data has failed; a target of a fleet without data holds alone.
static int code_of(struct plan *p)
{
	size_t n_blind = 0, n_hints = 0;
	double changes[FAIL_METRIC__COUNT] = {0};
	for (size_t i = 0; i < p->n_shown; i++) {
		const struct decision *d = p->shown[i].decision;
		if (i < p->n_own)
			print_hints(p, &p->shown[i], &n_hints);
		n_blind += i < p->n_own && is_blind(d);
		changes[FAIL_CHANGES] += d->desired != d->current && !is_blind(d);
	}
	if (n_blind == 0 || (p->args->fail_on.n == 0 && n_blind < p->n_shown))
		return fail_on_check(&p->args->fail_on, "gpuscale plan", changes);
	for (size_t i = 0; i < p->n_own; i++) {
		const struct decided *x = &p->shown[i];
		char message[RENDER_SENTENCE_BYTES];
		if (!is_blind(x->decision))
			continue;
		explain_message(x, message);
		print_error("gpuscale plan: %s/%s %s: %s\n", x->policy->namespace_name, x->policy->name,
		            x->decision->action == ACTION_HOLD ? "holds because data is missing" : "has no data",
		            message);
	}
	return EXIT_FAILED;
}

// ---- the command ----

// Fleets have their own ticks.
static size_t n_bindings_of(const struct policy *policy)
{
	return policy_ref_of(policy)->fleet.set ? 0 : policy_ref_of(policy)->n_bindings;
}

static int plan_run(struct plan *p)
{
	int code = EXIT_FAILED;
	for (size_t i = 0; i < p->n_policies; i++)
		p->n += n_bindings_of(p->policies[i]);
	p->items = calloc(p->n ? p->n : 1, sizeof *p->items);
	bool complete = p->items != NULL;
	for (size_t i = 0, policy = 0, k = 0; complete && i < p->n; i++, k++) {
		struct plan_item *it = &p->items[i];
		for (; k == n_bindings_of(p->policies[policy]); k = 0)
			policy++;
		it->plan = p;
		it->policy = p->policies[policy];
		it->binding = &policy_ref_of(it->policy)->bindings[k];
		it->state = calloc(1, decide_state_bytes(it->policy));
		complete = it->state != NULL;
		if (complete)
			decide_state_init(it->policy, it->state);
	}
	if (complete) {
		ask_all(p);
		run_fleets(p);
		int rc = share_pools(p);
		ask_victims(p);
		code = print(p) < 0 || rc < 0 ? EXIT_FAILED : code_of(p);
	} else {
		print_error("gpuscale plan: out of memory\n");
	}
	connections_cancel(&p->connections);
	if (complete)
		fleets_done(p);
	for (size_t i = 0; p->items && i < p->n; i++) {
		observe_release(&p->items[i].observation);
		variant_scale_free(p->items[i].variants);
		free(p->items[i].state);
		free(p->items[i].pool);
	}
	free(p->items);
	free(p->shown);
	return code;
}

// Plans the policies; n_errors: invalid ones that are left out. objects: NULL: the policies are from files.
static int plan(const struct plan_args *args, const struct policy *const *policies, size_t n, size_t n_errors,
                struct plan_objects *objects)
{
	struct plan plan = {.args = args, .objects = objects, .policies = policies, .n_policies = n};
	struct err e;
	if (connections_open(&plan.connections, &args->prometheus, args->replicas < 0 ? &args->scope.kube : NULL, NULL,
	                     NULL, &e) < 0) {
		print_error("gpuscale plan: %s\n", e.msg);
		if (args->replicas < 0 && e.kind != ERR_USAGE)
			print_error("Without a cluster, pass the number of replicas: --replicas N\n");
		return err_kind_info(e.kind)->exit_code;
	}
	int code = EXIT_FAILED;
	if (connections_watch(&plan.connections, NULL, NULL, NULL, &e) < 0) {
		print_error("gpuscale plan: %s\n", e.msg);
	} else {
		plan.sources = (struct observe_sources){.queries = plan.connections.queries,
		                                        .k8s = plan.connections.k8s,
		                                        .given_replicas = args->replicas,
		                                        .fits = plan.connections.fits};
		plan.now_ms = clock_wall_ms(&plan.connections.clock);
		code = plan_run(&plan);
		if (n_errors)
			code = EXIT_FAILED; // the valid policies were planned, but not all
	}
	connections_close(&plan.connections);
	return code;
}

static int plan_files(const struct plan_args *args)
{
	struct file_set set;
	int code = EXIT_FAILED;
	if (path_options_load(&args->files, "gpuscale plan", &set) < 0)
		return EXIT_FAILED;
	if (set.n_policies > 0)
		code = plan(args, set.policies, set.n_policies, set.n_errors, NULL);
	else if (set.n_errors == 0)
		print_error("gpuscale plan: no policies found in %s%s\n", args->files.paths[0],
		            args->files.n > 1 ? " and the others" : "");
	file_set_done(&set);
	return code;
}

static int plan_cluster(struct plan_args *args)
{
	struct err e;
	if (policy_scope_resolve(&args->scope, &args->arena, &e) < 0)
		return command_failed("gpuscale plan", &e);
	struct plan_objects objects;
	int code = plan_objects_read(&objects, &args->scope);
	if (code == EXIT_OK && objects.n_policies > 0)
		code = plan(args, objects.policies, objects.n_policies, objects.n_errors, &objects);
	else if (code == EXIT_OK) {
		policy_fetch_say_none(&args->scope);
		code = objects.n_errors ? EXIT_FAILED : EXIT_OK;
	}
	plan_objects_done(&objects);
	return code;
}

int cmd_plan(int argc, char **argv)
{
	struct plan_args args = {.replicas = -1, .price = NAN, .fail_on = FAIL_OPTIONS(fail_metrics)};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	args.arena = ARENA(PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (price_option_read(args.price_option.prices, &args.arena, &args.book, "gpuscale plan") == 0)
		code = args.files.n > 0 ? plan_files(&args) : plan_cluster(&args);
	arena_done(&args.arena);
	return code;
}
