// SPDX-License-Identifier: Apache-2.0
// Finds the workloads that have GPUs, and what they request.
#include <strings.h>

#include "cli/gpu/advise.h"
#include "cli/gpu/cost_fetch.h"
#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "insight/gpu_cost.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/capacity/resource_names.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql.h"

#define ARENA_MAX         ((size_t)512 * 1024 * 1024)
#define NOTES_MAX         ((size_t)1024 * 1024)
#define POLICY_MAX        ((size_t)CONVERT_TEXT_MAX)
#define PAGES_MAX         200
#define SERIES_MAX        100000
#define PATH_BYTES        512
#define TEMPLATE_GPUS_MAX 1024
#define PROBES            5 // times of the last day of the period at which engines are looked for
#define PROBE_SPAN_S      INT64_C(86400)

// Lists of workloads: on the API server, and in kube-state-metrics.
static const struct workload_list {
	const char *plural, *kind, *label, *query;
} workload_lists[] = {
        {"deployments", "Deployment", "deployment",
         "group by (namespace, exported_namespace, deployment) (last_over_time(kube_deployment_spec_replicas[1h]))"},
        {"statefulsets", "StatefulSet", "statefulset",
         "group by (namespace, exported_namespace, statefulset) (last_over_time(kube_statefulset_replicas[1h]))"},
};
#define WORKLOAD_LISTS (sizeof workload_lists / sizeof *workload_lists)

struct finder {
	const struct advise_request *request;
	struct advice *advice;
	struct connections kube;
	bool has_cluster;                        // its lists were read
	const struct autoscaler_kind_info *kind; // of the list that is read
	enum autoscaler_kind kind_index;
	const struct workload_list *workload; // the list that is read
	struct doc_node *list;                // kind and apiVersion of the items of a typed list
	// Names that kube-state-metrics reports; one of them becomes a workload when a pod of it uses a GPU.
	struct advise_workload *known;
	size_t n_known;
};

// ---- the workloads ----

// The names go into queries and into YAML as they are. Kubernetes: DNS subdomains.
static bool is_name(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.");
	return n > 0 && n < AUTOSCALER_NAME_BYTES && text[n] == '\0';
}

static bool is_word(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-./");
	return n > 0 && n < AUTOSCALER_NAME_BYTES && text[n] == '\0';
}

static bool is_requested(const struct advise_request *r, const char *namespace_name, const char *kind, const char *name)
{
	if (r->namespace_name && strcmp(r->namespace_name, namespace_name) != 0)
		return false;
	return !r->name || (strcasecmp(r->kind, kind) == 0 && strcmp(r->name, name) == 0);
}

static struct advise_workload *find(struct advise_workload *list, size_t n, const char *namespace_name,
                                    const char *kind, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].target.name, name) == 0 && strcmp(list[i].namespace_name, namespace_name) == 0 &&
		    strcmp(list[i].target.kind, kind) == 0)
			return &list[i];
	return NULL;
}

static struct advise_workload *add(struct advice *a, struct advise_workload *list, size_t *n,
                                   const char *namespace_name, const char *api_version, const char *kind,
                                   const char *name, struct err *e)
{
	struct advise_workload *w = find(list, *n, namespace_name, kind, name);
	if (w)
		return w;
	if (*n == ADVISE_WORKLOADS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d workloads: name a namespace with -n", ADVISE_WORKLOADS_MAX),
		       NULL;
	w = &list[*n];
	*w = (struct advise_workload){.namespace_name = arena_strdup(&a->arena, namespace_name),
	                              .target = {arena_strdup(&a->arena, api_version), arena_strdup(&a->arena, kind),
	                                         arena_strdup(&a->arena, name)}};
	if (!w->namespace_name || !w->target.api_version || !w->target.kind || !w->target.name)
		return err_no_memory(e), NULL;
	(*n)++;
	return w;
}

// ---- autoscalers of the cluster ----

struct policy_ref *advise_policy(const char *text, struct err *e)
{
	struct policy_ref *ref = policy_ref_new();
	struct policy_document document = {0};
	struct doc_file file;
	struct schema_errors errors;
	struct buf report = BUF(POLICY_MAX);
	if (!ref)
		return err_no_memory(e), NULL;
	schema_errors_init(&errors, "policy");
	int rc = doc_parse_yaml(&ref->arena, "policy", text, strlen(text), &file, e);
	if (rc == 0 && file.n_roots != 1)
		rc = err_set(e, ERR_INPUT, "expected one policy");
	if (rc == 0 && (policy_decode(file.roots[0], &document, &ref->arena, &errors) < 0 ||
	                policy_zones_load(&document.policy, file.roots[0], &ref->arena, &errors) < 0)) {
		schema_errors_print(&errors, &report);
		rc = err_set(e, ERR_INPUT, "%.*s", (int)strcspn(buf_str(&report), "\n"), buf_str(&report));
		buf_done(&report);
	}
	if (rc < 0) {
		policy_ref_release(ref);
		return NULL;
	}
	policy_ref_set(ref, &document);
	return ref;
}

// The rules as a policy; otherwise w->present_fault.
static int read_rules(struct finder *f, struct advise_workload *w, struct json_span object, struct err *e)
{
	struct arena arena = ARENA(ARENA_MAX);
	struct buf text = BUF(POLICY_MAX);
	struct doc_node *root;
	struct err fault = {0};
	struct conversion *c = arena_alloc(&arena, sizeof *c);
	if (!c)
		err_no_memory(&fault);
	else if (doc_from_json(&arena, object.text, object.len, &root, &fault) == 0 &&
	         convert_object(c, &arena, root, f->list, NULL, &fault) == 0) {
		convert_write(&text, c);
		if (c->is_incomplete)
			err_set(&fault, ERR_UNSUPPORTED, "not converted: %s", c->n_notes ? c->notes[0] : "its metrics");
		else
			w->present = advise_policy(buf_str(&text), &fault);
	}
	if (!w->present)
		w->present_fault = arena_strdup(&f->advice->arena, fault.msg);
	buf_done(&text);
	arena_done(&arena);
	return w->present || w->present_fault ? 0 : err_no_memory(e);
}

static int on_autoscaler(void *arg, struct json_span object, struct err *e)
{
	struct finder *f = arg;
	struct autoscaler_object o;
	char api_version[AUTOSCALER_NAME_BYTES];
	// The HPA of a ScaledObject has the rules of the ScaledObject.
	if (!autoscaler_decode(f->kind_index, object.text, object.len, &o) || !o.has_target || o.scaled_object[0] ||
	    !is_name(o.namespace_name) || !is_name(o.target_name) || !is_word(o.target_kind) ||
	    !is_requested(f->request, o.namespace_name, o.target_kind, o.target_name))
		return 0;
	const struct json_span target = json_span_path(object, f->kind->target);
	json_span_text(json_span_get(target, "apiVersion"), api_version, sizeof api_version);
	struct advise_workload *w =
	        add(f->advice, f->advice->workloads, &f->advice->n, o.namespace_name,
	            is_word(api_version) ? api_version : "apps/v1", o.target_kind, o.target_name, e);
	if (!w)
		return -1;
	if (w->autoscaler)
		return 0; // in the order of the table: the others follow it
	w->autoscaler = arena_printf(&f->advice->arena, "%s %s", f->kind->name, o.name);
	return w->autoscaler ? read_rules(f, w, object, e) : err_no_memory(e);
}

// Reads a collection. Returns 1 when the API server does not serve it. A refusal is a note.
static int read_list(struct finder *f, const char *group_version, const char *plural, kube_item_fn *item, struct err *e)
{
	char path[PATH_BYTES];
	const char *namespace_name = f->request->namespace_name;
	snprintf(path, sizeof path, "/apis/%s%s%s/%s", group_version, namespace_name ? "/namespaces/" : "",
	         namespace_name ? namespace_name : "", plural);
	const struct kube_pages pages = {plural, PAGES_MAX, item, NULL}; // what is found again is the same
	if (kube_pages_fetch(&f->kube, &pages, path, "", f, e) == 0)
		return 0;
	if (e->code == 404)
		return 1;
	if (e->code != 401 && e->code != 403)
		return -1;
	print_to(&f->advice->notes, "%s are not read: %s\n", plural, e->msg);
	return 0;
}

static int read_kind(struct finder *f, const char *version, struct err *e)
{
	char json[256];
	snprintf(json, sizeof json, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\"}", f->kind->name, version);
	return doc_from_json(&f->advice->arena, json, strlen(json), &f->list, e) < 0
	               ? -1
	               : read_list(f, version, f->kind->plural, on_autoscaler, e);
}

static int read_autoscalers(struct finder *f, struct err *e)
{
	// The table has the version that all servers have; newer ones have all rules.
	static const char *const hpas[] = {"autoscaling/v2", "autoscaling/v2beta2"};
	int rc = 0;
	for (int kind = 0; rc >= 0 && kind < AUTOSCALER_KIND__COUNT; kind++) {
		f->kind = &autoscaler_kinds[kind];
		f->kind_index = (enum autoscaler_kind)kind;
		rc = 1;
		for (size_t i = 0; kind == AUTOSCALER_HPA && rc == 1 && i < sizeof hpas / sizeof *hpas; i++)
			rc = read_kind(f, hpas[i], e);
		if (rc == 1)
			rc = read_kind(f, f->kind->group_version, e);
	}
	return rc < 0 ? -1 : 0;
}

// ---- workloads of the cluster ----

// GPUs that the limits of the containers name.
static double template_gpus(struct json_span object)
{
	struct json_span_iter it = {
	        .rest = json_span_path(object, (const char *const[]){"spec", "template", "spec", "containers", NULL})};
	double gpus = 0;
	while (json_span_next(&it)) {
		struct json_span_iter limits = {
		        .rest = json_span_path(it.value, (const char *const[]){"resources", "limits", NULL})};
		while (json_span_next(&limits)) {
			char name[RESOURCE_NAME_BYTES], amount[32];
			int64_t n;
			struct err ignored;
			if (json_span_text(limits.key, name, sizeof name) < 0 || !resource_is_whole_gpu(name))
				continue;
			if (json_span_i64(limits.value, 0, TEMPLATE_GPUS_MAX, &n) ||
			    (json_span_text(limits.value, amount, sizeof amount) > 0 &&
			     num_parse_i64(amount, strlen(amount), 0, TEMPLATE_GPUS_MAX, &n, &ignored) == 0))
				gpus += (double)n;
		}
	}
	return gpus;
}

static int on_workload(void *arg, struct json_span object, struct err *e)
{
	struct finder *f = arg;
	char namespace_name[AUTOSCALER_NAME_BYTES], name[AUTOSCALER_NAME_BYTES];
	const struct json_span metadata = json_span_get(object, "metadata");
	json_span_text(json_span_get(metadata, "namespace"), namespace_name, sizeof namespace_name);
	json_span_text(json_span_get(metadata, "name"), name, sizeof name);
	double gpus = template_gpus(object);
	if (!is_name(namespace_name) || !is_name(name) ||
	    !is_requested(f->request, namespace_name, f->workload->kind, name))
		return 0;
	if (gpus == 0 && !find(f->advice->workloads, f->advice->n, namespace_name, f->workload->kind, name))
		return 0;
	struct advise_workload *w = add(f->advice, f->advice->workloads, &f->advice->n, namespace_name, "apps/v1",
	                                f->workload->kind, name, e);
	if (!w)
		return -1;
	w->gpus = gpus;
	return 0;
}

static int read_cluster(struct finder *f, struct err *e)
{
	if (connections_open(&f->kube, NULL, f->request->kube, NULL, NULL, e) < 0) {
		print_to(&f->advice->notes,
		         "no cluster (%s): the rules of autoscalers are unknown, and workloads are those of "
		         "Prometheus\n",
		         e->msg);
		return 0;
	}
	int rc = read_autoscalers(f, e);
	for (f->workload = workload_lists; rc >= 0 && f->workload < workload_lists + WORKLOAD_LISTS; f->workload++)
		rc = read_list(f, "apps/v1", f->workload->plural, on_workload, e);
	connections_close(&f->kube);
	f->has_cluster = rc >= 0;
	if (rc < 0 && (e->kind == ERR_UNREACHABLE || e->kind == ERR_TIMEOUT || e->kind == ERR_TLS)) {
		print_to(&f->advice->notes, "the cluster does not respond (%s): workloads are those of Prometheus\n",
		         e->msg);
		rc = 0;
	}
	return rc < 0 ? -1 : 0;
}

// ---- workloads of kube-state-metrics ----

static const char *namespace_of(const struct promql_series *s)
{
	const char *exported = promql_label(s, "exported_namespace");
	return *exported ? exported : promql_label(s, "namespace");
}

static int on_known(void *arg, const struct promql_series *s, struct err *e)
{
	struct finder *f = arg;
	const char *namespace_name = namespace_of(s), *name = promql_label(s, f->workload->label);
	if (!is_name(namespace_name) || !is_name(name) ||
	    !is_requested(f->request, namespace_name, f->workload->kind, name))
		return 0;
	return add(f->advice, f->known, &f->n_known, namespace_name, "apps/v1", f->workload->kind, name, e) ? 0 : -1;
}

// Without a cluster, kube-state-metrics knows which workloads have an HPA.
static int on_hpa(void *arg, const struct promql_series *s, struct err *e)
{
	struct finder *f = arg;
	const char *namespace_name = namespace_of(s), *hpa = promql_label(s, "horizontalpodautoscaler");
	const char *kind = promql_label(s, "scaletargetref_kind"), *name = promql_label(s, "scaletargetref_name");
	if (!is_name(namespace_name) || !is_name(name) || !is_word(kind) || f->has_cluster ||
	    !is_requested(f->request, namespace_name, kind, name))
		return 0;
	struct advise_workload *w = find(f->advice->workloads, f->advice->n, namespace_name, kind, name);
	if (!w)
		w = add(f->advice, f->known, &f->n_known, namespace_name, "apps/v1", kind, name, e);
	if (!w)
		return -1;
	bool is_of_keda = strncmp(hpa, "keda-hpa-", 9) == 0;
	w->autoscaler =
	        arena_printf(&f->advice->arena, "%s %s", is_of_keda ? "ScaledObject" : "HorizontalPodAutoscaler",
	                     is_of_keda ? hpa + 9 : hpa);
	w->present_fault = "the rules can only be read from the cluster";
	return w->autoscaler ? 0 : err_no_memory(e);
}

static int ask(struct prometheus_session *session, const char *query, int64_t time_ms, prometheus_series_fn *take,
               void *arg, struct err *e)
{
	const struct promql_question question = {.query = query, .time_ms = time_ms, .max_series = SERIES_MAX};
	return prometheus_session_ask(session, &question, take, arg, e);
}

static int read_known(struct finder *f, struct prometheus_session *session, struct err *e)
{
	int64_t time_ms = f->advice->end_s * 1000;
	for (f->workload = workload_lists; f->workload < workload_lists + WORKLOAD_LISTS; f->workload++)
		if (ask(session, f->workload->query, time_ms, on_known, f, e) < 0)
			return -1;
	return ask(session,
	           "group by (namespace, exported_namespace, horizontalpodautoscaler, scaletargetref_kind, "
	           "scaletargetref_name) (last_over_time(kube_horizontalpodautoscaler_info[1h]))",
	           time_ms, on_hpa, f, e);
}

// The workload of a pod; one that only kube-state-metrics knew becomes a workload. NULL: none, or *e.
static struct advise_workload *of_pod(struct finder *f, const char *namespace_name, const char *pod, struct err *e)
{
	struct advice *a = f->advice;
	e->kind = ERR_NONE;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->workloads[i].namespace_name, namespace_name) == 0 &&
		    pod_is_of_target(&a->workloads[i].target, pod))
			return &a->workloads[i];
	for (size_t i = 0; i < f->n_known; i++) {
		const struct advise_workload *k = &f->known[i];
		if (strcmp(k->namespace_name, namespace_name) != 0 || !pod_is_of_target(&k->target, pod))
			continue;
		struct advise_workload *w = add(a, a->workloads, &a->n, namespace_name, k->target.api_version,
		                                k->target.kind, k->target.name, e);
		if (w)
			*w = *k;
		return w;
	}
	return NULL;
}

// ---- what they used ----

static int add_use(struct finder *f, const struct cost_use *use, struct err *e)
{
	struct gpu_cost cost;
	struct advice *a = f->advice;
	gpu_cost_init(&cost, f->request->book, NULL);
	int rc = 0;
	for (const struct gpu_use *u = use->use.rows; rc == 0 && u; u = u->hh.next) {
		const struct advise_request *r = f->request;
		if (!u->namespace_name[0] || (r->namespace_name && strcmp(r->namespace_name, u->namespace_name) != 0))
			continue;
		struct advise_workload *w = of_pod(f, u->namespace_name, u->part, e);
		const char *key = w ? arena_printf(&a->arena, "%zu", (size_t)(w - a->workloads)) : "";
		rc = e->kind != ERR_NONE ? -1 : key ? 0 : err_no_memory(e);
		if (rc == 0)
			gpu_cost_add(&cost, key, u);
	}
	gpu_cost_close(&cost);
	if (rc == 0 && cost.failed)
		rc = err_no_memory(e);
	for (size_t i = 0; rc == 0 && i < cost.n; i++) {
		const struct gpu_cost_row *row = &cost.rows[i];
		double hours = (double)row->milli[GPU_ALLOCATED] / 3.6e6;
		int64_t index;
		if (!row->key[0] || num_parse_i64(row->key, strlen(row->key), 0, ADVISE_WORKLOADS_MAX, &index, e) < 0) {
			a->other_gpu_hours += hours;
			a->other_cost += (double)row->cents[COST_TOTAL] / 100;
			continue;
		}
		struct advise_workload *w = &a->workloads[index];
		w->has_use = true;
		w->gpu_hours = hours;
		w->cost = (double)row->cents[COST_TOTAL] / 100;
		w->idle_cost = (double)row->cents[COST_IDLE] / 100;
		w->fake_cost = (double)row->cents[COST_FAKE] / 100;
	}
	for (size_t i = 0; i < cost.n_unpriced; i++)
		print_to(&a->notes, "no price for the model \"%s\": --prices FILE can add it\n",
		         cost.unpriced[i].model);
	gpu_cost_done(&cost);
	return rc;
}

static int read_use(struct finder *f, struct prometheus_session *session, struct err *e)
{
	struct cost_use use;
	const struct gpu_use_parts parts = {.by_pod = true};
	const struct cost_period period = {f->advice->start_s, f->advice->end_s};
	int rc = cost_fetch(session, &period, &parts, &use, e);
	if (rc == 0)
		rc = add_use(f, &use, e);
	if (rc == 0 && !use.use.rows)
		buf_puts(&f->advice->notes,
		         "no GPU reported in this period (DCGM_FI_DEV_FB_USED): costs and idle GPUs are unknown\n");
	gpu_use_done(&use.use);
	return rc;
}

// ---- engines ----

static int on_probe(void *arg, const struct promql_series *s, struct err *e)
{
	struct finder *f = arg;
	const char *metric = promql_label(s, "__name__");
	const char *exported = promql_label(s, "exported_pod");
	const char *pod = *exported ? exported : promql_label(s, "pod");
	const char *namespace_name = promql_label(s, *exported ? "exported_namespace" : "namespace");
	for (int engine = 0; engine < ADVISE_ENGINE__COUNT; engine++) {
		if (strcmp(metric, advise_engines[engine].probe) != 0)
			continue;
		struct advise_workload *w = of_pod(f, namespace_name, pod, e);
		if (!w)
			return e->kind == ERR_NONE ? 0 : -1;
		if (!w->has_engine || engine < (int)w->engine) { // an engine says more than its GPUs
			w->has_engine = true;
			w->engine = (enum advise_engine)engine;
			w->is_exported = *exported;
		}
	}
	return 0;
}

// Looks for engines at several times, because a workload may have no pod now.
static int find_engines(struct finder *f, struct prometheus_session *session, struct err *e)
{
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	int rc = 0;
	buf_puts(&query, "group by (__name__, namespace, exported_namespace, pod, exported_pod) ({__name__=~\"");
	for (int engine = 0; engine < ADVISE_ENGINE__COUNT; engine++) {
		buf_puts(&query, engine ? "|" : "");
		buf_puts(&query, advise_engines[engine].probe);
	}
	buf_puts(&query, "\"})");
	int64_t length_s = f->advice->end_s - f->advice->start_s;
	int64_t step_s = (length_s < PROBE_SPAN_S ? length_s : PROBE_SPAN_S) / PROBES;
	for (int i = 0; rc == 0 && i < PROBES; i++)
		rc = ask(session, buf_str(&query), (f->advice->end_s - i * step_s) * 1000, on_probe, f, e);
	buf_done(&query);
	return rc;
}

// ---- all ----

// Autoscaled workloads that use no GPU are only counted.
static void leave_out(struct advice *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct advise_workload *w = &a->workloads[i];
		if (w->has_use || w->has_engine || w->gpus > 0) {
			a->workloads[n++] = *w;
			continue;
		}
		policy_ref_release(w->present);
		a->n_without_gpus++;
	}
	a->n = n;
}

static int find_all(struct finder *f, struct prometheus_session *session, struct err *e)
{
	struct advice *a = f->advice;
	const struct advise_request *r = f->request;
	a->end_s = clock_wall_ms(&session->connections.clock) / 1000 / GPU_USE_STEP_S * GPU_USE_STEP_S;
	a->start_s = a->end_s - r->since_ms / 1000 / GPU_USE_STEP_S * GPU_USE_STEP_S;
	// The workload that the command line names exists, whatever is known of it.
	if (r->name && !add(a, a->workloads, &a->n, r->namespace_name, "apps/v1", r->kind, r->name, e))
		return -1;
	if (read_cluster(f, e) < 0 || read_known(f, session, e) < 0 || read_use(f, session, e) < 0 ||
	    find_engines(f, session, e) < 0)
		return -1;
	if (!r->name)
		leave_out(a);
	return a->notes.failed ? err_no_memory(e) : 0;
}

int advise_find(const struct advise_request *r, struct advice *ret, struct err *e)
{
	*ret = (struct advice){.arena = ARENA(ARENA_MAX), .notes = BUF(NOTES_MAX), .currency = r->book->currency};
	struct finder f = {.request = r, .advice = ret};
	ret->workloads = calloc(ADVISE_WORKLOADS_MAX, sizeof *ret->workloads);
	f.known = calloc(ADVISE_WORKLOADS_MAX, sizeof *f.known);
	int rc = ret->workloads && f.known ? 0 : err_no_memory(e);
	struct prometheus_session session;
	if (rc == 0)
		rc = prometheus_session_open(&session, r->prometheus, e);
	if (rc == 0) {
		rc = find_all(&f, &session, e);
		prometheus_session_close(&session);
	}
	free(f.known);
	return rc;
}

void advice_done(struct advice *a)
{
	for (size_t i = 0; i < a->n; i++)
		policy_ref_release(a->workloads[i].present);
	free(a->workloads);
	buf_done(&a->notes);
	arena_done(&a->arena);
}
