// SPDX-License-Identifier: Apache-2.0
// The queries and the policies of the engines of advise.h.
#include "cli/gpu/advise.h"
#include "cli/term/cli.h"

#define REQUEST_WINDOW "30m"
#define BREAK          "\n          "

const struct advise_engine_info advise_engines[ADVISE_ENGINE__COUNT] = {
        // clang-format off
	[ADVISE_VLLM]   = {"vLLM",   "vllm:num_requests_waiting",          "tokens",               true,  "llm-queue"},
	[ADVISE_SGLANG] = {"SGLang", "sglang:num_queue_reqs",              "tokens",               true,  "sglang-queue"},
	[ADVISE_TRITON] = {"Triton", "nv_inference_pending_request_count", "seconds of inference", true,  "triton-queue"},
	[ADVISE_TGI]    = {"TGI",    "tgi_queue_size",                     "tokens",               true,  "sm-active"},
	[ADVISE_GPU]    = {"GPU",    "DCGM_FI_PROF_SM_ACTIVE",             "busy GPUs",            false, "sm-active"},
        // clang-format on
};

// In these, '@' stands for the matchers of the workload, '#' for a window, '|' for the end of a line.
static const struct {
	const char *work;                    // a second
	const char *waiting, *growth, *done; // requests: in the queue, its growth a second, those that ended a second
	const char *guess;                   // work of a request while none ended
	const char *queue_time;              // histogram in seconds
} queries[ADVISE_ENGINE__COUNT] = {
        [ADVISE_VLLM] = {"sum(rate(vllm:prompt_tokens_total{@}[#]))|+ sum(rate(vllm:generation_tokens_total{@}[#]))",
                         "sum(vllm:num_requests_waiting{@})", "sum(deriv(vllm:num_requests_waiting{@}[#]))",
                         "sum(rate(vllm:request_success_total{@}[#]))", "1000", "vllm:request_queue_time_seconds"},
        // Every rank of tensor parallelism reports the same queue.
        [ADVISE_SGLANG] =
                {"sum(rate(sglang:prompt_tokens_total{@}[#]))|+ sum(rate(sglang:generation_tokens_total{@}[#]))",
                 "sum(max by (pod, exported_pod, dp_rank) (sglang:num_queue_reqs{@}))",
                 "sum(max by (pod, exported_pod, dp_rank) (deriv(sglang:num_queue_reqs{@}[#])))",
                 "sum(rate(sglang:num_requests_total{@}[#]))", "1000", "sglang:queue_time_seconds"},
        [ADVISE_TRITON] = {"sum(rate(nv_inference_compute_infer_duration_us{@}[#])) / 1e6",
                           "sum(nv_inference_pending_request_count{@})",
                           "sum(deriv(nv_inference_pending_request_count{@}[#]))",
                           "sum(rate(nv_inference_request_success{@}[#]))", "0.1", NULL},
        [ADVISE_TGI] =
                {"sum(rate(tgi_request_input_length_sum{@}[#]))|+ sum(rate(tgi_request_generated_tokens_sum{@}[#]))",
                 "sum(tgi_queue_size{@})", "sum(deriv(tgi_queue_size{@}[#]))",
                 "sum(rate(tgi_request_generated_tokens_count{@}[#]))", "1000", "tgi_request_queue_duration"},
        [ADVISE_GPU] = {"sum(avg_over_time(DCGM_FI_PROF_SM_ACTIVE{@}[#]))", NULL, NULL, NULL, NULL, NULL},
};

// ---- the library ----

// Relative to the folder that make runs in; scripts/embedded_pages.mk has the dependency.
#define LIBRARY(symbol, file) ".global " symbol "\n" symbol ":\n.incbin \"policies/library/" file ".yaml\"\n.byte 0\n"
__asm__(".section .rodata\n" LIBRARY("advise_llm_queue", "llm-queue") LIBRARY("advise_sglang_queue", "sglang-queue")
                LIBRARY("advise_triton_queue", "triton-queue") LIBRARY("advise_sm_active", "sm-active") ".previous\n");
extern const char advise_llm_queue[], advise_sglang_queue[], advise_triton_queue[], advise_sm_active[];

static const char *const library[ADVISE_ENGINE__COUNT] = {
        [ADVISE_VLLM] = advise_llm_queue, [ADVISE_SGLANG] = advise_sglang_queue, [ADVISE_TRITON] = advise_triton_queue,
        [ADVISE_TGI] = advise_sm_active,  [ADVISE_GPU] = advise_sm_active,
};

// ---- queries ----

// Names of Kubernetes objects need no escapes; a dot is a character of them and any character of the pattern.
static void put_matchers(struct buf *out, const struct advise_subject *s, bool is_exported)
{
	const char *prefix = is_exported ? "exported_" : "", *kind = s->target->kind;
	const char *tail = strcmp(kind, "Deployment") == 0    ? "[a-z0-9]+-[a-z0-9]{5}"
	                   : strcmp(kind, "StatefulSet") == 0 ? "[0-9]+"
	                                                      : ".+";
	buf_printf(out, "%snamespace=\"%s\",%spod=~\"%s-%s\"", prefix, s->namespace_name, prefix, s->target->name,
	           tail);
}

static void put_query(struct buf *out, const struct advise_subject *s, const char *text, const char *window)
{
	for (; *text; text++)
		if (*text == '@')
			put_matchers(out, s, s->is_exported);
		else if (*text == '#')
			buf_puts(out, window);
		else if (*text == '|')
			buf_puts(out, BREAK);
		else
			buf_putc(out, *text);
}

void advise_put_scrapes(struct buf *out, const struct advise_subject *s)
{
	buf_printf(out, "max(max_over_time(count_over_time(%s{", advise_engines[s->engine].probe);
	put_matchers(out, s, s->is_exported);
	buf_printf(out, "}[%ds])[1d:1h]))", ADVISE_SCRAPES_S);
}

// Prometheus: rate() needs two scrapes; four survive that one is lost.
const char *advise_window(double scrapes)
{
	double interval_s = scrapes > 0 ? ADVISE_SCRAPES_S / scrapes : 15;
	return interval_s <= 16 ? "1m" : interval_s <= 31 ? "2m" : interval_s <= 61 ? "4m" : "10m";
}

void advise_put_request_work(struct buf *out, const struct advise_subject *s)
{
	buf_puts(out, "((");
	put_query(out, s, queries[s->engine].work, REQUEST_WINDOW);
	buf_puts(out, ")" BREAK "/ ");
	put_query(out, s, queries[s->engine].done, REQUEST_WINDOW);
	buf_printf(out, " > 0 or vector(%s))", queries[s->engine].guess);
}

void advise_put_demand(struct buf *out, const struct advise_subject *s)
{
	if (!queries[s->engine].waiting) {
		put_query(out, s, queries[s->engine].work, s->window);
		return;
	}
	buf_puts(out, "clamp_min(" BREAK);
	put_query(out, s, queries[s->engine].work, s->window);
	buf_puts(out, BREAK "+ ");
	put_query(out, s, queries[s->engine].growth, s->window);
	buf_puts(out, BREAK "* ");
	advise_put_request_work(out, s);
	buf_puts(out, ", 0)");
}

void advise_put_backlog(struct buf *out, const struct advise_subject *s)
{
	put_query(out, s, queries[s->engine].waiting, s->window);
	buf_puts(out, BREAK "* ");
	advise_put_request_work(out, s);
}

bool advise_put_late(struct buf *out, const struct advise_subject *s, int64_t window_s)
{
	const char *metric = queries[s->engine].queue_time;
	if (!metric)
		return false;
	buf_printf(out, "1 - sum(increase(%s_bucket{le=~\"10|10[.]0\",", metric);
	put_matchers(out, s, s->is_exported);
	buf_printf(out, "}[%llds])) / sum(increase(%s_count{", (long long)window_s, metric);
	put_matchers(out, s, s->is_exported);
	buf_printf(out, "}[%llds]))", (long long)window_s);
	return true;
}

// ---- policies ----

static void put_head(struct buf *out, const struct advise_subject *s)
{
	buf_printf(
	        out,
	        "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: %s, namespace: %s}\nspec:\n"
	        "  scaleTargetRef: {apiVersion: %s, kind: %s, name: %s}\n  minReplicas: %d\n  maxReplicas: %d\n",
	        s->target->name, s->namespace_name, s->target->api_version, s->target->kind, s->target->name,
	        (int)s->min_replicas, (int)s->max_replicas);
}

static bool starts_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

// Copies a line of a library policy, with the matchers of the workload in its selectors. The series of GPUs are read
// in both forms of their labels, as the library does.
static void put_line(struct buf *out, const struct advise_subject *s, const char *line, size_t len)
{
	const char *end = line + len;
	bool is_gpu = false;
	for (const char *p = line; p < end; p++) {
		if (starts_with(p, "DCGM_"))
			is_gpu = true;
		bool is_exported = starts_with(p, "exported_namespace=");
		if (!is_exported && !starts_with(p, "namespace=")) {
			buf_putc(out, *p);
			continue;
		}
		put_matchers(out, s, is_gpu ? is_exported : s->is_exported);
		p += strcspn(p, "}\n") - 1;
		is_gpu = false;
	}
	buf_putc(out, '\n');
}

void advise_put_library(struct buf *out, const struct advise_subject *s)
{
	// What put_head() writes, and the comment at the top.
	static const char *const replaced[] = {"#",     "apiVersion:",      "kind:",          "metadata:",
	                                       "spec:", "  scaleTargetRef", "  minReplicas:", "  maxReplicas:"};
	put_head(out, s);
	for (const char *line = library[s->engine], *next; *line; line = next) {
		size_t len = strcspn(line, "\n");
		bool is_replaced = false;
		next = line + len + (line[len] == '\n');
		for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
			is_replaced |= starts_with(line, replaced[i]);
		if (!is_replaced)
			put_line(out, s, line, len);
	}
}

void advise_put_objective(struct buf *out, const struct advise_subject *s, double capacity)
{
	put_head(out, s);
	buf_puts(out, "  interval: 15s\n  startup: {}\n"
	              "  objective: {late: 1%, wait: 10s, demand: demand, backlog: backlog}\n  signals:\n"
	              "    - name: demand                    # in replicas: 3.2 keeps 3.2 of them busy\n"
	              "      query: |\n        ");
	advise_put_demand(out, s);
	buf_printf(out,
	           " / %.6g\n"
	           "    - name: backlog                   # in replica-seconds\n"
	           "      query: |\n        ",
	           capacity);
	advise_put_backlog(out, s);
	buf_printf(out,
	           " / %.6g\n"
	           "  behavior:                           # the objective keeps what it has just ordered for a while\n"
	           "    scaleUp: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1000, periodSeconds: "
	           "15}]}\n"
	           "    scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Percent, value: 100, "
	           "periodSeconds: 15}]}\n",
	           capacity);
}
