// SPDX-License-Identifier: Apache-2.0
#include "insight/verdict_query.h"

#include <inttypes.h>

#include "base/buf.h"
#include "insight/gpu_series.h"
#include "insight/gpu_use_query.h"
#include "insight/training_ranks.h"

#define SUBQUERY_STEPS  20 // steps of a window
#define SUBQUERY_STEP_S 1  // the least

// As gpu:owner:info of the rules: with honor_labels, the labels are pod and namespace, without it exported_pod and
// exported_namespace.
#define HOLDERS                                                                                                        \
	"group by (namespace, pod) (label_replace(label_replace(DCGM_FI_DEV_FB_USED{exported_pod!=\"\"}, \"pod\", "    \
	"\"$1\", \"exported_pod\", \"(.+)\"), \"namespace\", \"$1\", \"exported_namespace\", \"(.+)\") or "            \
	"DCGM_FI_DEV_FB_USED{exported_pod=\"\",pod!=\"\"})"

static int64_t step_of(int64_t window_s)
{
	int64_t step_s = window_s / SUBQUERY_STEPS;
	return step_s < SUBQUERY_STEP_S ? SUBQUERY_STEP_S : step_s;
}

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
			buf_printf(out, "%" PRId64 "s", step_of(window_s));
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
	const struct verdict_measure_info *info = verdict_measure_info(m);
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

void verdict_query_owners(struct buf *out)
{
	buf_puts(out, "group by (");
	for (const char *const *label = verdict_query_owner_labels(); *label; label++)
		buf_printf(out, "%s%s", label == verdict_query_owner_labels() ? "" : ", ", *label);
	buf_puts(out, ") (label_replace(label_replace(" OWNED " unless" SCRAPED NAMED("pod")
	                      NAMED("container") " or label_replace(" OWNED " and" SCRAPED
	                                         ", \"is\", \"exporter\", \"\", \"\"))");
}

const char *const *verdict_query_owner_labels(void)
{
	static const char *const labels[] = {"UUID",     "GPU_I_ID",  "gpu", "modelName",          "Hostname",
	                                     "hostname", "namespace", "pod", "exported_namespace", "exported_pod",
	                                     "is",       NULL};
	return labels;
}

void verdict_query_pod_labels(struct buf *out)
{
	size_t n;
	const struct training_kind *kinds = training_kinds(&n);
	buf_puts(out, "group by (namespace, pod");
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, ", ");
		gpu_label_name(out, kinds[i].job_label);
		for (size_t k = 0; k < TRAINING_RANK_LABELS_MAX && kinds[i].rank_labels[k]; k++) {
			buf_puts(out, ", ");
			gpu_label_name(out, kinds[i].rank_labels[k]);
		}
	}
	buf_puts(out, ") (kube_pod_labels and on (namespace, pod) " HOLDERS ")");
}
