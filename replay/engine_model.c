// SPDX-License-Identifier: Apache-2.0
#include "replay/engine_model.h"

#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/csv_text.h"
#include "base/hash.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"

#define DRAWN_SAMPLES  4096 // samples drawn from the two distributions
#define PROMPT_MEAN    1000 // tokens
#define OUTPUT_MEAN    250
#define SAMPLES_BYTES  (16 * 1024 * 1024)
#define INLINE_SAMPLES 1000
#define HOURS_MAX      24
#define PATH_BYTES_MAX 1024

const char *const engine_metric_names[] = {"demand",
                                           "backlog",
                                           "utilization",
                                           "num_requests_waiting",
                                           "num_requests_running",
                                           "requests_in_flight",
                                           "prompt_tokens",
                                           "generation_tokens",
                                           "arriving_tokens",
                                           "kv_cache_usage_perc",
                                           "late_first_tokens",
                                           NULL};
_Static_assert(sizeof engine_metric_names / sizeof *engine_metric_names == ENGINE_METRIC__COUNT + 1,
               "one name per metric");
ENUM_NAMES(arrivals_names, ENGINE_ARRIVALS__COUNT, "Demand", "Requests");

// ---- the table ----

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {ENGINE_MODEL_KIND, NULL};

static void check_model(const void *value, struct fault_list *l)
{
	const struct engine_model *m = value;
	if (m->max_batched < m->max_sequences + 1)
		fault_add(l, "maxBatchedTokens", -1,
		          "must be larger than maxSequences: no prompt would ever be computed");
	if (m->n_samples > 0 && m->samples_file)
		fault_add(l, "requests.file", -1, "cannot be used together with samples: keep one of them");
	for (size_t i = 0; i < m->n_samples; i++)
		if (m->samples[i].prompt > m->kv_tokens - m->samples[i].output)
			fault_add(l, "requests.samples", (int32_t)i,
			          "has more tokens than kvTokens: no replica could run the request");
	for (size_t i = 1; i < m->n_hours; i++)
		if (m->hours[i].hour <= m->hours[i - 1].hour)
			fault_add(l, "requests.byHour", (int32_t)i,
			          "must have a later hour than the element before it");
	for (size_t i = 1; i < m->n_signals; i++)
		for (size_t k = 0; k < i; k++)
			if (m->signals[k].metric == m->signals[i].metric)
				fault_add(l, "metrics.signals", (int32_t)i, "repeats a metric: keep one of them");
}

// clang-format off
static const struct schema_field length_fields[] = {
	{ROW("mean", QUANTITY),  FIELD(struct engine_length, mean),  OPTIONAL,       RANGE(1, 1e6), DOC("Mean tokens; by default 1000 of prompts, 250 of outputs.")},
	{ROW("sigma", QUANTITY), FIELD(struct engine_length, sigma), DEFAULT("0.8"), RANGE(0, 3),   DOC("Standard deviation of the logarithm. 0: all are equal.")},
};
static const struct schema_field sample_fields[] = {
	{ROW("prompt", INT32), FIELD(struct engine_request, prompt), REQUIRED, RANGE(1, ENGINE_TOKENS_MAX), DOC("Tokens of the prompt.")},
	{ROW("output", INT32), FIELD(struct engine_request, output), REQUIRED, RANGE(1, ENGINE_TOKENS_MAX), DOC("Tokens of the output.")},
};
static const struct schema_field hour_fields[] = {
	{ROW("hour", QUANTITY),   FIELD(struct engine_hour, hour),           REQUIRED,     RANGE(0, 24),     DOC("Hour of the day, UTC.")},
	{ROW("prompt", QUANTITY), FIELD(struct engine_hour, factors.prompt), DEFAULT("1"), RANGE(0.01, 100), DOC("Factor of the length of each prompt at that hour.")},
	{ROW("output", QUANTITY), FIELD(struct engine_hour, factors.output), DEFAULT("1"), RANGE(0.01, 100), DOC("Factor of the length of each output at that hour.")},
};
static const struct schema_field signal_fields[] = {
	{ROW("metric", ENUM), FIELD(struct engine_signal, metric), REQUIRED, ONE_OF(engine_metric_names), DOC("What is simulated.")},
	{ROW("name", STRING), FIELD(struct engine_signal, name),   REQUIRED, RANGE(1, 63),                DOC("Signal of the policy that reads it.")},
};
static const struct schema length_schema = {SCHEMA(ENGINE_MODEL_KIND ".requests.prompt", struct engine_length, length_fields), DOC("Lengths, lognormal; those of outputs, too.")};
static const struct schema sample_schema = {SCHEMA(ENGINE_MODEL_KIND ".requests.samples[]", struct engine_request, sample_fields), DOC("The lengths of one request.")};
static const struct schema hour_schema = {SCHEMA(ENGINE_MODEL_KIND ".requests.byHour[]", struct engine_hour, hour_fields), DOC("The factors of the lengths at one hour.")};
static const struct schema signal_schema = {SCHEMA(ENGINE_MODEL_KIND ".metrics.signals[]", struct engine_signal, signal_fields), DOC("A metric under the name of a signal.")};
static const struct schema_field decode_fields[] = {
	{ROW("stepMicroseconds", QUANTITY),              FIELD(struct engine_model, step_us),         DEFAULT("13000"), RANGE(100, 1e7), DOC("Time of a step of the smallest batch.")},
	{ROW("perSequenceMicroseconds", QUANTITY),       FIELD(struct engine_model, per_sequence_us), DEFAULT("50"),    RANGE(0, 1e6),   DOC("Time that each sequence adds.")},
	{ROW("perThousandTokensMicroseconds", QUANTITY), FIELD(struct engine_model, per_ktoken_us),   DEFAULT("100"),   RANGE(0, 1e6),   DOC("Time that each thousand tokens in the KV cache add.")},
};
static const struct schema_field request_fields[] = {
	{ROW("prompt", OBJECT),     FIELD(struct engine_model, prompt), OPTIONAL, CHILD(length_schema), DOC("Lengths of prompts.")},
	{ROW("output", OBJECT),     FIELD(struct engine_model, output), OPTIONAL, CHILD(length_schema), DOC("Lengths of outputs.")},
	{ROW("samples", LIST),      FIELD_LIST(struct engine_model, samples, n_samples), OPTIONAL, ITEMS(1, INLINE_SAMPLES), CHILD(sample_schema), DOC("Requests to draw from instead.")},
	{ROW("file", STRING),       FIELD(struct engine_model, samples_file), OPTIONAL, RANGE(1, PATH_BYTES_MAX), DOC("CSV file of requests to draw from, in the folder of the model: columns ContextTokens and GeneratedTokens, as in the Azure LLM inference traces.")},
	{ROW("byHour", LIST),       FIELD_LIST(struct engine_model, hours, n_hours), OPTIONAL, ITEMS(1, HOURS_MAX), CHILD(hour_schema), DOC("Factors of the lengths by hour of the day, joined by straight lines. Of longer requests, fewer make the same demand.")},
	{ROW("arrivals", ENUM),     FIELD(struct engine_model, arrivals), DEFAULT("Demand"), ONE_OF(arrivals_names), DOC("Demand: at random, as many as keep the recorded demand of replicas busy. Requests: as many as the column requests has.")},
};
static const struct schema_field metric_fields[] = {
	{ROW("window", DURATION_MS), FIELD(struct engine_model, window_ms), DEFAULT("1m"),  RANGE(SECOND_MS, 600 * SECOND_MS), DOC("Window of all rates.")},
	{ROW("age", DURATION_MS),    FIELD(struct engine_model, age_ms),    DEFAULT("15s"), RANGE(0, 600 * SECOND_MS), DOC("Age of every value when the policy reads it.")},
	{ROW("noise", QUANTITY),     FIELD(struct engine_model, noise),     DEFAULT("0"),   RANGE(0, 1), DOC("Standard deviation of the error of a reading.")},
	{ROW("tokensPerSecond", QUANTITY), FIELD(struct engine_model, figure), OPTIONAL, RANGE(0.001, 1e9), DOC("Tokens per second of a busy replica by which the policy divides. Without it: the right figure.")},
	{ROW("signals", LIST),       FIELD_LIST(struct engine_model, signals, n_signals), OPTIONAL, ITEMS(0, ENGINE_METRIC__COUNT), CHILD(signal_schema), DOC("Signals with other names than their metric.")},
};
static const struct schema decode_schema = {SCHEMA(ENGINE_MODEL_KIND ".decode", struct engine_model, decode_fields), DOC("The time of a decode step.")};
static const struct schema requests_schema = {SCHEMA(ENGINE_MODEL_KIND ".requests", struct engine_model, request_fields), DOC("The requests that arrive.")};
static const struct schema metrics_schema = {SCHEMA(ENGINE_MODEL_KIND ".metrics", struct engine_model, metric_fields), DOC("How the policy reads the engines.")};

static const struct schema_field model_fields[] = {
	{ROW("apiVersion", ENUM),                 FIELD(struct engine_model, api_version),   REQUIRED, ONE_OF(api_versions), DOC("Version of this format.")},
	{ROW("kind", ENUM),                       FIELD(struct engine_model, kind),          REQUIRED, ONE_OF(kinds),        DOC("What this document is.")},
	{ROW("prefillTokensPerSecond", QUANTITY), FIELD(struct engine_model, prefill_rate),  DEFAULT("10000"), RANGE(1, 1e8), DOC("Prompt tokens that a replica computes per second.")},
	{ROW("decode", OBJECT),                   .offset = 0, IN_PARENT, OPTIONAL, CHILD(decode_schema), DOC("The time of a decode step.")},
	{ROW("maxSequences", INT32),              FIELD(struct engine_model, max_sequences), DEFAULT("256"),  RANGE(1, ENGINE_SEQUENCES_MAX), DOC("Requests that a replica runs at once (vLLM: --max-num-seqs).")},
	{ROW("maxBatchedTokens", INT32),          FIELD(struct engine_model, max_batched),   DEFAULT("2048"), RANGE(2, 1000000), DOC("Tokens of one step (vLLM: --max-num-batched-tokens).")},
	{ROW("kvTokens", INT32),                  FIELD(struct engine_model, kv_tokens),     DEFAULT("140000"), RANGE(2, 1000000000), DOC("Tokens that the KV cache of a replica has room for.")},
	{ROW("requests", OBJECT),                 .offset = 0, IN_PARENT, OPTIONAL, CHILD(requests_schema), DOC("The requests that arrive.")},
	{ROW("metrics", OBJECT),                  .offset = 0, IN_PARENT, OPTIONAL, CHILD(metrics_schema), DOC("How the policy reads the engines.")},
};
const struct schema engine_model_schema = {SCHEMA(ENGINE_MODEL_KIND, struct engine_model, model_fields), VALIDATE(check_model), DOC("An inference engine. The defaults are of the order of Llama 3.1 8B under vLLM on an A100 with 40 GB.")};
// clang-format on

// ---- lengths ----

double engine_normal(uint64_t draw)
{
	return sqrt(-2 * log(hash_unit(hash_mix(draw)))) * cos(6.283185307179586 * hash_unit(hash_mix(draw + 1)));
}

// Draw `i` of DRAWN_SAMPLES, whose mean is that of the distribution.
static int32_t length(const struct engine_length *l, double sum, uint64_t i, int32_t most)
{
	double x = exp(l->sigma * engine_normal(2 * i + 1)) * l->mean * DRAWN_SAMPLES / sum;
	return (int32_t)fmax(1, fmin(round(x), most));
}

static int draw_samples(struct engine_model *m, struct arena *a)
{
	double prompts = 0, outputs = 0;
	m->prompt.mean = m->prompt.mean > 0 ? m->prompt.mean : PROMPT_MEAN;
	m->output.mean = m->output.mean > 0 ? m->output.mean : OUTPUT_MEAN;
	m->n_samples = DRAWN_SAMPLES;
	m->samples = arena_calloc(a, DRAWN_SAMPLES, sizeof *m->samples);
	if (!m->samples)
		return -1;
	for (uint64_t i = 0; i < DRAWN_SAMPLES; i++) {
		prompts += exp(m->prompt.sigma * engine_normal(4 * i + 1));
		outputs += exp(m->output.sigma * engine_normal(4 * i + 3));
	}
	for (uint64_t i = 0; i < DRAWN_SAMPLES; i++) {
		struct engine_request *q = &m->samples[i];
		q->output = length(&m->output, outputs, 2 * i + 1, m->kv_tokens / 2);
		q->prompt = length(&m->prompt, prompts, 2 * i, m->kv_tokens - q->output);
	}
	return 0;
}

double engine_model_requests_s(const struct engine_model *m, struct engine_factors f)
{
	const struct engine_means *x = &m->means;
	double prompts = f.prompt * x->prompts, outputs = f.output * x->outputs, steps = fmax(0, outputs - 1);
	double by_prompt = f.prompt * f.output * x->steps_by_prompt,
	       by_output = f.output * f.output * x->steps_by_output;
	double batch = m->max_sequences;
	if (steps > 0) {
		batch = fmin(batch,
		             (m->kv_tokens - x->residue * (prompts + outputs)) * steps / (by_prompt + by_output));
		batch = fmax(1, fmin(batch, m->max_batched * steps / (steps + prompts)));
	}
	double decode_us = steps * (m->step_us / batch + m->per_sequence_us) +
	                   m->per_ktoken_us * (by_prompt + by_output / 2) / 1000;
	return 1 / (prompts / m->prefill_rate + decode_us / 1e6);
}

static void complete(struct engine_model *m)
{
	struct engine_means *x = &m->means;
	double n = (double)m->n_samples;
	for (size_t i = 0; i < m->n_samples; i++) {
		double p = m->samples[i].prompt, o = m->samples[i].output, s = o - 1;
		x->prompts += p / n;
		x->outputs += o / n;
		x->residue += (p + o) * (p + o) / n / 2;
		x->steps_by_prompt += s * p / n;
		x->steps_by_output += s * o / n;
	}
	x->residue /= (x->prompts + x->outputs) * (x->prompts + x->outputs); // renewal theory: E[size^2] / (2 E[size])
	m->max_requests_s = engine_model_requests_s(m, (struct engine_factors){1, 1});
	m->max_tokens_s = (x->prompts + x->outputs) * m->max_requests_s;
	if (!(m->figure > 0))
		m->figure = m->max_tokens_s;
}

struct engine_factors engine_model_factors(const struct engine_model *m, double time_s)
{
	if (m->n_hours == 0)
		return (struct engine_factors){1, 1};
	double hour = fmod(time_s / 3600, 24);
	size_t i = 0;
	while (i < m->n_hours && m->hours[i].hour <= hour)
		i++;
	const struct engine_hour *b = &m->hours[i % m->n_hours], *a = &m->hours[(i + m->n_hours - 1) % m->n_hours];
	double span = b->hour - a->hour, since = hour - a->hour;
	span += span <= 0 ? 24 : 0;
	since += since < 0 ? 24 : 0;
	double part = since / span;
	return (struct engine_factors){a->factors.prompt + (b->factors.prompt - a->factors.prompt) * part,
	                               a->factors.output + (b->factors.output - a->factors.output) * part};
}

// ---- files ----

static int cell_tokens(struct csv_line line, int column, int32_t *ret)
{
	const char *cell;
	size_t len;
	int64_t v;
	if (!csv_cell_at(line, column, &cell, &len) || num_parse_i64(cell, len, 1, ENGINE_TOKENS_MAX, &v, NULL) < 0)
		return -1;
	*ret = (int32_t)v;
	return 0;
}

int engine_model_parse_samples(const char *text, size_t len, const char *file, struct engine_model *m, struct arena *a,
                               struct err *e)
{
	size_t next, n_lines = 0;
	for (const char *p = text; p < text + len; p++)
		n_lines += *p == '\n';
	struct csv_line line = csv_line_at(text, len, &next);
	int prompt = csv_find_column(line, "ContextTokens"), output = csv_find_column(line, "GeneratedTokens");
	if (prompt < 0 || output < 0)
		return err_set(e, ERR_INPUT,
		               "%s:1: expected a header with the columns ContextTokens and GeneratedTokens", file);
	if (n_lines > ENGINE_SAMPLES_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d requests: keep a part of them", file,
		               ENGINE_SAMPLES_MAX);
	m->samples = arena_calloc(a, n_lines + 1, sizeof *m->samples);
	if (!m->samples)
		return err_no_memory(e);
	for (size_t at = next, number = 2; at < len; at += next, number++) {
		struct engine_request *q = &m->samples[m->n_samples];
		line = csv_line_at(text + at, len - at, &next);
		if (line.at == line.end)
			continue;
		if (cell_tokens(line, prompt, &q->prompt) < 0 || cell_tokens(line, output, &q->output) < 0)
			return err_set(e, ERR_INPUT,
			               "%s:%zu: expected whole numbers of tokens from 1 to %d in ContextTokens and "
			               "GeneratedTokens",
			               file, number, ENGINE_TOKENS_MAX);
		if (q->prompt > m->kv_tokens - q->output)
			return err_set(e, ERR_INPUT,
			               "%s:%zu: the request has more tokens than kvTokens, %d: raise kvTokens "
			               "or remove the line",
			               file, number, m->kv_tokens);
		m->n_samples++;
	}
	return m->n_samples > 0 ? 0 : err_set(e, ERR_INPUT, "%s: has no requests: add lines below the header", file);
}

static int read_samples(const char *model_path, struct engine_model *m, struct arena *a, struct err *e)
{
	char path[2 * PATH_BYTES_MAX];
	const char *slash = m->samples_file[0] == '/' ? NULL : strrchr(model_path, '/');
	struct buf text = BUF(SAMPLES_BYTES);
	snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - model_path) : 0, model_path, m->samples_file);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = engine_model_parse_samples(buf_str(&text), text.len, path, m, a, e);
	buf_done(&text);
	return rc;
}

int engine_model_decode(const struct doc_node *node, struct engine_model *m, struct arena *a,
                        struct schema_errors *errors)
{
	if (schema_decode(&engine_model_schema, node, m, a, errors, "") < 0)
		return -1;
	if (m->samples_file)
		return 0;
	if (m->n_samples == 0 && draw_samples(m, a) < 0) {
		schema_report(errors, node, "", "out of memory");
		return -1;
	}
	complete(m);
	return 0;
}

int engine_model_read(const char *path, struct arena *a, struct engine_model *ret, struct buf *report, struct err *e)
{
	struct doc_file doc;
	*ret = (struct engine_model){0};
	if (doc_read_yaml(a, path, false, &doc, e) < 0)
		return -1;
	if (doc.n_roots != 1)
		return err_set(e, ERR_INPUT, "%s: expected one document, of kind " ENGINE_MODEL_KIND ", found %zu",
		               path, doc.n_roots);
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	schema_errors_init(errors, path);
	int rc = engine_model_decode(doc.roots[0], ret, a, errors);
	if (rc < 0) {
		err_set(e, ERR_INPUT, "%s: %zu %s", path, errors->n + errors->dropped,
		        errors->n + errors->dropped == 1 ? "error" : "errors");
		schema_errors_print(errors, report);
	}
	free(errors);
	if (rc == 0 && ret->samples_file) {
		rc = read_samples(path, ret, a, e);
		if (rc == 0)
			complete(ret);
	}
	return rc;
}
