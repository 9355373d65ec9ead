// SPDX-License-Identifier: Apache-2.0
// Whatever the mock reads: scripts, series, CSV columns, replies with replicas. What is accepted must also play.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "exporter/mock/mock.h"

#define INPUT_MAX  8192
#define MEMORY_MAX (16 * 1024 * 1024)

static void play(const struct mock_series *s)
{
	static const double times_ms[] = {0, 1, 999.5, 1000, 123456, 1e9};
	for (size_t i = 0; i < sizeof times_ms / sizeof times_ms[0]; i++) {
		double v;
		mock_series_at(s, times_ms[i], &v);
		mock_series_mean(s, times_ms[i], times_ms[i] + 250);
	}
}

static void play_script(const struct mock_script *s)
{
	for (size_t i = 0; i < s->n_gpus; i++)
		for (enum field f = 0; f < FIELD__COUNT; f++)
			if (s->gpus[i].given.series[f])
				play(s->gpus[i].given.series[f]);
	for (int64_t t_ms = 0; t_ms < 100000000; t_ms = t_ms * 7 + 500) {
		struct device_sample sample = {.lost = false};
		gpu_step(&(struct mock_gpu){.power_limit_watts = 700, .idle_power_watts = 75}, 143771,
		         &(struct gpu_state){.started = false}, (double)t_ms, 0.6, true, &sample);
		for (int32_t gpu = 0; gpu < s->n_boards; gpu++)
			mock_faults_apply(s->faults, gpu, 75, t_ms, &sample);
	}
	if (!s->has_workload)
		return;
	play(&s->workload.demand_series);
	struct workload_state st = {0};
	for (int t = 0; t < 20; t++) {
		workload_step(&s->workload, &st, 500.0 * t, t % 3);
		assert(st.utilization >= 0 && st.utilization <= 1 && !(st.backlog < 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > INPUT_MAX)
		return 0;
	char *text = malloc(size + 1); // exactly as long as it is, so that reading past its end is seen
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';

	struct arena a;
	struct buf errors;
	struct mock_script script;
	struct mock_series series;
	struct err e;
	int32_t replicas;
	arena_init(&a, MEMORY_MAX);
	buf_init(&errors, 256 * 1024);
	// A script may name files of this machine: those are not the subject.
	if (!strstr(text, "csv") && mock_script_parse(&a, "fuzz", text, size, &script, &errors, &e) == 0)
		play_script(&script);
	arena_reset(&a);
	if (mock_series_parse(&a, text, 1000, size & 1, 1, &series, &e) == 0)
		play(&series);
	arena_reset(&a);
	if (mock_series_parse_csv(&a, "fuzz", text, size, "x", 5000, size & 1, 0.5, &series, &e) == 0)
		play(&series);
	if (mock_replicas_decode(text, size, "status.readyReplicas", &replicas, &e) == 0)
		assert(replicas >= 0 && replicas <= MOCK_REPLICAS_MAX);
	buf_done(&errors);
	arena_done(&a);
	free(text);
	return 0;
}
