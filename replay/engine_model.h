// SPDX-License-Identifier: Apache-2.0
// An inference engine with continuous batching, as vLLM and SGLang do it, as numbers: an EngineModel file. engine.h
// simulates replicas of the engine.
#ifndef GPUSCALE_REPLAY_ENGINE_MODEL_H
#define GPUSCALE_REPLAY_ENGINE_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;
struct err;
struct schema;
struct schema_errors;

#define ENGINE_MODEL_KIND    "EngineModel"
#define ENGINE_SAMPLES_MAX   100000 // pairs of lengths in a file
#define ENGINE_SEQUENCES_MAX 4096   // requests that one replica runs at once
#define ENGINE_TOKENS_MAX    10000000

// The metrics of the simulated engines for a policy. engine_history_read() has the unit of each.
enum engine_metric {
	ENGINE_DEMAND,
	ENGINE_BACKLOG,
	ENGINE_UTILIZATION,
	ENGINE_WAITING,
	ENGINE_RUNNING,
	ENGINE_IN_FLIGHT,
	ENGINE_PROMPT_TOKENS,
	ENGINE_GENERATION_TOKENS,
	ENGINE_ARRIVING_TOKENS,
	ENGINE_KV_USAGE,
	ENGINE_LATE_FIRST_TOKENS,
	ENGINE_METRIC__COUNT
};
// NULL-terminated, in the order of enum engine_metric: the signal that is the metric unless the file has another name.
extern const char *const engine_metric_names[];

enum engine_arrivals { ENGINE_ARRIVALS_DEMAND, ENGINE_ARRIVALS_REQUESTS, ENGINE_ARRIVALS__COUNT };

struct engine_request {
	int32_t prompt, output; // tokens
};
struct engine_length {      // lognormal
	double mean, sigma; // tokens; of the logarithm
};
struct engine_factors {
	double prompt, output;
};
struct engine_hour {
	double hour;
	struct engine_factors factors;
};
struct engine_signal {
	int metric; // enum engine_metric
	const char *name;
};

struct engine_model {
	int api_version, kind;
	double prefill_rate;                            // prompt tokens a second
	double step_us, per_sequence_us, per_ktoken_us; // time of a decode step, engine_model_step_s()
	int32_t max_sequences, max_batched, kv_tokens;
	struct engine_length prompt, output;
	struct engine_request *samples; // requests are drawn from them; arena
	size_t n_samples;
	const char *samples_file;  // file of the lengths; NULL: the samples, or drawn from the two distributions
	struct engine_hour *hours; // factors of the lengths by hour of the day (UTC), joined by straight lines
	size_t n_hours;
	int arrivals;              // enum engine_arrivals
	int64_t window_ms, age_ms; // window of rates; age of all metrics when the policy reads them
	double noise;              // standard deviation of a reading, as a share
	struct engine_signal *signals;
	size_t n_signals;
	double figure; // tokens a second of one replica by which the policy divides
	// Derived from all of the above:
	struct engine_means {
		double prompts, outputs; // tokens of a request
		double residue; // rest of the KV cache, into which the next request does not fit, in mean requests
		double steps_by_prompt, steps_by_output; // means of the products
	} means;
	double max_requests_s, max_tokens_s; // rates of a replica that is never short of requests
};

extern const struct schema engine_model_schema;
// Decodes `node` into `m`, which the caller has zeroed, draws the samples and computes what follows from the numbers.
// Lists and strings live in `a`. Returns 0, or -1 with every fault appended to `errors`.
int engine_model_decode(const struct doc_node *node, struct engine_model *m, struct arena *a,
                        struct schema_errors *errors);
// Reads the only document of the file at `path`, and the file of lengths that it names. Returns 0, or -1 and *e; faults
// of fields are also appended to `report` as `check` prints them.
int engine_model_read(const char *path, struct arena *a, struct engine_model *ret, struct buf *report, struct err *e);
// Reads the lengths in text[0..len), a CSV file that `file` names in errors, into m->samples. Returns 0, or -1 and *e
// ("FILE:LINE: ..."): ERR_INPUT, ERR_LIMIT, ERR_INTERNAL.
int engine_model_parse_samples(const char *text, size_t len, const char *file, struct engine_model *m, struct arena *a,
                               struct err *e);

// Seconds of one step that gives each of `n` sequences a token while they keep `kv` tokens, and computes `prefill`
// tokens of prompts.
static inline double engine_model_step_s(const struct engine_model *m, double n, double kv, double prefill)
{
	double decode_us = n > 0 ? m->step_us + m->per_sequence_us * n + m->per_ktoken_us * kv / 1000 : 0;
	return decode_us / 1e6 + prefill / m->prefill_rate;
}
// Requests a second of a replica that is never short of requests, when all lengths are `f` times what they are: the
// time of a request is that of its prompt and its share of the decode steps, whose batch is limited by the sequences,
// the KV cache, or the tokens of a step. Exact to a few percent: a step has whole requests.
double engine_model_requests_s(const struct engine_model *m, struct engine_factors f);
// Draws from the standard normal distribution, the same for an equal `draw` (Box and Muller).
double engine_normal(uint64_t draw);
// The factors of the lengths at a time in seconds since the epoch.
struct engine_factors engine_model_factors(const struct engine_model *m, double time_s);

#endif
