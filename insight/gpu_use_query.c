// SPDX-License-Identifier: Apache-2.0
#include "insight/gpu_use_query.h"

#include <inttypes.h>

#include "base/buf.h"
#include "insight/gpu_series.h"
#include "promql/confine.h"

#define HOLDER "namespace, pod, exported_namespace, exported_pod"

// Each pod that uses a device, and its share: a device with several pods is divided evenly. A device without a pod has
// one series, of the pod of its exporter or of none.
#define SHARES(selector)                                                                                               \
	"group by (" GPU_DEVICE ", modelName, " HOLDER ") (DCGM_FI_DEV_FB_USED" selector ") / on (" GPU_DEVICE         \
	") group_left () count by (" GPU_DEVICE ") (group by (" GPU_DEVICE ", " HOLDER                                 \
	") (DCGM_FI_DEV_FB_USED" selector "))"

// As gpu:priced_share:ratio of the rules.
static const char allocated[] =
        "(" SHARES(GPU_WHOLE) " unless on (UUID) DCGM_FI_DEV_FB_USED" GPU_INSTANCE
                              " or " SHARES(GPU_INSTANCE) " * on (" GPU_DEVICE ") group_left () " GPU_INSTANCE_SHARE
                                                          ")";

#define BUSY "(" GPU_BUSY(GPU_NOW) ")"
#define SM   "(" GPU_BY_DEVICE(GPU_SM) ")"
#define IDLE "(1 - " BUSY ")"
// The limits are those of gpu:fake_load:ratio of the rules.
#define FAKE "((" BUSY " - on (" GPU_DEVICE ") " SM " > 0.2) and on (" GPU_DEVICE ") (" SM " < 0.3))"

#define TIMES(factor) " * on (" GPU_DEVICE ") group_left () " factor

// The factors of `allocated`.
// clang-format off
static const char *const factors[] = {
	[GPU_ALLOCATED] = "",
	[GPU_IDLE]      = TIMES(IDLE),
	[GPU_FAKE]      = TIMES(FAKE),
	[GPU_MEASURED]  = TIMES("(" IDLE " >= bool 0)"),
	// The power is that of the whole GPU, which some exporters repeat for each instance.
	[GPU_ENERGY]    = " * on (UUID) group_left () (max by (UUID) (DCGM_FI_DEV_POWER_USAGE))",
};
// clang-format on
_Static_assert(sizeof factors / sizeof factors[0] == GPU_MEASURE__COUNT, "one expression per measure");

// A range of one second less than the minutes: exactly `steps` evaluations of the subquery, whether the server counts
// the start of a range (Prometheus 2) or not (Prometheus 3).
static int64_t range_s(int64_t steps)
{
	return steps * GPU_USE_STEP_S - 1;
}

// Which pod it is, as gpu:owner:info of the rules: with honor_labels, the labels are pod and namespace, without it
// exported_pod and exported_namespace. Renamed once, outside the sum over time, because label_replace() is slow.
#define EXPORTER    "\"" GPU_EXPORTER_PODS "\""
#define RENAME_OPEN "label_replace(label_replace(label_replace(label_replace(label_replace(label_replace(label_replace("
#define RENAME_CLOSE                                                                                                   \
	", \"wl_pod\", \"$1\", \"pod\", \"(.+)\"), \"wl_pod\", \"\", \"pod\", " EXPORTER                               \
	"), \"wl_pod\", \"$1\", \"exported_pod\", \"(.+)\"), \"wl_namespace\", \"$1\", \"namespace\", \"(.+)\")"       \
	", \"wl_namespace\", \"\", \"pod\", \"\"), \"wl_namespace\", \"\", \"pod\", " EXPORTER                         \
	"), \"wl_namespace\", \"$1\", \"exported_namespace\", \"(.+)\")"

static void put_sum(struct buf *out, const char *factor, const char *part, int64_t steps)
{
	buf_printf(out,
	           "sum by (modelName, wl_namespace%s%s) (" RENAME_OPEN "sum by (modelName, " HOLDER
	           ") (sum_over_time((%s%s)[%" PRId64 "s:%ds]))" RENAME_CLOSE ")",
	           part ? ", " : "", part ? part : "", allocated, factor, range_s(steps), GPU_USE_STEP_S);
}

// The last value of the label of each pod. kube_pod_labels has a series for every pod.
static void put_label_values(struct buf *out, const char *label, int64_t steps)
{
	buf_printf(out,
	           "(group by (wl_namespace, wl_pod, %s) (topk by (wl_namespace, wl_pod) (1, " RENAME_OPEN
	           "max by (" HOLDER ", %s) (max_over_time(timestamp(kube_pod_labels{%s!=\"\"})[%" PRId64
	           "s:%ds]))" RENAME_CLOSE ")))",
	           label, label, label, range_s(steps), GPU_USE_STEP_S);
}

void gpu_use_query(struct buf *out, enum gpu_measure measure, const struct gpu_use_parts *parts, int64_t steps)
{
	const char *label = parts->label;
	buf_printf(out, "%d * ", GPU_USE_STEP_S);
	if (!label) {
		put_sum(out, factors[measure], parts->by_pod ? GPU_USE_POD : NULL, steps);
		return;
	}
	buf_printf(out, "sum by (modelName, wl_namespace, %s) (", label);
	put_sum(out, factors[measure], GPU_USE_POD, steps);
	buf_printf(out, " * on (wl_namespace, wl_pod) group_left (%s) ", label);
	put_label_values(out, label, steps);
	buf_puts(out, " or ");
	put_sum(out, factors[measure], GPU_USE_POD, steps);
	buf_puts(out, " unless on (wl_namespace, wl_pod) ");
	put_label_values(out, label, steps);
	buf_puts(out, ")");
}

#define STRING(x)    STRING_OF(x)
#define STRING_OF(x) #x
#define WORKS        " >= " STRING(GPU_IDLE_BELOW_PERCENT)
// Each family shows work: SM_ACTIVE hides a kernel that waits.
#define WORKING(OF, range)                                                                                             \
	"(" OF(GPU_UTIL, range) WORKS " or " OF(GPU_SM, range) " * 100" WORKS                                          \
	                                                       " or " OF(GPU_ENGINE, range) " * 100" WORKS ")"
#define PEAK(family, range)  GPU_BY_DEVICE("max_over_time(" family range ")")
#define VALUE(family, range) family

// A device counts when its use was measured throughout, for the same holder: then the window has a value at nearly
// every step. Nothing is known of what it did while its exporter was gone, or served none of the families of its use.
#define STEPS_OF_IDLE 20
// By Prometheus's own labels, one exporter is one job and instance.
#define DOUBTFUL                                                                                                       \
	" unless on (UUID) (count by (UUID) (count by (UUID, job, instance) (DCGM_FI_DEV_FB_USED)) > 1)"               \
	" unless on (UUID) (DCGM_FI_DEV_FB_USED and on (job, instance) (count by (job, instance) "                     \
	"(DCGM_FI_DEV_FB_USED) > " STRING(GPU_SERIES_MAX) "))"
static void put_idle_devices(struct buf *out, int64_t for_s, bool are_trusted)
{
	int64_t step_s = for_s / STEPS_OF_IDLE < 1                ? 1
	                 : for_s / STEPS_OF_IDLE > GPU_USE_STEP_S ? GPU_USE_STEP_S
	                                                          : for_s / STEPS_OF_IDLE;
	buf_printf(out,
	           "((%s) and on (" GPU_DEVICE ", " HOLDER ") (DCGM_FI_DEV_FB_USED offset %" PRId64
	           "s) and on (" GPU_DEVICE ", " HOLDER ") (count_over_time((group by (" GPU_DEVICE ", " HOLDER
	           ") (" GPU_UTIL " or " GPU_SM " or " GPU_ENGINE "))[%" PRId64 "s:%" PRId64 "s]) >= %" PRId64
	           ") unless on (" GPU_DEVICE ") " WORKING(PEAK, "[%" PRId64 "s]") "%s)",
	           allocated, for_s, for_s, step_s, for_s / step_s * 9 / 10 - 1, for_s, for_s, for_s,
	           are_trusted ? DOUBTFUL : "");
}

static void put_idle_query(struct buf *out, enum gpu_idle what, int64_t for_s, int64_t lookback_s, bool are_trusted)
{
	const char *fold = what == GPU_IDLE_COUNT ? "sum" : "max";
	buf_printf(out, "%s by (modelName, wl_namespace, wl_pod) (" RENAME_OPEN "%s by (modelName, " HOLDER ") (", fold,
	           fold);
	put_idle_devices(out, for_s, are_trusted);
	if (what == GPU_IDLE_LAST_BUSY)
		buf_printf(out,
		           " * 0 + on (" GPU_DEVICE ") group_left () max by (" GPU_DEVICE
		           ") (max_over_time(timestamp" WORKING(VALUE, ) "[%" PRId64 "s:%ds]))",
		           lookback_s, GPU_USE_STEP_S);
	if (what == GPU_IDLE_FIRST_SEEN)
		buf_printf(out,
		           " * 0 + on (" GPU_DEVICE ", " HOLDER ") group_left () min by (" GPU_DEVICE ", " HOLDER
		           ") (min_over_time(timestamp(DCGM_FI_DEV_FB_USED)[%" PRId64 "s:%ds]))",
		           lookback_s, GPU_USE_STEP_S);
	buf_puts(out, ")" RENAME_CLOSE ")");
}

int gpu_idle_query(struct buf *out, enum gpu_idle what, int64_t for_s, int64_t lookback_s, const char *matchers,
                   struct err *e)
{
	struct buf all;
	if (!matchers) {
		put_idle_query(out, what, for_s, lookback_s, false);
		return 0;
	}
	buf_init(&all, out->max);
	put_idle_query(&all, what, for_s, lookback_s, true);
	int rc = confine_add_matchers(out, buf_str(&all), matchers, e);
	buf_done(&all);
	return rc;
}

void gpu_count_query(struct buf *out, int64_t steps)
{
	buf_printf(out,
	           "count by (modelName) (group by (UUID, modelName) (last_over_time(DCGM_FI_DEV_FB_USED[%" PRId64
	           "s])))",
	           range_s(steps));
}

void gpu_label_name(struct buf *out, const char *label)
{
	buf_puts(out, "label_");
	for (const char *c = label; *c; c++) {
		bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
		buf_putc(out, is_word ? *c : '_');
	}
}
