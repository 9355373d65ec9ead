// SPDX-License-Identifier: Apache-2.0
// gpuscale explain FIELD
#include <strings.h>

#include "cli/term/cli.h"
#include "cli/term/object_kind.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"
#include "promql/promql_source_file.h"
#include "replay/engine_model.h"
#include "runtime/metrics/metrics.h"

#define EXPLAIN_PATH_BYTES 512

struct explain_args {
	const char *field; // NULL: the top level
	bool page;
};

static void set_field(void *to, char *arg, struct argp_state *state)
{
	const char **field = to;
	if (*field)
		print_usage(state, "one field at a time");
	*field = arg;
}

// clang-format off
#define FLAGS_OF struct explain_args
static const struct flag_set command = {
	.args = "[FIELD]",
	.about = "Describe a policy field: type, default, range, what it does. Without FIELD: the top level. "
	         "`sources` and what is below it: the files of --sources. `GPUPool`: pools. "
	         "`PriceBook`: the files of --prices. `EngineModel`: those of backtest --engine. `metrics`: "
	         "what /metrics serves."
	         "\vExamples: gpuscale explain spec.signals.window; gpuscale explain sources.tls; gpuscale explain "
	         "GPUPool.spec.members; gpuscale explain PriceBook.models",
	.flags = (const struct flag[]){
		FLAG_SWITCH(0, 0, "page", page, "print the whole reference page in Markdown (docs/policy.md; with FIELD sources, GPUPool or PriceBook: that of these files)"),
		FLAG_ARGUMENTS(field, set_field),
		FLAG_END}};
// clang-format on

// The kinds of documents: the first word of the field, in any case, and the path that it stands for. Those of the
// cluster have further names (cli/term/object_kind.h).
static const struct topic {
	const char *word, *path;
	const struct schema *schema;
} topics[] = {
        [OBJECT_POLICY] = {POLICY_KIND, POLICY_KIND, &policy_schema},
        [OBJECT_POOL] = {POOL_KIND, POOL_KIND, &pool_schema},
        {"sources", PROMQL_SOURCES_KIND ".sources", &promql_source_schema},
        {PRICE_BOOK_KIND, PRICE_BOOK_KIND, &price_schema},
        {ENGINE_MODEL_KIND, ENGINE_MODEL_KIND, &engine_model_schema},
};
#define N_TOPICS (sizeof topics / sizeof topics[0])

// Finds the topic that the first `len` bytes of the field name, or NULL.
static const struct topic *find_topic(const char *field, size_t len)
{
	enum object_kind kind = object_kind_find(field, len);
	if (kind < CRD_COUNT)
		return &topics[kind];
	for (size_t i = CRD_COUNT; i < N_TOPICS; i++)
		if (strlen(topics[i].word) == len && strncasecmp(field, topics[i].word, len) == 0)
			return &topics[i];
	return NULL;
}

// Adds the topic that the first word of the field may mean.
static int suggest_topic(const char *field, struct err *e)
{
	char word[EXPLAIN_PATH_BYTES];
	const char *names[N_TOPICS];
	for (size_t i = 0; i < N_TOPICS; i++)
		names[i] = topics[i].word;
	snprintf(word, sizeof word, "%.*s", (int)strcspn(field, "."), field);
	const char *close = num_closest_name(word, names, N_TOPICS);
	return close ? err_set(e, ERR_NOT_FOUND, "no field %s, did you mean %s?", field, close) : -1;
}

// Resolves a path without its start: `window` is spec.signals.window. Of the errors, that of the start at which a
// similar name exists is the best one.
static int explain(const struct schema *schema, const char *path, bool of_policy, struct buf *out, struct err *e)
{
	static const char *const roots[] = {"", "spec.", "spec.signals."};
	bool has_best = false;
	for (size_t i = 0; i < (of_policy ? sizeof roots / sizeof roots[0] : 1); i++) {
		char longer[EXPLAIN_PATH_BYTES + 16];
		const char *closest = NULL;
		struct err why;
		snprintf(longer, sizeof longer, "%s%s", roots[i], path);
		if (schema_explain(schema, longer, out, &why) == 0)
			return 0;
		bool is_similar = !schema_find(schema, longer, NULL, &closest) && closest;
		if (i == 0 || (is_similar && !has_best))
			*e = why;
		has_best |= is_similar;
	}
	return has_best || !of_policy ? -1 : suggest_topic(path, e);
}

int cmd_explain(int argc, char **argv)
{
	struct explain_args args = {0};
	args_parse(&command, argc, argv, &args);
	struct buf out = BUF(OUTPUT_MAX);
	struct err e;
	int code = EXIT_OK;
	bool of_metrics = args.field && strcmp(args.field, "metrics") == 0;
	size_t word_len = args.field ? strcspn(args.field, ".") : 0;
	const struct topic *topic = args.field ? find_topic(args.field, word_len) : NULL;
	const struct schema *schema = topic ? topic->schema : &policy_schema;
	char path[EXPLAIN_PATH_BYTES];
	if (topic)
		snprintf(path, sizeof path, "%s%s", topic->path, args.field + word_len);
	else
		snprintf(path, sizeof path, "%s", args.field ? args.field : "");
	if (of_metrics)
		metric_family_page(&out);
	else if (args.page)
		schema_page(schema, &out);
	if (!args.page && !of_metrics && explain(schema, path, !topic, &out, &e) < 0) {
		print_error("gpuscale explain: %s\n", e.msg);
		code = EXIT_FAILED;
	} else {
		print_out(&out);
	}
	buf_done(&out);
	return code;
}
