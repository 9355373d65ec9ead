// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_names.h"

#include <string.h>

#include "base/dcgm_names.h"
#include "base/exposition.h"
#include "base/gpu_families.h"
#include "base/num.h"
#include "promql/lexer.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"

static bool next_alternative(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	if (r->rest >= r->end)
		return false;
	size_t len = strspn(r->rest, NAME_CHARACTERS);
	*ret_name = r->rest;
	*ret_len = len;
	r->rest += len + 1; // behind the '|' or the quote
	return true;
}

// Whether the string, without its quotes, contains only names, with '|' between them if `is_regex`.
static bool holds_names(const char *s, size_t len, bool is_regex)
{
	const char *end = s + len;
	for (;; s++) {
		size_t n = strspn(s, NAME_CHARACTERS);
		s += n;
		if (n == 0 || s > end || (s < end && (!is_regex || *s != '|')))
			return false;
		if (s == end)
			return true;
	}
}

// A quoted name of a label ({"a.b"="c"}) is followed by an operator, a quoted name of a metric is not.
static bool is_label(const char *behind)
{
	struct promql_token t = promql_next(&behind);
	return promql_token_is_sign(&t, '=') || promql_token_is_sign(&t, '!');
}

// Reads a string inside braces: the value of a matcher, or a name.
static void read_string(struct lint_metric_names *r, const struct promql_token *t)
{
	bool is_name = r->is_start ? !is_label(r->next) : r->is_name_label && r->is_equal;
	if (is_name && !t->is_open && t->len > 2 && holds_names(t->start + 1, t->len - 2, r->is_regex)) {
		r->rest = t->start + 1;
		r->end = t->start + t->len - 1;
	}
}

static void read_in_braces(struct lint_metric_names *r, const struct promql_token *t)
{
	static const char *const label[] = {"__name__", NULL};
	bool was_start = r->is_start;
	r->is_start = promql_token_is_sign(t, ',');
	if (r->is_start || was_start)
		r->is_name_label = r->is_equal = r->is_regex = false;
	if (promql_token_is_sign(t, '}'))
		r->in_braces = false;
	else if (t->kind == PROMQL_TOKEN_NAME)
		r->is_name_label = was_start && promql_token_is_word(t, label);
	else if (promql_token_is_sign(t, '='))
		r->is_equal = true;
	else if (promql_token_is_sign(t, '!'))
		r->is_name_label = false;
	else if (promql_token_is_sign(t, '~'))
		r->is_regex = true;
	if (t->kind == PROMQL_TOKEN_STRING) {
		r->is_start = was_start;
		read_string(r, t);
		r->is_start = false;
	}
}

bool lint_metric_names_next(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	while (!next_alternative(r, ret_name, ret_len)) {
		struct promql_token t = promql_next(&r->next);
		if (t.kind == PROMQL_TOKEN_END)
			return false;
		if (r->in_braces) {
			read_in_braces(r, &t);
		} else if (promql_token_is_sign(&t, '{')) {
			r->in_braces = r->is_start = true;
		} else if (t.kind == PROMQL_TOKEN_NAME) {
			*ret_name = t.start;
			*ret_len = t.len;
			return true;
		}
	}
	return true;
}

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

// What the exporter serves: names of dcgm-exporter up to 4.8; base/dcgm_names.h has those of 4.9.
static const struct {
	const char *name;
	bool is_dcgm;
	enum metric_type type;
	const char *unit;
} families[] = {
#define ROW(field, name, name_4_9, factor, id, type, kind, scope, unit, ...) {name, (id) != 0, METRIC_##type, unit},
        FAMILIES(ROW)
#undef ROW
        // Fields of DCGM that dcgm-exporter serves when its counters file names them.
        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_GPU_MAX_OP_TEMP", true, METRIC_GAUGE, "C"},
        {"DCGM_FI_DEV_MEM_MAX_OP_TEMP", true, METRIC_GAUGE, "C"},
        {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", true, METRIC_GAUGE, "B/s"},
        {"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", true, METRIC_GAUGE, "B/s"},
        {"DCGM_FI_DRIVER_VERSION", true, METRIC_GAUGE, ""},
        {"DCGM_FI_SYSTEM_DRIVER_VERSION", true, METRIC_GAUGE, ""},
        {"DCGM_FI_PROCESS_NAME", true, METRIC_GAUGE, ""},
        {"DCGM_FI_NVML_VERSION", true, METRIC_GAUGE, ""},
        {"DCGM_FI_CUDA_DRIVER_VERSION", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_NAME", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_SERIAL", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_BRAND", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_COUNT", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_VBIOS_VERSION", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_OEM_INFOROM_VER", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_ECC_INFOROM_VER", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_POWER_INFOROM_VER", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_INFOROM_IMAGE_VER", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_COMPUTE_MODE", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_PERSISTENCE_MODE", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_MIG_MODE", true, METRIC_GAUGE, ""},
        {"DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", true, METRIC_GAUGE, "B/s"},
};

// Fields with a lane or link number at their end: NVLINK_BANDWIDTH_L0, PROF_NVLINK_L3_TX_BYTES, ...
static bool is_numbered(const char *name)
{
	return strncmp(name, "DCGM_FI_DEV_NVLINK_", 19) == 0 || strncmp(name, "DCGM_FI_PROF_NVLINK_L", 21) == 0 ||
	       strncmp(name, "DCGM_FI_DEV_ECC_", 16) == 0 || strncmp(name, "DCGM_FI_PROF_C2C_", 17) == 0;
}

// Names that are often written but never existed, and the name that is meant.
static const struct {
	const char *wrong, *right;
} often_wrong[] = {
        {"DCGM_FI_DEV_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES"},
        {"DCGM_FI_DEV_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"},
        {"DCGM_FI_DEV_SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"},
        {"DCGM_FI_DEV_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"},
        {"DCGM_FI_DEV_GPU_UTILIZATION", "DCGM_FI_DEV_GPU_UTIL"},
        {"DCGM_FI_DEV_MEMORY_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_MEM_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_TEMPERATURE", "DCGM_FI_DEV_GPU_TEMP"},
        {"DCGM_FI_DEV_POWER", "DCGM_FI_DEV_POWER_USAGE"},
};

// A rate stays a rate when dcgm-exporter types it a counter, as NVLINK_BANDWIDTH_TOTAL.
static enum lint_kind kind_of_family(enum metric_type type, const char *unit)
{
	static const struct {
		const char *unit;
		enum lint_kind kind;
	} units[] = {{"B/s", LINT_RATE},  {"1000 KiB/s", LINT_RATE}, {"C", LINT_DEGREES}, {"W", LINT_WATTS},
	             {"%", LINT_PERCENT}, {"0-1", LINT_RATIO},       {"code", LINT_CODE}};
	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (strcmp(units[i].unit, unit) == 0)
			return units[i].kind;
	return type == METRIC_COUNTER ? LINT_COUNTER : LINT_GAUGE;
}

static enum lint_kind kind_of(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(families); i++)
		if (families[i].is_dcgm && strcmp(families[i].name, name) == 0)
			return kind_of_family(families[i].type, families[i].unit);
	return LINT_KIND__COUNT;
}

bool lint_name_ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

enum lint_kind lint_name_kind(const char *name)
{
	enum lint_kind kind = kind_of(name);
	const struct dcgm_name *renamed = dcgm_name_find(name, strlen(name), true);
	if (kind == LINT_KIND__COUNT && renamed) {
		kind = kind_of(renamed->legacy);
		if (kind == LINT_PERCENT && renamed->factor < 1)
			kind = LINT_RATIO;
	}
	return kind;
}

bool lint_name_is_unknown(const char *name, const char **ret_meant)
{
	if (strncmp(name, "DCGM_FI_", 8) != 0 || lint_name_kind(name) != LINT_KIND__COUNT || is_numbered(name))
		return false;
	*ret_meant = NULL;
	for (size_t i = 0; i < COUNT_OF(often_wrong); i++)
		if (strcmp(often_wrong[i].wrong, name) == 0)
			*ret_meant = often_wrong[i].right;
	const char *names[COUNT_OF(families)];
	size_t n = 0;
	for (size_t i = 0; i < COUNT_OF(families); i++)
		if (families[i].is_dcgm)
			names[n++] = families[i].name;
	if (!*ret_meant)
		*ret_meant = num_closest_name(name, names, n);
	return true;
}

// ---- renames ----

#define SAME    true
#define CHANGED false
#define NIM     "NVIDIA NIM"
#define TGI     "TGI"
#define AMD     "AMD's device-metrics-exporter"
#define INTEL   "Intel's xpumanager"
#define SMI     "nvidia_gpu_exporter"
#define GPU     "nvidia_gpu_prometheus_exporter"

// One row per name that is gone. SAME: the new name has the same meaning, so `check --fix` writes it. Histograms and
// counters are listed without the suffix that the exposition adds, unless the name has it in its own documents.
// clang-format off
const struct lint_rename lint_renames[] = {
	// vLLM: vllm/engine/metrics.py (engine V0) and vllm/v1/metrics/loggers.py in the packages of 0.6.6, 0.7.0, 0.8.0 to 0.13.0,
	// and 0.14.1, 0.15.0, 0.16.0, 0.19.1, 0.20.0, 0.24.0, 0.28.0 and 0.33.0; vllm-project/vllm pull requests 12383, 15458, 18354,
	// 18837, 24110, 24245, 29330, 32661, 38709. A deprecated metric is first hidden, which --show-hidden-metrics-for-version
	// undoes, and then removed; the release is the first whose page lacks it by default.
	{"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "vLLM 0.11, which hides the old name (removed in 0.12)", SAME, false},
	{"vllm:gpu_prefix_cache_queries", "vllm:prefix_cache_queries", "vLLM 0.11, which hides the old name (removed in 0.12)", SAME, false},
	{"vllm:gpu_prefix_cache_hits", "vllm:prefix_cache_hits", "vLLM 0.11, which hides the old name (removed in 0.12)", SAME, false},
	{"vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds", "vLLM 0.12, which hides the old name (removed in 0.15)", SAME, false},
	{"vllm:time_in_queue_requests", "vllm:request_queue_time_seconds", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", SAME, false},
	{"vllm:num_requests_swapped", "vllm:num_preemptions_total, because nothing is swapped any more", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:cpu_cache_usage_perc", "vllm:kv_cache_usage_perc, because nothing is swapped any more", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:cpu_prefix_cache_hit_rate", "rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m])", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:gpu_prefix_cache_hit_rate", "rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m])", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:model_forward_time_milliseconds", "vllm:request_prefill_time_seconds and vllm:request_decode_time_seconds", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:model_execute_time_milliseconds", "vllm:request_inference_time_seconds", "vLLM 0.8.3, which hides the old name (removed in 0.9.1)", CHANGED, false},
	{"vllm:avg_prompt_throughput_toks_per_s", "rate(vllm:prompt_tokens_total[1m])", "vLLM 0.7", CHANGED, false},
	{"vllm:avg_generation_throughput_toks_per_s", "rate(vllm:generation_tokens_total[1m])", "vLLM 0.7", CHANGED, false},
	{"vllm:prompt_tokens_recomputed", "vllm:prompt_tokens_by_source_total, whose source local_compute counts the tokens that were computed", "vLLM 0.20", CHANGED, false},
	{"vllm:tokens_total", "rate(vllm:prompt_tokens_total[1m]) + rate(vllm:generation_tokens_total[1m])", "vLLM 0.8, and was never set", CHANGED, false},
	{"vllm:spec_decode_draft_acceptance_rate", "the counters vllm:spec_decode_num_accepted_tokens_total and vllm:spec_decode_num_draft_tokens_total", "vLLM 0.10, and from the V1 engine of earlier releases", CHANGED, false},
	{"vllm:spec_decode_efficiency", "the counters vllm:spec_decode_num_accepted_tokens_total and vllm:spec_decode_num_drafts_total", "vLLM 0.10, and from the V1 engine of earlier releases", CHANGED, false},
	{"vllm:spec_decode_num_emitted_tokens", "the counter vllm:spec_decode_num_accepted_tokens_total", "vLLM 0.10, and from the V1 engine of earlier releases", CHANGED, false},
	// SGLang: sglang/srt/metrics/collector.py (since 0.5.10 observability/metrics_collector.py) in 17 packages of 0.4.4 to 0.5.23.
	{"sglang:time_per_output_token_seconds", "sglang:inter_token_latency_seconds", "SGLang 0.4.5", CHANGED, false},
	{"sglang:num_prefill_infight_queue_reqs", "sglang:num_prefill_inflight_queue_reqs", "SGLang 0.5.2", SAME, false},
	{"sglang:avg_request_queue_latency", "rate(sglang:queue_time_seconds_sum[5m]) / rate(sglang:queue_time_seconds_count[5m])", "SGLang 0.5.3", CHANGED, false},
	{"sglang:queue_time_s", "sglang:queue_time_seconds", "SGLang 0.5.3", SAME, false},
	{"sglang:total_retracted_reqs", "the counter sglang:num_retracted_requests_total of 0.5.8 and later", "SGLang 0.5.3", CHANGED, false},
	{"sglang:gpu_execution_seconds", "rate(sglang:forward_execution_seconds_total[1m])", "SGLang 0.5.11", CHANGED, false},
	{"sglang:num_prefill_prealloc_queue_reqs", "sglang:num_prefill_bootstrap_queue_reqs", "SGLang 0.5.12", SAME, false},
	{"sglang:engine_startup_time", "sglang:startup_time_seconds, which has one series per phase", "SGLang 0.5.17", CHANGED, false},
	{"sglang:engine_load_weights_time", "sglang:startup_time_seconds, which has one series per phase", "SGLang 0.5.17", CHANGED, false},
	// Triton: metrics.cc of TensorRT Inference Server 1 and of Triton 2.
	{"nv_inference_compute_duration_us", "the sum of nv_inference_compute_input_duration_us, nv_inference_compute_infer_duration_us and nv_inference_compute_output_duration_us", "Triton 2", CHANGED, false},
	{"nv_inference_load_ratio", "rate(nv_inference_request_duration_us[1m]) / rate(nv_inference_compute_infer_duration_us[1m])", "Triton 2", CHANGED, false},
	// Endpoint picker: the table "Deprecated series" of llm-d/llm-d-router docs/metrics.md, the deprecation texts in its
	// pkg/epp/metrics/metrics.go, pull request 2826 (removal) and issue 851. 0.9 emits the new names; later releases drop the
	// old ones. Some have more labels under the new name, which an aggregation over all of them does not notice.
	{"inference_extension_scheduler_e2e_duration_seconds", "llm_d_epp_scheduler_e2e_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_extension_plugin_duration_seconds", "llm_d_epp_plugin_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_extension_info", "llm_d_epp_info", "llm-d-router 0.9", SAME, false},
	{"inference_extension_model_rewrite_decisions_total", "llm_d_epp_model_rewrite_decisions_total", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_request_queue_duration_seconds", "llm_d_epp_flow_control_request_queue_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_dispatch_cycle_duration_seconds", "llm_d_epp_flow_control_dispatch_cycle_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_request_enqueue_duration_seconds", "llm_d_epp_flow_control_request_enqueue_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_queue_size", "llm_d_epp_flow_control_queue_size", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_queue_bytes", "llm_d_epp_flow_control_queue_bytes", "llm-d-router 0.9", SAME, false},
	{"inference_extension_flow_control_pool_saturation", "the maximum of llm_d_epp_flow_control_pool_saturation, which has one series per stage after 0.9", "llm-d-router 0.9", CHANGED, false},
	{"inference_extension_prefix_indexer_size", "llm_d_epp_prefix_indexer_size", "llm-d-router 0.9", SAME, false},
	{"inference_extension_prefix_indexer_hit_ratio", "llm_d_epp_prefix_indexer_hit_ratio", "llm-d-router 0.9", SAME, false},
	{"inference_extension_prefix_indexer_hit_bytes", "llm_d_epp_prefix_indexer_hit_bytes", "llm-d-router 0.9", SAME, false},
	{"inference_extension_scheduler_attempts_total", "llm_d_epp_scheduler_attempts_total, whose label pod_name is now endpoint_name", "llm-d-router 0.9", CHANGED, false},
	{"llm_d_inference_scheduler_disagg_decision_total", "llm_d_epp_disagg_decision_total", "llm-d-router 0.9", SAME, false},
	{"llm_d_inference_scheduler_datalayer_poll_errors_total", "llm_d_epp_datalayer_poll_errors_total", "llm-d-router 0.9", SAME, false},
	{"llm_d_inference_scheduler_datalayer_extract_errors_total", "llm_d_epp_datalayer_extract_errors_total", "llm-d-router 0.9", SAME, false},
	{"inference_objective_request_total", "llm_d_epp_request_total", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_error_total", "llm_d_epp_request_error_total", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_duration_seconds", "llm_d_epp_request_duration_seconds", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_sizes", "llm_d_epp_request_size_bytes", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_response_sizes", "llm_d_epp_response_size_bytes", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_input_tokens", "llm_d_epp_request_input_tokens", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_output_tokens", "llm_d_epp_request_output_tokens", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_prompt_cached_tokens", "llm_d_epp_request_cached_tokens", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_running_requests", "llm_d_epp_request_running", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_normalized_time_per_output_token_seconds", "llm_d_epp_request_ntpot_seconds", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_ttft_seconds", "llm_d_epp_request_ttft_seconds", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_tpot_seconds", "llm_d_epp_request_streaming_tpot_seconds", "llm-d-router 0.9", CHANGED, false},
	{"inference_objective_request_predicted_ttft_seconds", "llm_d_epp_request_predicted_ttft_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_objective_request_predicted_tpot_seconds", "llm_d_epp_request_predicted_tpot_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_objective_request_ttft_prediction_duration_seconds", "llm_d_epp_request_ttft_prediction_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_objective_request_tpot_prediction_duration_seconds", "llm_d_epp_request_tpot_prediction_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"inference_objective_request_slo_violation_total", "llm_d_epp_request_slo_violation_total", "llm-d-router 0.9", SAME, false},
	{"inference_objective_inference_request_metric", "llm_d_epp_inference_request_metric", "llm-d-router 0.9", SAME, false},
	{"inference_pool_average_kv_cache_utilization", "llm_d_epp_average_kv_cache_utilization", "llm-d-router 0.9", SAME, false},
	{"inference_pool_average_queue_size", "llm_d_epp_average_queue_size", "llm-d-router 0.9", SAME, false},
	{"inference_pool_average_running_requests", "llm_d_epp_average_running_requests", "llm-d-router 0.9", SAME, false},
	{"inference_pool_ready_pods", "llm_d_epp_ready_endpoints", "llm-d-router 0.9", SAME, false},
	{"inference_pool_per_pod_queue_size", "llm_d_epp_per_endpoint_queue_size, whose label model_server_pod is now model_server_endpoint", "llm-d-router 0.9", CHANGED, false},
	// Endpoint picker, the prefix of development builds before 0.9: llm-d-router pull request 1661 and the same texts.
	{"llm_d_router_epp_flow_control_queue_size", "llm_d_epp_flow_control_queue_size", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_flow_control_queue_bytes", "llm_d_epp_flow_control_queue_bytes", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_flow_control_pool_saturation", "the maximum of llm_d_epp_flow_control_pool_saturation, which has one series per stage after 0.9", "llm-d-router 0.9", CHANGED, false},
	{"llm_d_router_epp_request_total", "llm_d_epp_request_total", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_request_error_total", "llm_d_epp_request_error_total", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_request_duration_seconds", "llm_d_epp_request_duration_seconds", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_average_queue_size", "llm_d_epp_average_queue_size", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_average_kv_cache_utilization", "llm_d_epp_average_kv_cache_utilization", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_average_running_requests", "llm_d_epp_average_running_requests", "llm-d-router 0.9", SAME, false},
	{"llm_d_router_epp_ready_endpoints", "llm_d_epp_ready_endpoints", "llm-d-router 0.9", SAME, false},
	// Endpoint picker of the Gateway API inference extension, when a model was an InferenceModel (pull requests 891 and 1572 of
	// kubernetes-sigs/gateway-api-inference-extension): recorded from 0.5.1 in test/integration/pages. Its releases 1.1 to 1.5
	// have inference_objective_ instead, and the picker of 1.6 has no such metrics. No table pairs these names with the present
	// ones, so a person has to confirm each pair:
	{"inference_model_request_total", "llm_d_epp_request_total", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_request_error_total", "llm_d_epp_request_error_total", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_request_duration_seconds", "llm_d_epp_request_duration_seconds", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_request_sizes", "llm_d_epp_request_size_bytes", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_response_sizes", "llm_d_epp_response_size_bytes", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_input_tokens", "llm_d_epp_request_input_tokens", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_output_tokens", "llm_d_epp_request_output_tokens", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_running_requests", "llm_d_epp_request_running", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_model_normalized_time_per_output_token_seconds", "llm_d_epp_request_ntpot_seconds", "release 1.1 of the Gateway API inference extension", CHANGED, false},
	{"inference_extension_scheduler_plugin_duration_seconds", "llm_d_epp_plugin_duration_seconds, whose label extension_point is what plugin_type was", "release 1.0 of the Gateway API inference extension", CHANGED, false},
	{"inference_extension_request_control_plugin_duration_seconds", "llm_d_epp_plugin_duration_seconds, whose label extension_point is what plugin_type was", "release 1.0 of the Gateway API inference extension", CHANGED, false},
	// Index of the KV cache in the endpoint picker: the same table, and llm-d issue 2536. 0.10 and 0.11 emit both names.
	{"kvcache_index_admissions_total", "llm_d_epp_kv_cache_index_admissions_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_index_evictions_total", "llm_d_epp_kv_cache_index_evictions_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_index_lookup_requests_total", "llm_d_epp_kv_cache_index_lookup_requests_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_index_lookup_hits_total", "llm_d_epp_kv_cache_index_lookup_hits_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_index_max_pod_hit_count_total", "llm_d_epp_kv_cache_index_max_pod_hit_count_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_index_lookup_latency_seconds", "llm_d_epp_kv_cache_index_lookup_latency_seconds", "llm-d-router 0.10", SAME, false},
	{"kvcache_kvevents_dedup_removed_hashes_suppressed_total", "llm_d_epp_kv_cache_events_dedup_removed_hashes_suppressed_total", "llm-d-router 0.10", SAME, false},
	{"kvcache_kvevents_dedup_removed_hashes_forwarded_total", "llm_d_epp_kv_cache_events_dedup_removed_hashes_forwarded_total", "llm-d-router 0.10", SAME, false},
	// dcgm-exporter: pull requests 261 and 357, issue 354; dcgm_fields.h of DCGM. The throughput was KB/s, and is bytes/s
	// under the new name. What dcgm-exporter 4.9 renames is in base/dcgm_names.h.
	{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM 3.3", SAME, false},
	{"DCGM_FI_EXP_CLOCK_THROTTLE_REASONS_COUNT", "DCGM_EXP_CLOCK_EVENTS_COUNT", "dcgm-exporter 3.3.5", SAME, false},
	{"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "DCGM_FI_PROF_PCIE_TX_BYTES, in bytes per second instead of KB per second", "dcgm-exporter 3.3.7", CHANGED, false},
	{"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", "DCGM_FI_PROF_PCIE_RX_BYTES, in bytes per second instead of KB per second", "dcgm-exporter 3.3.7", CHANGED, false},
	// Other programs that serve what vLLM serves: NIM for LLMs (its "Observability" page) and TGI (docs/source/reference/metrics).
#define EQUIVALENT(name, of, who) {name, of, who, CHANGED, true},
	EQUIVALENT("num_requests_running", "vllm:num_requests_running", NIM)
	EQUIVALENT("num_requests_waiting", "vllm:num_requests_waiting", NIM)
	EQUIVALENT("gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", NIM)
	EQUIVALENT("prompt_tokens_total", "vllm:prompt_tokens_total", NIM)
	EQUIVALENT("generation_tokens_total", "vllm:generation_tokens_total", NIM)
	EQUIVALENT("time_to_first_token_seconds", "vllm:time_to_first_token_seconds", NIM)
	EQUIVALENT("time_per_output_token_seconds", "vllm:inter_token_latency_seconds", NIM)
	EQUIVALENT("e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds", NIM)
	EQUIVALENT("request_prompt_tokens", "vllm:request_prompt_tokens", NIM)
	EQUIVALENT("request_generation_tokens", "vllm:request_generation_tokens", NIM)
	EQUIVALENT("tgi_queue_size", "vllm:num_requests_waiting", TGI)
	EQUIVALENT("tgi_batch_current_size", "vllm:num_requests_running", TGI)
	EQUIVALENT("tgi_request_queue_duration", "vllm:request_queue_time_seconds", TGI)
	EQUIVALENT("tgi_request_duration", "vllm:e2e_request_latency_seconds", TGI)
	EQUIVALENT("tgi_request_mean_time_per_token_duration", "vllm:inter_token_latency_seconds", TGI)
	EQUIVALENT("tgi_request_input_length", "vllm:request_prompt_tokens", TGI)
	EQUIVALENT("tgi_request_generated_tokens", "vllm:request_generation_tokens", TGI)
	// Other exporters of GPUs, with the names that AMD's has with its usual prefix.
#define ROW(name, legacy, conversion, who) {name, legacy, who, CHANGED, true},
	GPU_NAMES(ROW)
	{NULL, NULL, NULL, SAME, false},
};
// clang-format on

// Suffixes that the client libraries append to the name of a histogram or a counter.
static const char *const suffixes[] = {"", "_bucket", "_sum", "_count", "_total", "_created"};

// The number of characters of `name` that are the old name; 0: it is a different name. Ray puts "ray_" before the names
// of vLLM, AMD's exporter may put "amd_" before its own, and some builds convert the colon.
static size_t match_old(const char *old, const char *name, size_t len)
{
	size_t skip = len > 8 && memcmp(name, "ray_vllm", 8) == 0   ? 4
	              : len > 8 && memcmp(name, "amd_gpu_", 8) == 0 ? 4
	                                                            : 0;
	size_t n = strlen(old);
	if (len - skip < n)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (name[skip + i] != old[i] && !(old[i] == ':' && name[skip + i] == '_'))
			return 0;
	return skip + n;
}

const struct lint_rename *lint_rename_find(const char *name, size_t len, size_t *ret_suffix_len)
{
	*ret_suffix_len = 0;
	for (size_t i = 0; lint_renames[i].old_name; i++) {
		size_t n = match_old(lint_renames[i].old_name, name, len);
		for (size_t k = 0; n > 0 && k < COUNT_OF(suffixes); k++)
			if (strlen(suffixes[k]) == len - n && memcmp(name + n, suffixes[k], len - n) == 0) {
				*ret_suffix_len = len - n;
				return &lint_renames[i];
			}
	}
	return NULL;
}

// Whether the query names the metric name[0..len), with or without a suffix.
static bool query_names(const char *query, const char *name, size_t len)
{
	struct lint_metric_names names = {.next = query};
	const char *found;
	size_t found_len;
	while (lint_metric_names_next(&names, &found, &found_len))
		if (found_len >= len && memcmp(found, name, len) == 0)
			return true;
	return false;
}

const struct lint_rename *lint_rename_wanted(const char *query, const char *name, size_t len, size_t *ret_suffix_len)
{
	const struct lint_rename *row = lint_rename_find(name, len, ret_suffix_len);
	if (!row ||
	    ((row->has_same_meaning || row->is_equivalent) && query_names(query, row->new_name, strlen(row->new_name))))
		return NULL;
	return row;
}

const struct dcgm_name *lint_rename_of_4_9(const char *query, const char *name, size_t len)
{
	const struct dcgm_name *row = dcgm_name_find(name, len, false);
	return row && !query_names(query, row->name_4_9, strlen(row->name_4_9)) ? row : NULL;
}
