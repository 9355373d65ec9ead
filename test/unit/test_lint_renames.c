// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the table of renamed metrics is sound (no name twice, no chain of renames), names are found with
// the suffixes of the exposition, and a query that reads both names is left alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/lint/lint_names.h"

static const struct lint_rename *find(const char *name, size_t *suffix)
{
	return lint_rename_find(name, strlen(name), suffix);
}

static void names_are_found_with_their_suffixes(void **state)
{
	size_t suffix = 0;
	const struct lint_rename *r = find("vllm:gpu_prefix_cache_hits_total", &suffix);
	assert_non_null(r);
	assert_string_equal(r->new_name, "vllm:prefix_cache_hits");
	assert_int_equal(suffix, 6);
	assert_non_null(find("inference_objective_request_sizes_bucket", &suffix));
	assert_int_equal(suffix, 7);
	assert_non_null(find("inference_objective_request_total", &suffix));
	assert_int_equal(suffix, 0);
	r = find("vllm:time_per_output_token_seconds_bucket", &suffix);
	assert_non_null(r);
	assert_non_null(strstr(r->release, "removed in 0.15"));
	assert_non_null(find("vllm:prompt_tokens_recomputed_total", &suffix));
	assert_null(find("vllm:gpu_cache_usage_percent", &suffix));
	assert_null(find("vllm:kv_cache_usage_perc", &suffix));
	assert_null(find("", &suffix));
}

static void query_with_both_names_is_left_alone(void **state)
{
	size_t suffix;
	const char *name = "vllm:gpu_cache_usage_perc";
	assert_non_null(lint_rename_wanted("avg(vllm:gpu_cache_usage_perc)", name, strlen(name), &suffix));
	assert_null(lint_rename_wanted("avg(vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc)", name, strlen(name),
	                               &suffix));
	name = "vllm:num_requests_swapped"; // nothing replaces it
	assert_non_null(lint_rename_wanted("vllm:num_requests_swapped or vllm:num_preemptions_total", name,
	                                   strlen(name), &suffix));
}

// The names are those of the documents of six projects: a row that is not reachable would never warn.
static void rows_are_unique_and_new_names_are_current(void **state)
{
	static const char *const olds[] = {
	        "vllm:time_in_queue_requests",         "inference_extension_flow_control_queue_size",
	        "inference_pool_ready_pods",           "inference_model_running_requests",
	        "llm_d_router_epp_average_queue_size", "kvcache_index_lookup_hits_total",
	        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"};
	size_t suffix;
	size_t n = 0;
	for (const struct lint_rename *r = lint_renames; r->old_name; r++) {
		n++;
		assert_ptr_equal(find(r->old_name, &suffix), r); // no earlier row has the name
		assert_true(r->release[0]);
		if (!r->has_same_meaning)
			continue;
		assert_null(find(r->new_name, &suffix)); // not renamed again
		assert_null(strchr(r->new_name, ' '));
	}
	assert_true(n >= 60);
	for (size_t i = 0; i < sizeof olds / sizeof olds[0]; i++)
		assert_non_null(find(olds[i], &suffix));
}

// A metric that a test page of a release has cannot be gone in that release.
static void names_on_pages_of_vllm_are_not_gone_yet(void **state)
{
	static const struct {
		const char *page, *gone; // releases that are not after the page
	} rows[] = {
	        {"test/integration/pages/vllm-0.9.2.prom", "0.7 0.8 0.8.3"},
	        {"test/integration/pages/vllm-0.10.2.prom", "0.7 0.8 0.8.3 0.10"},
	        {"test/integration/pages/vllm-0.12.0.prom", "0.7 0.8 0.8.3 0.10 0.11 0.12"},
	        {"test/integration/pages/vllm-0.33.0.prom", "0.7 0.8 0.8.3 0.10 0.11 0.12 0.20"},
	};
	static const char type[] = "# TYPE ";
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char line[1024], release[16];
		FILE *f = fopen(rows[i].page, "re");
		assert_non_null(f);
		while (fgets(line, sizeof line, f)) {
			size_t suffix;
			if (strncmp(line, type, sizeof type - 1) != 0)
				continue;
			const char *name = line + sizeof type - 1;
			const struct lint_rename *r = lint_rename_find(name, strcspn(name, " "), &suffix);
			if (!r)
				continue;
			assert_memory_equal(r->release, "vLLM ", 5);
			snprintf(release, sizeof release, "%.*s", (int)strcspn(r->release + 5, " ,"), r->release + 5);
			if (strstr(rows[i].gone, release))
				fail_msg("%s has %s, gone in %s", rows[i].page, r->old_name, release);
		}
		fclose(f);
	}
}

// Ray, AMD's exporter and some builds serve the names with a prefix, or without the colon.
static void names_are_recognised_with_their_prefixes(void **state)
{
	(void)state;
	static const struct {
		const char *name, *new_name;
		size_t suffix;
	} rows[] = {{"ray_vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", 0},
	            {"ray_vllm_gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", 0},
	            {"vllm_gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", 0},
	            {"gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", 0},
	            {"time_to_first_token_seconds_bucket", "vllm:time_to_first_token_seconds", 7},
	            {"tgi_queue_size", "vllm:num_requests_waiting", 0},
	            {"gpu_gfx_activity", "DCGM_FI_DEV_GPU_UTIL", 0},
	            {"amd_gpu_gfx_activity", "DCGM_FI_DEV_GPU_UTIL", 0},
	            {"xpum_memory_used_bytes", "DCGM_FI_DEV_FB_USED", 0},
	            {"nvidia_smi_utilization_gpu_ratio", "DCGM_FI_DEV_GPU_UTIL", 0},
	            {"nvidia_gpu_duty_cycle", "DCGM_FI_DEV_GPU_UTIL", 0}};
	size_t suffix;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct lint_rename *r = find(rows[i].name, &suffix);
		assert_non_null(r);
		assert_string_equal(r->new_name, rows[i].new_name);
		assert_int_equal(suffix, rows[i].suffix);
	}
	assert_null(find("ray_vllm", &suffix));
	assert_null(find("amd_gpu_", &suffix));
	assert_null(find("ray_vllm:", &suffix));
}

static void page_of_the_docs_has_the_number_of_rows(void **state)
{
	char text[32768], want[64];
	size_t n = 0;
	for (const struct lint_rename *r = lint_renames; r->old_name; r++)
		n += !r->is_equivalent;
	snprintf(want, sizeof want, "knows %zu of the old names", n);
	FILE *f = fopen("docs/checking-policies.md", "re");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	if (!strstr(text, want))
		fail_msg("docs/checking-policies.md does not say \"%s\"", want);
}

// Every family of the recorded pages of the picker before its rename: one that the table lacks would never warn.
static void recorded_families_of_the_endpoint_picker_are_rows(void **state)
{
	static const char *const pages[] = {"test/integration/pages/endpoint-picker-0.5.1.prom",
	                                    "test/integration/pages/endpoint-picker-1.3.1.prom",
	                                    "test/integration/pages/endpoint-picker-1.5.0.prom"};
	static const char type[] = "# TYPE ";
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		char line[1024];
		size_t n = 0, suffix;
		FILE *f = fopen(pages[i], "re");
		assert_non_null(f);
		while (fgets(line, sizeof line, f)) {
			if (strncmp(line, type, sizeof type - 1) != 0)
				continue;
			const char *name = line + sizeof type - 1;
			size_t len = strcspn(name, " ");
			if (!lint_rename_find(name, len, &suffix) || suffix > 0)
				fail_msg("%s: no row for %.*s", pages[i], (int)len, name);
			n++;
		}
		assert_true(n >= 15);
		fclose(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_are_found_with_their_suffixes),
	        cmocka_unit_test(query_with_both_names_is_left_alone),
	        cmocka_unit_test(rows_are_unique_and_new_names_are_current),
	        cmocka_unit_test(names_on_pages_of_vllm_are_not_gone_yet),
	        cmocka_unit_test(names_are_recognised_with_their_prefixes),
	        cmocka_unit_test(page_of_the_docs_has_the_number_of_rows),
	        cmocka_unit_test(recorded_families_of_the_endpoint_picker_are_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
