// SPDX-License-Identifier: Apache-2.0
// The PromQL of the table of verdicts: measures over the series of the exporters, and rules that evaluate the table.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "insight/gpu_series.h"
#include "insight/gpu_use_query.h"
#include "insight/training_ranks.h"
#include "insight/verdict.h"

#define SUBQUERY_STEPS  20         // steps of a window
#define SUBQUERY_STEP_S INT64_C(1) // the least

// As gpu:owner:info of the rules: with honor_labels, the labels are pod and namespace, without it exported_pod and
// exported_namespace.
#define HOLDERS                                                                                                        \
	"group by (namespace, pod) (label_replace(label_replace(DCGM_FI_DEV_FB_USED{exported_pod!=\"\"}, \"pod\", "    \
	"\"$1\", \"exported_pod\", \"(.+)\"), \"namespace\", \"$1\", \"exported_namespace\", \"(.+)\") or "            \
	"DCGM_FI_DEV_FB_USED{exported_pod=\"\",pod!=\"\"})"

#define MEAN(family) "avg_over_time(" family "[$W])"

// Replaces $W, $L, $S and $B; a dollar of label_replace is followed by a digit.
static void put_windows(struct buf *out, const char *expr, int64_t window_s)
{
	for (const char *c = expr; *c; c++) {
		if (*c == '$' && c[1] == 'W')
			buf_printf(out, "%" PRId64 "s", window_s);
		else if (*c == '$' && c[1] == 'L')
			buf_printf(out, "%" PRId64 "s", VERDICT_LONG_WINDOWS * window_s);
		else if (*c == '$' && c[1] == 'S')
			buf_printf(out, "%" PRId64 "s",
			           window_s < SUBQUERY_STEPS ? SUBQUERY_STEP_S : window_s / SUBQUERY_STEPS);
		else if (*c == '$' && c[1] == 'B')
			put_windows(out, GPU_BUSY(MEAN), window_s);
		else {
			buf_putc(out, *c);
			continue;
		}
		c++;
	}
}

void verdict_query_measure(struct buf *out, enum verdict_measure m, int64_t window_s)
{
	const struct verdict_measure_info *info = &verdict_measures[m];
	if (info->scope == SCOPE_POD)
		buf_puts(out, "(");
	put_windows(out, info->expr, window_s);
	if (info->scope == SCOPE_POD)
		buf_puts(out, ") and on (namespace, pod) " HOLDERS);
}

// The pod of a device is that of its exporter when the name of the pod or of its container says so, or when Prometheus
// scrapes that pod: `up` has the labels of the target alone. A sidecar names the container that uses the GPU.
#define OWNED                                                                                                          \
	"(DCGM_FI_DEV_FB_USED" GPU_INSTANCE                                                                            \
	" or DCGM_FI_DEV_FB_USED unless on (UUID) DCGM_FI_DEV_FB_USED" GPU_INSTANCE ")"
#define SCRAPED      " on (instance, namespace, pod, container) up{pod!=\"\"}"
#define NAMED(label) ", \"is\", \"exporter\", \"" label "\", \"" GPU_EXPORTER_PODS "\")"

const char *const verdict_owner_labels[] = {"UUID",     "GPU_I_ID",  "gpu", "modelName",          "Hostname",
                                            "hostname", "namespace", "pod", "exported_namespace", "exported_pod",
                                            "is",       NULL};

void verdict_query_owners(struct buf *out)
{
	buf_puts(out, "group by (");
	for (size_t i = 0; verdict_owner_labels[i]; i++)
		buf_printf(out, "%s%s", i ? ", " : "", verdict_owner_labels[i]);
	buf_puts(out, ") (label_replace(label_replace(" OWNED " unless" SCRAPED NAMED("pod")
	                      NAMED("container") " or label_replace(" OWNED " and" SCRAPED
	                                         ", \"is\", \"exporter\", \"\", \"\"))");
}

void verdict_query_pod_labels(struct buf *out)
{
	buf_puts(out, "group by (namespace, pod");
	for (size_t i = 0; i < training_n_kinds; i++) {
		const struct training_kind *kind = &training_kinds[i];
		buf_puts(out, ", ");
		gpu_label_name(out, kind->job_label);
		for (size_t k = 0; k < TRAINING_RANK_LABELS_MAX && kind->rank_labels[k]; k++) {
			buf_puts(out, ", ");
			gpu_label_name(out, kind->rank_labels[k]);
		}
	}
	buf_puts(out, ") (kube_pod_labels and on (namespace, pod) " HOLDERS ")");
}

#define EXPR_BYTES_MAX ((size_t)64 * 1024)
#define RULE_COLUMNS   118
#define PAGE_COLUMNS   120
#define WORKLOAD       "(wl_namespace, wl_pod)"

// ---- the rules ----

static const char *const folds[] = {[FOLD_AVG] = "avg", [FOLD_MAX] = "max", [FOLD_MIN] = "min"};

// Breaks lines at blanks, before `columns`; each starts with `indent`. A line break of the text stays.
static void put_wrapped(struct buf *out, const char *text, const char *indent, size_t columns)
{
	size_t column = 0;
	for (const char *word = text; *word;) {
		size_t len = strcspn(word, " \n");
		if (column > 0 && column + 1 + len > columns) {
			buf_putc(out, '\n');
			column = 0;
		}
		buf_puts(out, column ? " " : indent);
		column += column ? 1 : strlen(indent);
		buf_put(out, word, len);
		column += len;
		word += len + strspn(word + len, " ");
		if (*word == '\n') {
			buf_putc(out, '\n');
			column = 0;
			word++;
		}
	}
}

static void put_rule(struct buf *out, const char *record, const char *expr)
{
	buf_printf(out, "  - record: %s\n    expr: >-\n", record);
	put_wrapped(out, expr, "      ", RULE_COLUMNS); // as a folded block, where a line break is a space
	buf_putc(out, '\n');
}

static void put_measure_name(struct buf *out, enum verdict_measure m)
{
	buf_printf(out, "workload:%s:diagnosed", verdict_measures[m].name);
}

// How the series of each scope become those of workloads.
static const struct {
	const char *open, *close;
} joins[] = {
        [SCOPE_DEVICE] = {"gpu:owner:info * on (UUID, GPU_I_ID) group_left () (", "))"},
        [SCOPE_GPU] = {"gpu:owner:info * on (UUID) group_left () (", "))"},
        [SCOPE_NODE] = {"gpu:owner:info * on (UUID, GPU_I_ID) group_left () (0 * label_replace(label_replace("
                        "gpu:memory_used:bytes, \"nodename\", \"$1\", \"hostname\", \"(.+)\"), \"nodename\", "
                        "\"$1\", \"Hostname\", \"(.+)\") + on (nodename) group_left () (",
                        ")))"},
        [SCOPE_POD] = {"label_replace(label_replace(", ", \"wl_pod\", \"$1\", \"pod\", \"(.+)\"), \"wl_namespace\", "
                                                       "\"$1\", \"namespace\", \"(.+)\"))"},
};

static void put_measure(struct buf *expr, enum verdict_measure m, int64_t window_s)
{
	const struct verdict_measure_info *info = &verdict_measures[m];
	buf_printf(expr, "%s by " WORKLOAD " (", folds[info->fold]);
	buf_puts(expr, joins[info->scope].open);
	verdict_query_measure(expr, m, window_s);
	buf_puts(expr, joins[info->scope].close);
}

// The workloads for which the terms of a row are true.
static void put_row(struct buf *expr, const struct verdict_row *row)
{
	if (row->n_terms == 0)
		buf_puts(expr, "gpu:owner:info");
	for (size_t i = 0; i < row->n_terms; i++) {
		const struct verdict_term *t = &row->terms[i];
		if (i > 0)
			buf_printf(expr, " %s on " WORKLOAD " ", t->op == OP_NOT_AT_LEAST ? "unless" : "and");
		put_measure_name(expr, t->measure);
		buf_printf(expr, " %s %.12g", verdict_op_signs[t->op], t->limit);
	}
}

static void put_verdicts(struct buf *expr)
{
	for (size_t i = 0; i < verdict_n_rows; i++) {
		buf_printf(expr, "%slabel_replace(group by " WORKLOAD " (", i ? " or on " WORKLOAD " " : "");
		put_row(expr, &verdict_rows[i]);
		buf_printf(expr, "), \"verdict\", \"%s\", \"\", \"\")", verdict_infos[verdict_rows[i].verdict].name);
	}
}

// One rule per verdict, so that each can be silenced, routed or given its own `for`.
static void put_alert(struct buf *out, const struct verdict_info *info)
{
	struct buf text;
	buf_init(&text, EXPR_BYTES_MAX);
	buf_printf(&text, "%c%s. %s", toupper((unsigned char)info->summary[0]), info->summary + 1, info->advice);
	buf_printf(out,
	           "  - alert: WorkloadDiagnosis\n"
	           "    expr: 'workload:verdict:info{verdict=\"%s\"}'\n"
	           "    for: 15m\n"
	           "    keep_firing_for: 5m\n"
	           "    labels: {severity: info, verdict: %s}\n"
	           "    annotations:\n"
	           "      summary: '{{ $labels.wl_namespace }}/{{ $labels.wl_pod }}: %s'\n"
	           "      description: >-\n",
	           info->name, info->name, info->name);
	put_wrapped(out, buf_str(&text), "        ", RULE_COLUMNS);
	buf_printf(out,
	           "\n      runbook: docs/operations.md#workloaddiagnosis\n"
	           "      diagnosis: docs/diagnosis.md#%s\n",
	           info->name);
	out->failed |= text.failed;
	buf_done(&text);
}

static void put_alerts(struct buf *out)
{
	buf_puts(out, "- name: gpu-diagnosis-alerts\n"
	              "  interval: 1m\n"
	              "  rules:\n");
	for (int v = 0; v < VERDICT__COUNT; v++)
		if (verdict_infos[v].level != LEVEL_OK)
			put_alert(out, &verdict_infos[v]);
}

void verdict_rules_print(struct buf *out, int64_t window_s)
{
	struct buf expr, name;
	buf_init(&expr, EXPR_BYTES_MAX);
	buf_init(&name, EXPR_BYTES_MAX);
	buf_puts(out,
	         "# SPDX-License-Identifier: Apache-2.0\n"
	         "# Generated from the table of gpuscale diagnose (scripts/diagnosis-files --update): the measures "
	         "of each workload\n"
	         "# over 5 minutes (idle: over 30), its one verdict, and an alert per verdict. Needs gpu.yaml.\n"
	         "groups:\n"
	         "- name: gpu-diagnosis\n"
	         "  interval: 15s\n"
	         "  rules:\n");
	for (int m = 0; m < MEASURE__COUNT; m++) {
		buf_reset(&expr);
		buf_reset(&name);
		put_measure_name(&name, (enum verdict_measure)m);
		put_measure(&expr, (enum verdict_measure)m, window_s);
		put_rule(out, buf_str(&name), buf_str(&expr));
	}
	buf_reset(&expr);
	put_verdicts(&expr);
	buf_puts(out, "  # The first condition that holds.\n");
	put_rule(out, "workload:verdict:info", buf_str(&expr));
	put_alerts(out);
	out->failed |= expr.failed || name.failed;
	buf_done(&expr);
	buf_done(&name);
}

// ---- the page of documentation ----

// clang-format off
static const char *const losses[] = {
	[LOSS_NONE]  = "0: no measure shows how much is lost.",
	[LOSS_ALL]   = "the whole price of the GPUs.",
	[LOSS_SM]    = "the price times the share of time in which the SMs were not active.",
	[LOSS_CLOCK] = "the price times the share by which the clock is below its model's median; unknown without clocks.",
};
// clang-format on

static void put_limit(struct buf *out, const struct verdict_measure_info *info, double limit)
{
	if (info->unit == UNIT_RATIO)
		buf_printf(out, "%.12g %%", 100 * limit);
	else if (info->unit == UNIT_BYTES_PER_SECOND)
		buf_printf(out, "%.12g GB/s", limit / 1e9);
	else
		buf_printf(out, "%.12g", limit);
}

static void put_condition(struct buf *out, const struct verdict_row *row)
{
	if (row->n_terms == 0)
		buf_puts(out, "nothing else matches");
	for (size_t i = 0; i < row->n_terms; i++) {
		const struct verdict_term *t = &row->terms[i];
		const struct verdict_measure_info *info = &verdict_measures[t->measure];
		buf_printf(out, "%s%s`%s` %s ", i ? ", " : "", t->op == OP_NOT_AT_LEAST ? "not " : "", info->name,
		           verdict_op_signs[t->op]);
		put_limit(out, info, t->limit);
	}
}

static void put_section(struct buf *out, enum verdict v)
{
	const struct verdict_info *info = &verdict_infos[v];
	buf_printf(out, "\n### %s\n\n", info->name);
	put_wrapped(out, info->meaning, "", PAGE_COLUMNS);
	buf_puts(out, "\n\n**Evidence:** ");
	const char *sep = "";
	for (size_t i = 0; i < verdict_n_rows; i++)
		if (verdict_rows[i].verdict == v) {
			buf_puts(out, sep);
			put_condition(out, &verdict_rows[i]);
			sep = "; or\n";
		}
	buf_printf(out, ".\n\n**Do:** %s\n\n", info->advice);
	put_wrapped(out, info->action, "", PAGE_COLUMNS);
	buf_printf(out, "\n**Cost per hour:** %s\n", losses[info->loss]);
}

static void put_measures(struct buf *out)
{
	static const char *const scopes[] = {[SCOPE_DEVICE] = "GPU or MIG instance",
	                                     [SCOPE_GPU] = "GPU",
	                                     [SCOPE_POD] = "pod",
	                                     [SCOPE_NODE] = "node"};
	static const char *const fold_names[] = {
	        [FOLD_AVG] = "average", [FOLD_MAX] = "largest", [FOLD_MIN] = "smallest"};
	buf_puts(out, "\n## The measures\n\nThe recording rule `workload:NAME:diagnosed` has the measure `NAME` of "
	              "each pod.\n"
	              "`gpuscale diagnose --print rules` shows the query of each.\n\n"
	              "| measure | in the evidence | measured for each | value of a pod |\n|---|---|---|---|\n");
	for (int m = 0; m < MEASURE__COUNT; m++) {
		const struct verdict_measure_info *info = &verdict_measures[m];
		bool is_folded = info->scope != SCOPE_POD;
		buf_printf(out, "| `%s` | %s | %s | %s%s |\n", info->name, info->label, scopes[info->scope],
		           is_folded ? "the " : "", is_folded ? fold_names[info->fold] : "");
	}
}

void verdict_page_print(struct buf *out)
{
	buf_puts(out, "## The table\n\nThe first row whose conditions all hold gives the verdict. A condition on a "
	              "missing measure does not hold.\n\n| # | conditions | verdict | level | summary |\n"
	              "|---|---|---|---|---|\n");
	for (size_t i = 0; i < verdict_n_rows; i++) {
		const struct verdict_info *info = &verdict_infos[verdict_rows[i].verdict];
		buf_printf(out, "| %zu | ", i + 1);
		put_condition(out, &verdict_rows[i]);
		buf_printf(out, " | [%s](#%s) | %s | %s |\n", info->name, info->name, verdict_level_names[info->level],
		           info->summary);
	}
	buf_puts(out, "\n## The verdicts\n");
	for (int v = 0; v < VERDICT__COUNT; v++)
		put_section(out, (enum verdict)v);
	put_measures(out);
}
