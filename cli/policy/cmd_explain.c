// SPDX-License-Identifier: Apache-2.0
// gpuscale explain FIELD
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "base/schema/schema_explain.h"
#include "base/schema/schema_page.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "policies/price/price_schema.h"
#include "policies/schema/idle_rule_schema.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"
#include "promql/promql_source_file.h"
#include "replay/engine_model.h"
#include "runtime/metrics/metrics_table.h"

#define EXPLAIN_TEXT_MAX   (256 * 1024)
#define EXPLAIN_PATH_BYTES 512

struct explain_args {
	const char *field; // NULL: the top level
	bool page;
};

enum { KEY_PAGE = 0x600 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct explain_args *a = state->input;
	switch (key) {
	case KEY_PAGE:
		a->page = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->field)
			print_usage(state, "one field at a time");
		a->field = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// What is not a policy: the first word of the field, in any case, and the path that it stands for.
static const struct topic {
	const char *word, *path;
	const struct schema *(*schema)(void);
} topics[] = {
        {"sources", PROMQL_SOURCES_KIND ".sources", promql_source_schema},
        {POOL_KIND, POOL_KIND, pool_schema},
        {IDLE_RULE_KIND, IDLE_RULE_KIND, idle_rule_schema},
        {PRICE_BOOK_KIND, PRICE_BOOK_KIND, price_schema},
        {ENGINE_MODEL_KIND, ENGINE_MODEL_KIND, engine_model_schema},
};

static const struct topic *find_topic(const char *field)
{
	for (size_t i = 0; field && i < sizeof topics / sizeof topics[0]; i++)
		if (strncasecmp(field, topics[i].word, strlen(topics[i].word)) == 0)
			return &topics[i];
	return NULL;
}

// Resolves a path without its start: `window` is spec.signals.window.
static int explain(const struct schema *schema, const char *path, bool of_policy, struct buf *out, struct err *e)
{
	static const char *const roots[] = {"spec.", "spec.signals."};
	int rc = schema_explain(schema, path, out, e);
	for (size_t i = 0; rc < 0 && of_policy && i < sizeof roots / sizeof roots[0]; i++) {
		char longer[EXPLAIN_PATH_BYTES + 16];
		struct err ignored;
		snprintf(longer, sizeof longer, "%s%s", roots[i], path);
		rc = schema_explain(schema, longer, out, &ignored);
	}
	return rc;
}

int cmd_explain(int argc, char **argv)
{
	static const struct argp_option options[] = {{"page", KEY_PAGE, 0, 0,
	                                              "print the whole reference page in Markdown (docs/policy.md; "
	                                              "with FIELD sources, GPUPool, GPUIdleRule or PriceBook: that "
	                                              "of these files)",
	                                              0},
	                                             {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "[FIELD]",
	        "Describe a policy field: type, default, range, what it does. Without FIELD: the top level. "
	        "`sources` and what is below it: the files of --sources. `GPUPool`: pools. `GPUIdleRule`: rules about "
	        "idle GPUs. `PriceBook`: the files of --prices. `EngineModel`: those of backtest --engine. `metrics`: "
	        "what /metrics serves."
	        "\vExamples: gpuscale explain spec.signals.window; gpuscale explain sources.tls; gpuscale explain "
	        "GPUPool.spec.members; gpuscale explain PriceBook.models",
	        NULL,
	        NULL,
	        NULL};
	struct explain_args args = {0};
	args_parse(&argp, argc, argv, &args);
	struct buf out;
	buf_init(&out, EXPLAIN_TEXT_MAX);
	struct err e;
	int code = EXIT_OK;
	bool of_metrics = args.field && strcmp(args.field, "metrics") == 0;
	const struct topic *topic = find_topic(args.field);
	const struct schema *schema = topic ? topic->schema() : policy_schema();
	char path[EXPLAIN_PATH_BYTES];
	if (topic)
		snprintf(path, sizeof path, "%s%s", topic->path, args.field + strlen(topic->word));
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
