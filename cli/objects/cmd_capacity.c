// SPDX-License-Identifier: Apache-2.0
// gpuscale capacity [NAME..]: the GPUs of a cluster by pool and model, and how many more replicas of each policy fit.
#include <event2/event.h>

#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/capacity_groups.h"
#include "k8s/capacity/inventory.h"
#include "k8s/capacity/resource_names.h"
#include "k8s/capacity/shape_fetch.h"
#include "k8s/client/accelerators.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/scale.h"
#include "k8s/targets/workload_kind.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"
#include "promql/promql.h"

#define COMMAND     "gpuscale capacity"
#define NEEDS_BYTES 256

// ---- the quota of Kueue ----

// Quota of Kueue's ClusterQueues, from the metrics of Kueue in a Prometheus. Kueue exports them when its configuration
// has metrics.enableClusterQueueResources.
#define KUEUE_QUOTAS_MAX 4096
#define KUEUE_NAME_BYTES 254 // of a ClusterQueue, a ResourceFlavor: a DNS subdomain, and the NUL
#define KUEUE_UNLIMITED  INT64_MAX
#define KUEUE_UNKNOWN    INT64_C(-1)

// The quota of one accelerator.
struct kueue_quota {
	char cluster_queue[KUEUE_NAME_BYTES], flavor[KUEUE_NAME_BYTES];
	char cohort[KUEUE_NAME_BYTES]; // "": none, so that the queue cannot borrow
	char resource[RESOURCE_NAME_BYTES];
	int64_t nominal;  // KUEUE_UNLIMITED: no limit
	int64_t reserved; // for workloads that are admitted or about to be; KUEUE_UNKNOWN: Prometheus has no sample
};
struct kueue_quotas {
	struct kueue_quota *items; // by queue, flavor and resource
	size_t n;
};

#define COHORT        "cohort"
#define CLUSTER_QUEUE "cluster_queue"
#define FLAVOR        "flavor"
#define RESOURCE      "resource"
#define OBJECT_BYTES  ((size_t)1024 * 1024)

// Every replica of Kueue reports the same quota, with its role as a label. Kueue: pkg/metrics/metrics.go.
#define QUERY_OF(metric) "max by (" COHORT ", " CLUSTER_QUEUE ", " FLAVOR ", " RESOURCE ") (" metric ")"

enum kueue_metric { KUEUE_NOMINAL, KUEUE_RESERVED, KUEUE_METRIC__COUNT };
static const char *const queries[] = {
        [KUEUE_NOMINAL] = QUERY_OF("kueue_cluster_queue_nominal_quota"),
        [KUEUE_RESERVED] = QUERY_OF("kueue_cluster_queue_resource_reservation"),
};
_Static_assert(sizeof queries / sizeof *queries == KUEUE_METRIC__COUNT, "one query per metric");

struct question {
	struct kueue_quotas *quotas;
	enum kueue_metric metric;
};

static int read_labels(const struct promql_series *s, struct kueue_quota *q, struct err *e)
{
	const struct {
		const char *label;
		char *to;
		size_t size;
	} rows[] = {{COHORT, q->cohort, sizeof q->cohort},
	            {CLUSTER_QUEUE, q->cluster_queue, sizeof q->cluster_queue},
	            {FLAVOR, q->flavor, sizeof q->flavor},
	            {RESOURCE, q->resource, sizeof q->resource}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (snprintf(rows[i].to, rows[i].size, "%s", promql_label(s, rows[i].label)) >= (int)rows[i].size)
			return err_set(e, ERR_LIMIT, "the label %s has more than %zu bytes", rows[i].label,
			               rows[i].size - 1);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct kueue_quota *x = a, *y = b;
	int by_queue = strcmp(x->cluster_queue, y->cluster_queue), by_flavor = strcmp(x->flavor, y->flavor);
	return by_queue ? by_queue : by_flavor ? by_flavor : strcmp(x->resource, y->resource);
}

static int add_series(void *arg, const struct promql_series *s, struct err *e)
{
	const struct question *q = arg;
	struct kueue_quotas *all = q->quotas;
	struct kueue_quota quota = {.reserved = KUEUE_UNKNOWN};
	if (read_labels(s, &quota, e) < 0)
		return -1;
	if (!resource_is_accelerator(quota.resource) || s->n_samples == 0)
		return 0;
	double value = s->samples[0].value;
	if (isnan(value) || value < 0)
		return err_set(e, ERR_PROTOCOL, "expected an amount of quota, got %g", value);
	// An accelerator is counted in whole pieces. A quota without a limit is infinite.
	int64_t amount = value > RESOURCE_DEVICES_MAX ? KUEUE_UNLIMITED : (int64_t)floor(value);
	if (q->metric == KUEUE_RESERVED) {
		for (size_t i = 0; i < all->n; i++)
			if (compare(&all->items[i], &quota) == 0)
				all->items[i].reserved = amount;
		return 0;
	}
	if (all->n == KUEUE_QUOTAS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d quotas of ClusterQueues", KUEUE_QUOTAS_MAX);
	quota.nominal = amount;
	all->items[all->n++] = quota;
	return 0;
}

// Asks the source of the session that is called default, or is the only one, and waits. Without the metrics, ret->n is
// 0. Returns 0, or -1 and *e. The caller frees ret->items in any case.
static int kueue_quotas_fetch(struct prometheus_session *session, struct kueue_quotas *ret, struct err *e)
{
	*ret = (struct kueue_quotas){.items = calloc(KUEUE_QUOTAS_MAX, sizeof *ret->items)};
	if (!ret->items)
		return err_no_memory(e);
	int rc = 0;
	for (int m = 0; rc == 0 && m < KUEUE_METRIC__COUNT; m++) {
		struct question q = {.quotas = ret, .metric = (enum kueue_metric)m};
		const struct promql_question question = {.query = queries[m], .max_series = 16 * KUEUE_QUOTAS_MAX};
		rc = prometheus_session_ask(session, &question, add_series, &q, e);
	}
	if (rc < 0) {
		ret->n = 0; // a quota is wrong without the amount that is in use
		return err_wrap(e, "quota of Kueue");
	}
	qsort(ret->items, ret->n, sizeof *ret->items, compare);
	return 0;
}

// Returns the quota that is left; 0 when the queue borrows; KUEUE_UNKNOWN when the reservation of a limited quota is.
static int64_t kueue_quota_free(const struct kueue_quota *q)
{
	if (q->nominal == KUEUE_UNLIMITED || q->reserved == KUEUE_UNKNOWN)
		return q->nominal == KUEUE_UNLIMITED ? KUEUE_UNLIMITED : KUEUE_UNKNOWN;
	return q->nominal > q->reserved ? q->nominal - q->reserved : 0;
}

// Reads which ClusterQueue a LocalQueue belongs to, in the newest version that the server has. Returns 0, or -1 and *e.
static int kueue_read_cluster_queue(struct connections *session, const char *namespace_name, const char *local_queue,
                                    char out[KUEUE_NAME_BYTES], struct err *e)
{
	static const char *const versions[] = {"v1beta2", "v1beta1"};
	static const char *const path[] = {"spec", "clusterQueue", NULL};
	struct buf body = BUF(OBJECT_BYTES);
	if (!k8s_name_is_valid(local_queue))
		return err_set(e, ERR_INPUT, "invalid name of a LocalQueue: %s", local_queue);
	int rc = -1;
	for (size_t i = 0; rc < 0 && i < 2 && (i == 0 || e->code == 404); i++) {
		char url[K8S_PATH_BYTES_MAX];
		snprintf(url, sizeof url, "/apis/kueue.x-k8s.io/%s/namespaces/%s/localqueues/%s", versions[i],
		         namespace_name, local_queue);
		buf_reset(&body);
		rc = kube_request(session, "GET", url, NULL, NULL, &body, e);
	}
	const struct json_span object = {buf_str(&body), body.len};
	if (rc == 0 && json_span_text(json_span_path(object, path), out, KUEUE_NAME_BYTES) <= 0)
		rc = err_set(e, ERR_PROTOCOL, "the object has no spec.clusterQueue");
	buf_done(&body);
	return rc < 0 ? err_wrap(e, "LocalQueue %s", local_queue) : 0;
}

// Returns how many replicas that need `each` (> 0) of `resource` the quota of the queue admits, and what is left of it;
// -1: the quota limits nothing, because it is not among `q`, has no limit, or the queue is in a cohort and can borrow.
// *ret_free is KUEUE_UNKNOWN, and the result 0, if the quota limits and the reservation of one flavor is unknown.
static int64_t kueue_quotas_admit(const struct kueue_quotas *q, const char *cluster_queue, const char *resource,
                                  int64_t each, int64_t *ret_free)
{
	int64_t replicas = -1;
	bool is_unknown = false;
	*ret_free = 0;
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		if (strcmp(row->cluster_queue, cluster_queue) != 0 || strcmp(row->resource, resource) != 0)
			continue;
		int64_t left = kueue_quota_free(row);
		if (row->cohort[0] || left == KUEUE_UNLIMITED)
			return -1;
		is_unknown |= left == KUEUE_UNKNOWN;
		// Every pod is a workload of its own, which takes a resource from one flavor.
		replicas = (replicas < 0 ? 0 : replicas) + left / each;
		*ret_free += left;
	}
	if (!is_unknown)
		return replicas;
	*ret_free = KUEUE_UNKNOWN;
	return 0;
}

// ---- the command line ----

struct capacity_args {
	struct policy_scope scope;
	struct prometheus_options prometheus; // of the metrics of Kueue
	struct path_options files;
	const char *pool_label; // NULL: the known ones
	enum output_format format;
};

// What is shown of one policy: what a replica of its target needs, how many more fit, and why no more.
struct capacity_target {
	const char *namespace_name, *name;            // of the policy
	const char *api_version, *kind, *target_name; // of its target
	const char *path;                             // of its replicas; NULL: that of the kind
	struct err error;                             // kind ERR_NONE: the following is valid
	struct target_shape target;
	size_t pending; // pods of the target without a node
	struct fit_result fit;
	char why[FIT_WHY_BYTES];
	char cluster_queue[KUEUE_NAME_BYTES]; // of Kueue; it admits the pods; "": none, or unknown
	bool is_quota_limited;                // the quota of cluster_queue is why no more fit
	char message[CAPACITY_MESSAGE_BYTES]; // of the scheduler, about one of the pending pods; "": none
};

// What is shown of the cluster, and its policies, from the cluster or from files.
struct report {
	struct capacity *capacity;
	struct inventory_stats stats;
	struct capacity_groups groups;
	struct kueue_quotas quotas;
	bool has_quotas; // a Prometheus was named, and has them
	struct policy_views views;
	struct file_set set;
	bool has_views, has_set;
	struct capacity_target *targets;
	size_t n;
};

static void check(void *options, struct argp_state *state)
{
	const struct capacity_args *a = options;
	if (a->files.n && (a->scope.n_names || a->scope.selector || a->scope.all_namespaces))
		print_usage(state,
		            "-f and a selection of the cluster's policies (NAME, -A, -l) cannot be used together");
}

// clang-format off
#define FLAGS_OF struct capacity_args
static const struct flag_set command = {
	.args = "[NAME..]",
	.about = "Show the GPUs of a cluster by pool and model, what one replica of each policy needs, how many more fit, and "
	         "why no more. With --prometheus, also the quota of Kueue. Writes nothing."
	         "\vFREE counts what a new pod can get; TAINTED is the part of it that only pods with a toleration get. Pods "
	         "that wait for a node get their room before FIT is counted.\nExit status: 0 done, 1 failed or incomplete, 2 "
	         "wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_FILES(1, "FILE|DIR", files, "policies from these files, - for standard input, instead of those of the cluster"),
		FLAG_OUTPUT(1, format, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_TEXT(1, 0, "pool-label", "KEY", pool_label, "node label that names the pool; takes precedence over the known labels"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_END}};
// clang-format on

// ---- one policy ----

static void count_pending(struct capacity_target *t, const struct capacity *capacity,
                          const struct label_selector *selector)
{
	const struct capacity_waiting *w;
	for (w = capacity->waiting; w && selector; w = w->next) {
		if (strcmp(w->namespace_name, t->namespace_name) != 0 ||
		    !label_selector_matches(selector, w->labels, w->n_labels))
			continue;
		t->pending++;
		if (!t->message[0])
			memcpy(t->message, w->message, sizeof t->message);
	}
}

// Lowers what fits to what the quota of the target's queue admits.
static int limit_by_quota(struct capacity_target *t, struct connections *session, struct capacity *capacity,
                          const struct kueue_quotas *quotas, struct err *e)
{
	if (!t->target.queue[0] || quotas->n == 0)
		return 0;
	if (kueue_read_cluster_queue(session, t->namespace_name, t->target.queue, t->cluster_queue, e) < 0)
		return -1;
	for (size_t i = 0; i < t->target.shape.requests.n; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		const char *name = capacity->names.names[a->id];
		int64_t left = 0, n = -1, pending = (int64_t)t->pending;
		if (a->amount > 0)
			n = kueue_quotas_admit(quotas, t->cluster_queue, name, a->amount, &left);
		// Pods that wait for quota get it first, like pods that wait for a node.
		if (n > 0)
			n = n > pending ? (n - pending) / t->target.pods : 0;
		if (n < 0 || n >= t->fit.replicas)
			continue;
		if (left == KUEUE_UNKNOWN)
			return err_set(e, ERR_PROTOCOL, "ClusterQueue %s: Prometheus has no reservation of %s",
			               t->cluster_queue, name);
		t->fit.replicas = n;
		t->is_quota_limited = true;
		snprintf(t->why, sizeof t->why, "ClusterQueue %s has quota for %lld more %s%s", t->cluster_queue,
		         (long long)left, name, pending ? ", and pending pods get theirs first" : "");
	}
	return 0;
}

static void capacity_target_read(struct capacity_target *t, struct connections *session, struct capacity *capacity,
                                 const struct kueue_quotas *quotas)
{
	const struct scale_ref ref = {t->api_version, t->kind, t->namespace_name, t->target_name,
	                              workload_kind_path(t->api_version, t->kind, t->path)};
	int rc = shape_read(session, &ref, &capacity->names, &t->target, &t->error);
	if (t->target.has_shape)
		count_pending(t, capacity, t->target.selector);
	if (rc == 0)
		rc = capacity_fit(capacity, &t->target.shape, &t->fit, &t->error);
	if (rc < 0)
		return;
	fit_explain(capacity, &t->fit, t->why);
	t->fit.replicas /= t->target.pods;
	if (limit_by_quota(t, session, capacity, quotas, &t->error) == 0)
		t->error = (struct err){0};
}

static void capacity_target_needs(const struct capacity_target *t, const struct resource_names *names,
                                  char out[NEEDS_BYTES])
{
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < t->target.shape.requests.n && at < NEEDS_BYTES; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		char name[RESOURCE_SHOWN_BYTES];
		resource_show_name(names->names[a->id], name);
		if (a->amount > 0 && resource_is_extended(names->names[a->id]))
			at += (size_t)snprintf(out + at, NEEDS_BYTES - at, "%s%lld %s", at ? ", " : "",
			                       (long long)a->amount * t->target.pods, name);
	}
	if (!out[0])
		snprintf(out, NEEDS_BYTES, "no GPU");
}

// ---- policies ----

static int alloc_targets(struct report *s, size_t n)
{
	struct err e;
	s->targets = err_calloc((n ? n : 1) * sizeof *s->targets, &e);
	return s->targets ? EXIT_OK : command_failed(COMMAND, &e);
}

static int select_files(struct report *s, const struct path_options *files)
{
	size_t n_bindings = 0;
	s->has_set = path_options_load(files, COMMAND, &s->set) == 0;
	for (size_t i = 0; s->has_set && i < s->set.n_policies; i++)
		n_bindings += policy_ref_of(s->set.policies[i])->n_bindings;
	int code = s->has_set ? alloc_targets(s, n_bindings) : EXIT_FAILED;
	for (size_t i = 0; code == EXIT_OK && i < s->set.n_policies; i++) {
		const struct policy *p = s->set.policies[i];
		const struct policy_ref *ref = policy_ref_of(p);
		for (size_t k = 0; k < ref->n_bindings; k++) {
			const struct scale_target *t = ref->bindings[k].target;
			s->targets[s->n++] = (struct capacity_target){.namespace_name = p->namespace_name,
			                                              .name = p->name,
			                                              .api_version = t->api_version,
			                                              .kind = t->kind,
			                                              .target_name = t->name,
			                                              .path = t->path};
		}
	}
	return code == EXIT_OK && s->set.n_errors ? EXIT_FAILED : code;
}

// Returns a text of spec.scaleTargetRef, or `absent`.
static const char *find_of_target(const struct policy_view *p, const char *key, const char *absent)
{
	const char *text = doc_get_text(doc_get(doc_get(p->root, "spec"), "scaleTargetRef"), key, "");
	return text[0] ? text : absent;
}

static int select_objects(struct report *s, struct connections *session, const struct policy_scope *scope)
{
	int code = policy_fetch_named(session, scope, COMMAND, &s->views);
	s->has_views = true;
	if (alloc_targets(s, s->views.n) != EXIT_OK)
		return EXIT_FAILED;
	for (; s->n < s->views.n; s->n++) {
		const struct policy_view *p = &s->views.items[s->n];
		s->targets[s->n] = (struct capacity_target){.namespace_name = p->namespace_name,
		                                            .name = p->name,
		                                            .api_version = find_of_target(p, "apiVersion", "apps/v1"),
		                                            .kind = p->target_kind,
		                                            .target_name = p->target_name,
		                                            .path = find_of_target(p, "path", NULL)};
	}
	return code;
}

static void report_done(struct report *s)
{
	for (size_t i = 0; i < s->n; i++)
		target_shape_done(&s->targets[i].target);
	free(s->targets);
	free(s->quotas.items);
	capacity_groups_done(&s->groups);
	if (s->has_views)
		policy_views_done(&s->views);
	if (s->has_set)
		file_set_done(&s->set);
}

// ---- the inventory ----

static int explain(struct err *e)
{
	char message[ERR_MSG_BYTES];
	snprintf(message, sizeof message, "%s", e->msg);
	if (e->code != 403)
		return -1;
	return err_set_code(e, ERR_AUTH, 403,
	                    "%s; the ClusterRole gpuscale-capacity permits it: apply manifests/capacity (chart "
	                    "value capacity.enabled=true) and bind the role to this user",
	                    message);
}

// Returns the inventory once it is complete, or NULL and *e.
static struct inventory *open_inventory(struct connections *session, struct err *e)
{
	struct inventory *i = inventory_new(&(struct inventory_options){.client = session->k8s}, e);
	struct progress progress = {.what = "nodes and pods"};
	bool is_open = true;
	progress_watch(&progress, session->loop);
	while (i && is_open && inventory_get_state(i, NULL) == INVENTORY_UNSYNCED)
		is_open = event_base_loop(session->loop, EVLOOP_ONCE) == 0;
	progress_clear(&progress);
	if (!is_open) {
		err_set(e, ERR_INTERNAL, "the event loop exited before the lists were complete");
		inventory_free(i);
		return NULL;
	}
	if (!i || inventory_get_state(i, e) == INVENTORY_KNOWN)
		return i;
	explain(e);
	inventory_free(i);
	return NULL;
}

// Reads the quota of Kueue where a Prometheus is named. Prints errors and returns the exit code.
static int read_quotas(const struct capacity_args *a, struct report *r)
{
	struct prometheus_session session;
	struct err e;
	if (!prometheus_options_given(&a->prometheus))
		return EXIT_OK;
	if (prometheus_session_open(&session, &a->prometheus, &e) < 0)
		return command_failed(COMMAND, &e);
	r->has_quotas = kueue_quotas_fetch(&session, &r->quotas, &e) == 0;
	if (!r->has_quotas)
		print_error(COMMAND ": %s\n", e.msg);
	prometheus_session_close(&session);
	return r->has_quotas ? EXIT_OK : EXIT_FAILED;
}

static bool is_counted(const struct capacity_target *t)
{
	return t->error.kind == ERR_NONE;
}

// Why no more replicas fit: what the scheduler says of a pod that waits is worth more than a computation.
static const char *why_no_more(const struct capacity_target *t)
{
	if (!is_counted(t))
		return t->error.msg;
	return t->message[0] && !t->is_quota_limited ? t->message : t->why;
}

// ---- table ----

static void render_groups(struct buf *out, const struct capacity_groups *g)
{
	struct table t;
	table_init(&t, "POOL\tMODEL\tRESOURCE\tNODES\tALLOCATABLE\tUSED\tFREE\tTAINTED\tUNREADY");
	for (size_t i = 0; i < g->n; i++) {
		const struct capacity_group *row = &g->items[i];
		table_put(&t, "%s\t%s\t%s\t%zu\t%ld\t%ld\t%ld\t%ld\t%ld", row->pool, row->model, row->resource,
		          row->nodes, row->allocatable, row->used, row->free, row->tainted, row->unready);
	}
	if (g->n)
		table_finish(&t, out, 0, true);
	else
		buf_puts(out, "No node of the cluster has GPUs.\n");
	table_done(&t);
	if (g->left_out)
		print_to(out, "%zu nodes are left out: the table has at most %d rows.\n", g->left_out,
		         CAPACITY_GROUPS_MAX);
}

static struct table_text show_quota(int64_t amount)
{
	bool is_limited = amount != KUEUE_UNLIMITED;
	return table_number(is_limited && amount != KUEUE_UNKNOWN, amount, is_limited ? "<unknown>" : "<unlimited>");
}

static void render_quotas(struct buf *out, const struct kueue_quotas *q)
{
	struct table t;
	if (q->n == 0)
		return;
	buf_putc(out, '\n');
	table_init(&t, "CLUSTERQUEUE\tCOHORT\tFLAVOR\tRESOURCE\tQUOTA\tUSED\tFREE");
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		table_put(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", row->cluster_queue, table_or_none(row->cohort), row->flavor,
		          row->resource, show_quota(row->nominal).text, show_quota(row->reserved).text,
		          show_quota(kueue_quota_free(row)).text);
	}
	table_finish(&t, out, 0, true);
}

static void put_uncounted(struct buf *out, int rules)
{
	for (int bit = 0; bit < UNCOUNTED_RULES; bit++)
		if (rules & (1 << bit))
			print_to(out, "%s%s", out->len ? ", " : "", uncounted_rule_name(bit));
}

static void render_target(struct table *t, const struct report *r, const struct capacity_target *target)
{
	char needs[NEEDS_BYTES] = "<unknown>";
	struct buf rules = BUF(TABLE_CELL_BYTES);
	if (target->target.has_shape)
		capacity_target_needs(target, &r->capacity->names, needs);
	put_uncounted(&rules, target->target.shape.uncounted);
	table_put(t, "%s\t%s\t%s/%s\t%s\t%s\t%s\t%s\t%s\t%s", target->namespace_name, target->name, target->kind,
	          target->target_name, needs,
	          table_number(target->target.has_shape, target->target.replicas, "<unknown>").text,
	          table_number(target->target.has_shape, (int64_t)target->pending, "<unknown>").text,
	          table_number(is_counted(target), target->fit.replicas, "<unknown>").text,
	          table_or_none(buf_str(&rules)), why_no_more(target));
	buf_done(&rules);
}

static void render_targets(struct buf *out, const struct report *r, bool wide)
{
	struct table t;
	if (r->n == 0)
		return;
	buf_putc(out, '\n');
	table_init_wide(&t, "NAMESPACE\tNAME\t+TARGET\tNEEDS\tREPLICAS\tPENDING\tFIT\t+NOT COUNTED\tWHY NO MORE", wide,
	                NULL);
	for (size_t i = 0; i < r->n; i++)
		render_target(&t, r, &r->targets[i]);
	table_finish(&t, out, 0, true);
}

static void render_faults(struct buf *out, struct capacity *c)
{
	struct capacity_faults f;
	bool is_first = true;
	capacity_get_faults(c, &f);
	for (int i = 0; i < CAPACITY_FAULT__COUNT; i++) {
		if (!f.of[i])
			continue;
		buf_puts(out, is_first ? "\n" : "");
		print_to(out, "%s: %zu", capacity_fault_table[i].sentence, f.of[i]);
		if (f.example[i])
			print_to(out, " (%s%s)", f.of[i] > 1 ? "such as " : "", f.example[i]);
		buf_putc(out, '\n');
		is_first = false;
	}
}

// ---- JSON ----

// NaN, which is written as null: no limit, or unknown. RESOURCE_DEVICES_MAX limits the others.
static double known_quota(int64_t amount)
{
	return amount == KUEUE_UNLIMITED || amount == KUEUE_UNKNOWN ? NAN : (double)amount;
}

static void write_quotas(struct json_writer *w, const struct kueue_quotas *q)
{
	json_write_member_array(w, "quotas");
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		json_write_format(w, "{clusterQueue:%s,cohort:%s,flavor:%s,resource:%s,quota:%g,used:%g,free:%g}",
		                  row->cluster_queue, row->cohort[0] ? row->cohort : NULL, row->flavor, row->resource,
		                  known_quota(row->nominal), known_quota(row->reserved),
		                  known_quota(kueue_quota_free(row)));
	}
	json_write_array_end(w);
}

static void write_shape(struct json_writer *w, const struct capacity_target *t, const struct resource_names *names)
{
	json_write_member_object(w, "needs");
	for (size_t i = 0; i < t->target.shape.requests.n; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		if (a->id == RESOURCE_CPU)
			json_write_member_i64(w, "cpuMillis", a->amount);
		else
			json_write_member_i64(w, names->names[a->id], a->amount);
	}
	json_write_format(w, "},replicas:%d,pending:%zu,notCounted:[", t->target.replicas, t->pending);
	for (int bit = 0; bit < UNCOUNTED_RULES; bit++) {
		if (t->target.shape.uncounted & (1 << bit))
			json_write_str(w, uncounted_rule_name(bit));
	}
	json_write_array_end(w);
}

static void write_target(struct json_writer *w, const struct capacity_target *t, const struct resource_names *names)
{
	json_write_format(w, "{namespace:%s,name:%s,target:{kind:%s,name:%s}", t->namespace_name, t->name, t->kind,
	                  t->target_name);
	if (t->target.has_shape)
		write_shape(w, t, names);
	if (t->target.queue[0])
		json_write_member_str(w, "localQueue", t->target.queue);
	if (t->cluster_queue[0])
		json_write_member_str(w, "clusterQueue", t->cluster_queue);
	if (is_counted(t))
		json_write_format(w, "fit:%ld,reservedForWaiting:%ld", t->fit.replicas, (int64_t)t->fit.waiting);
	else
		json_write_member_null(w, "fit");
	json_write_format(w, "why:%s,schedulerMessage:%s}", is_counted(t) ? t->why : t->error.msg,
	                  t->message[0] ? t->message : NULL);
}

static void capacity_render_json(struct buf *out, const struct report *r)
{
	struct capacity_faults f;
	int64_t n_waiting = 0;
	for (const struct capacity_waiting *p = r->capacity->waiting; p; p = p->next)
		n_waiting++;
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{apiVersion:%s,kind:%s,gpus:[", CRD_GROUP "/v1alpha1", "Capacity");
	for (size_t i = 0; i < r->groups.n; i++) {
		const struct capacity_group *g = &r->groups.items[i];
		json_write_format(&w,
		                  "{pool:%s,model:%s,resource:%s,nodes:%zu,allocatable:%ld,used:%ld,free:%ld,"
		                  "tainted:%ld,unready:%ld}",
		                  g->pool, g->model, g->resource, g->nodes, g->allocatable, g->used, g->free,
		                  g->tainted, g->unready);
	}
	json_write_array_end(&w);
	if (r->has_quotas)
		write_quotas(&w, &r->quotas);
	json_write_format(&w, "nodes:%zu,pods:%zu,waitingPods:%ld,policies:[", r->stats.nodes, r->stats.pods,
	                  n_waiting);
	for (size_t i = 0; i < r->n; i++)
		write_target(&w, &r->targets[i], &r->capacity->names);
	json_write_format(&w, "],faults:[");
	capacity_get_faults(r->capacity, &f);
	for (int i = 0; i < CAPACITY_FAULT__COUNT; i++)
		if (f.of[i])
			json_write_format(&w, "{name:%s,count:%zu,example:%s,message:%s}", capacity_fault_table[i].name,
			                  f.of[i], f.example[i], capacity_fault_table[i].sentence);
	json_write_format(&w, "]}");
}

// ---- the command ----

static int print(const struct capacity_args *a, const struct report *r)
{
	struct buf out = BUF(OUTPUT_MAX);
	if (output_is_document(a->format))
		capacity_render_json(&out, r);
	else if (a->format == OUTPUT_NAME)
		for (size_t i = 0; i < r->n; i++)
			print_to(&out, "gpuautoscaler." CRD_GROUP "/%s\n", r->targets[i].name);
	else {
		render_groups(&out, &r->groups);
		render_quotas(&out, &r->quotas);
		render_targets(&out, r, a->format == OUTPUT_WIDE);
		render_faults(&out, r->capacity);
	}
	return output_print(COMMAND, &out, a->format);
}

static int report(const struct capacity_args *a, struct connections *session, struct inventory *inventory)
{
	struct report r = {.capacity = inventory_capacity(inventory)};
	int code = a->files.n ? select_files(&r, &a->files) : select_objects(&r, session, &a->scope);
	int quota_code = read_quotas(a, &r);
	for (size_t i = 0; i < r.n; i++)
		capacity_target_read(&r.targets[i], session, r.capacity, &r.quotas);
	r.stats = inventory_get_stats(inventory);
	if (capacity_groups_read(r.capacity, a->pool_label, &r.groups) < 0) {
		print_error(COMMAND ": out of memory\n");
		code = EXIT_FAILED;
	} else if (print(a, &r) < 0) {
		code = EXIT_FAILED;
	}
	for (size_t i = 0; code == EXIT_OK && i < r.n; i++)
		code = is_counted(&r.targets[i]) ? EXIT_OK : EXIT_FAILED;
	report_done(&r);
	return code == EXIT_OK ? quota_code : code;
}

int cmd_capacity(int argc, char **argv)
{
	struct capacity_args args = {.format = OUTPUT_TABLE};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	struct connections session;
	struct err e = {0};
	int code = policy_fetch_open(&session, &args.scope, COMMAND);
	if (code != EXIT_OK)
		return code;
	struct inventory *inventory = open_inventory(&session, &e);
	code = inventory ? report(&args, &session, inventory) : command_failed(COMMAND, &e);
	inventory_free(inventory);
	connections_close(&session);
	return code;
}
