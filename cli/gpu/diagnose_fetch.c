// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/diagnose_fetch.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/gpu/gpu_source.h"
#include "insight/verdict_query.h"
#include "insight/workload_set.h"
#include "promql/fuse.h"
#include "promql/promql.h"

#define SERIES_SPARE 200 // GPUs and pods that come between two queries

enum stage { STAGE_OWNERS, STAGE_LABELS, STAGE_MEASURES };

struct question {
	struct workload_set *set;
	enum stage stage;
	const enum verdict_measure *measures; // of STAGE_MEASURES, by their number in the query
	int n_measures;
};

static int take(void *arg, const struct promql_series *s, struct err *e)
{
	struct question *q = arg;
	int i;
	switch (q->stage) {
	case STAGE_OWNERS:
		return workload_set_add_owner(q->set, s, e);
	case STAGE_LABELS:
		return workload_set_add_labels(q->set, s, e);
	case STAGE_MEASURES:
		i = fuse_index(s);
		if (i >= 0 && i < q->n_measures)
			workload_set_add_value(q->set, q->measures[i], s);
		return 0;
	}
	return 0;
}

static int ask(const struct gpu_source *source, const struct buf *query, const char *const *labels, struct question *q,
               struct err *e)
{
	struct promql_question question = {.query = buf_str(query), .labels = labels};
	return query->failed ? err_set(e, ERR_INTERNAL, "out of memory for the query")
	                     : gpu_source_ask(source, &question, take, q, e);
}

// How many measures fit into one answer of PROMQL_SERIES_MAX series.
static int measures_together(const struct workload_set *s)
{
	size_t series = s->n_gpus > s->n ? s->n_gpus : s->n;
	size_t n = PROMQL_SERIES_MAX / (series + SERIES_SPARE);
	return n < 1 ? 1 : n > FUSE_MAX ? FUSE_MAX : (int)n;
}

// Asks for the measures from `first` up to `end`.
static int fetch_measures(const struct gpu_source *source, int64_t window_s, struct workload_set *set, int first,
                          int end, struct err *e)
{
	static const char *const labels[] = {FUSE_LABEL, "UUID", "GPU_I_ID", "namespace", "pod", "nodename", NULL};
	int together = measures_together(set), rc = 0;
	struct buf query, one;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	buf_init(&one, PROMQL_QUERY_BYTES_MAX);
	while (rc == 0 && first < end) {
		enum verdict_measure measures[FUSE_MAX];
		struct question q = {.set = set, .stage = STAGE_MEASURES, .measures = measures};
		buf_reset(&query);
		while (q.n_measures < together && first < end) {
			measures[q.n_measures] = (enum verdict_measure)first++;
			buf_reset(&one);
			verdict_query_measure(&one, measures[q.n_measures], window_s);
			fuse_add(&query, buf_str(&one), q.n_measures);
			q.n_measures++;
		}
		rc = ask(source, &query, labels, &q, e);
	}
	buf_done(&one);
	buf_done(&query);
	return rc;
}

// Metrics of other exporters refine a verdict but are optional.
static void fetch_optional(const struct gpu_source *source, int64_t window_s, struct workload_set *set)
{
	struct question labels = {.set = set, .stage = STAGE_LABELS};
	struct err e;
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	verdict_query_pod_labels(&query);
	if (ask(source, &query, NULL, &labels, &e) < 0)
		print_error("Labels of pods are not used: %s\n", e.msg);
	buf_done(&query);
	if (fetch_measures(source, window_s, set, MEASURE_CPU, MEASURE__COUNT, &e) < 0)
		print_error("Measures of hosts and trainers are not used: %s\n", e.msg);
}

static int fetch(const struct gpu_source *source, int64_t window_s, struct workload_set *set, struct err *e)
{
	struct question owners = {.set = set, .stage = STAGE_OWNERS};
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	verdict_query_owners(&query);
	int rc = ask(source, &query, verdict_query_owner_labels(), &owners, e);
	buf_done(&query);
	if (rc < 0 || workload_set_index(set, e) < 0)
		return -1;
	if (set->n == 0)
		return err_set(e, ERR_NOT_FOUND,
		               "no GPU reports: check that gpuscale-exporter or dcgm-exporter is scraped "
		               "(DCGM_FI_DEV_FB_USED), or the exporter of AMD or Intel");
	if (fetch_measures(source, window_s, set, 0, MEASURE_CPU, e) < 0)
		return -1;
	fetch_optional(source, window_s, set);
	return workload_set_decide(set, e);
}

int diagnose_fetch(struct prometheus_session *session, int64_t window_s, struct workload_set *ret_set, struct err *e)
{
	struct gpu_source source;
	workload_set_init(ret_set);
	int rc = gpu_source_open(&source, session, e) < 0 ? -1 : fetch(&source, window_s, ret_set, e);
	progress_clear(&session->progress);
	return rc;
}
