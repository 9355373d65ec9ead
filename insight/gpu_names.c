// SPDX-License-Identifier: Apache-2.0
#include "insight/gpu_names.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/dcgm_names.h"
#include "promql/confine.h"
#include "promql/lexer.h"
#include "promql/promql.h"

#define AMD_USED   "gpu_used_vram"
#define INTEL_USED "xpum_memory_used_bytes"
#define INTEL_FREE INTEL_USED " / (xpum_memory_ratio > 0) - " INTEL_USED
#define STEP_MAX_S 30 // longest step of a subquery: the rules record at this interval
#define STEPS      20 // steps in a range, at least

const char gpu_names_query[] = "group by (__name__) ({__name__=~\"DCGM_FI_DEV_FB_USED_BYTES|(amd_)?" AMD_USED
                               "|" INTEL_USED "\"} unless on (job, instance) DCGM_FI_DEV_FB_USED)";

unsigned gpu_names_of(const struct promql_series *s)
{
	char first = promql_label(s, "__name__")[0];
	return 1U << (first == 'D' ? GPU_NAMES_4_9 : first == 'x' ? GPU_NAMES_INTEL : GPU_NAMES_AMD);
}

// As scripts/dcgm-name-rules writes the rules. The last label with a value wins.
// clang-format off
#define OPEN5 "label_replace(label_replace(label_replace(label_replace(label_replace("
#define RENAME(to, from) ",\"" to "\",\"$1\",\"" from "\",\"(.+)\")"
static const char *const opening[GPU_NAMES__COUNT] = {"", OPEN5, OPEN5 "label_replace(label_replace(label_replace("};
static const char *const closing[GPU_NAMES__COUNT] = {"",
	RENAME("UUID", "serial_number") RENAME("UUID", "gpu_uuid") RENAME("gpu", "gpu_id") RENAME("modelName", "card_model")
	RENAME("modelName", "card_series"),
	RENAME("UUID", "pci_bdf") RENAME("UUID", "uuid") RENAME("gpu", "dev") RENAME("gpu", "pci_dev") RENAME("modelName", "dev_name")
	RENAME("Hostname", "node") RENAME("exported_pod", "kube_pod") RENAME("exported_namespace", "kube_namespace")};
static const struct equivalent {
	enum gpu_naming naming;
	const char *name, *legacy, *conversion;
} equivalents[] = {
#define AMD(name, legacy, conversion)   {GPU_NAMES_AMD, name, legacy, conversion},
#define INTEL(name, legacy, conversion) {GPU_NAMES_INTEL, name, legacy, conversion},
#define SMI(name, legacy, conversion)
#define GPU(name, legacy, conversion)
#define ROW(name, legacy, conversion, who) who(name, legacy, conversion)
	GPU_NAMES(ROW)
	INTEL(INTEL_FREE, "DCGM_FI_DEV_FB_FREE", " / 1048576") // which xpumanager does not have
};
// clang-format on

// The series of Intel's tiles are folded into one of their card: the sum of the memory, the largest of the rest.
static void put_expression(struct buf *out, const struct equivalent *q)
{
	const char *rest = q->name + strlen(INTEL_USED); // rest of INTEL_FREE
	if (q->naming == GPU_NAMES_AMD)
		buf_printf(out, "{__name__=~\"(amd_)?%s\"}", q->name);
	else if (strncmp(q->name, INTEL_USED, strlen(INTEL_USED)) == 0)
		buf_printf(out,
		           "(sum without (sub_dev, src) (" INTEL_USED
		           "{sub_dev!=\"\"}%s) or max without (sub_dev, src) (" INTEL_USED "{sub_dev=\"\"}%s))",
		           rest, rest);
	else
		buf_printf(out, "max without (sub_dev, src, location) (%s{location!=\"memory\"})", q->name);
	buf_puts(out, q->conversion);
}

// A legacy selector in the query: name{matchers}.
struct selector {
	const char *name, *matchers;
	size_t len, n_matchers;
};

// Appends the matchers as the exporter of the naming labels its series.
static void put_matchers(struct buf *out, const struct selector *s, enum gpu_naming naming)
{
	static const char legacy[] = "exported_";
	const char *p = s->matchers, *end = s->matchers + s->n_matchers;
	while (p < end) {
		struct promql_token t = promql_next(&p);
		size_t n = sizeof legacy - 1;
		bool is_renamed = naming == GPU_NAMES_INTEL && t.kind == PROMQL_TOKEN_NAME && t.len > n &&
		                  memcmp(t.start, legacy, n) == 0;
		buf_puts(out, is_renamed ? "kube_" : "");
		buf_put(out, t.start + (is_renamed ? n : 0), t.len - (is_renamed ? n : 0));
	}
}

// Appends the expressions of a naming without matchers; nothing when it has none for the name.
static void put_expressions(struct buf *out, const struct selector *s, enum gpu_naming naming)
{
	const struct dcgm_name *renamed = dcgm_name_find(s->name, s->len, false);
	if (naming == GPU_NAMES_4_9 && renamed)
		buf_printf(out, "%s / %.10g", renamed->name_4_9, renamed->factor);
	for (size_t i = 0; i < sizeof equivalents / sizeof equivalents[0]; i++) {
		const struct equivalent *q = &equivalents[i];
		if (q->naming != naming || strlen(q->legacy) != s->len || memcmp(q->legacy, s->name, s->len) != 0)
			continue;
		buf_puts(out, out->len ? " or " : opening[naming]);
		put_expression(out, q);
	}
	if (out->len)
		buf_puts(out, closing[naming]);
}

// Whether the selector reads MIG instances only.
static bool has_instance(const struct selector *s)
{
	static const char matcher[] = "GPU_I_ID!=\"\"";
	return s->n_matchers && memmem(s->matchers, s->n_matchers, matcher, sizeof matcher - 1);
}

static int put_equivalents(struct buf *out, const struct selector *s, enum gpu_naming naming, struct err *e)
{
	struct buf expr, matchers;
	int rc = 0;
	buf_init(&expr, out->max);
	buf_init(&matchers, out->max);
	if (naming == GPU_NAMES_4_9 || !has_instance(s))
		put_expressions(&expr, s, naming);
	put_matchers(&matchers, s, naming);
	if (expr.len) {
		buf_puts(out, " or ");
		rc = matchers.len ? confine_add_matchers(out, buf_str(&expr), buf_str(&matchers), e)
		                  : buf_put(out, expr.data, expr.len);
	}
	if (out->failed || expr.failed || matchers.failed)
		rc = err_set(e, ERR_LIMIT, "the query is too long with the names of other exporters");
	buf_done(&expr);
	buf_done(&matchers);
	return rc;
}

// Appends what makes a range or an offset of a selector one of an expression, and moves *p behind it.
static void put_range(struct buf *out, const char **p)
{
	const char *start = *p, *end = promql_skip_brackets(start, '[', ']');
	int64_t range_ms = 0;
	if (*start != '[' || !end)
		return;
	if (num_parse_duration_ms(start + 1, (size_t)(end - start - 2), &range_ms, NULL) < 0)
		return; // a subquery has its step
	int64_t step_s = range_ms / 1000 / STEPS;
	buf_put(out, start, (size_t)(end - start - 1));
	buf_printf(out, ":%" PRId64 "s]", step_s < 1 ? 1 : step_s > STEP_MAX_S ? STEP_MAX_S : step_s);
	*p = end;
}

// Returns the end of an offset at p; NULL when there is none.
static const char *skip_offset(const char *p)
{
	static const char *const words[] = {"offset", NULL};
	struct promql_token t = promql_next(&p);
	if (!promql_token_is_word(&t, words))
		return NULL;
	promql_next(&p);
	return p;
}

// Appends the completed selector `s`, which ends at *p, and moves *p behind what follows it.
static void put_completed(struct buf *out, const struct selector *s, const struct buf *equivalent, const char **p)
{
	const char *offset = skip_offset(*p);
	buf_puts(out, offset ? "last_over_time((" : "(");
	buf_put(out, s->name, (size_t)(*p - s->name));
	buf_put(out, equivalent->data, equivalent->len);
	buf_putc(out, ')');
	if (offset) { // only ranges and selectors have offsets
		buf_printf(out, "[1s:1s]%.*s)", (int)(offset - *p), *p);
		*p = offset;
	} else {
		put_range(out, p);
	}
}

int gpu_names_complete(struct buf *out, const char *query, unsigned set, struct err *e)
{
	const char *p = query, *copied = query;
	struct buf equivalent;
	int rc = 0;
	buf_init(&equivalent, out->max);
	for (struct promql_token t = promql_next(&p); rc == 0 && set && t.kind != PROMQL_TOKEN_END;
	     t = promql_next(&p)) {
		const char *end = t.kind == PROMQL_TOKEN_NAME && *p == '{' ? promql_skip_brackets(p, '{', '}') : NULL;
		struct selector s = {.name = t.start, .len = t.kind == PROMQL_TOKEN_NAME ? t.len : 0};
		if (end) {
			s.matchers = p + 1;
			s.n_matchers = (size_t)(end - p - 2);
			p = end;
		}
		buf_reset(&equivalent);
		for (int i = 0; rc == 0 && i < GPU_NAMES__COUNT; i++)
			rc = set & 1U << i ? put_equivalents(&equivalent, &s, (enum gpu_naming)i, e) : 0;
		if (equivalent.len == 0)
			continue;
		buf_put(out, copied, (size_t)(t.start - copied));
		put_completed(out, &s, &equivalent, &p);
		copied = p;
	}
	buf_puts(out, copied);
	buf_done(&equivalent);
	return rc == 0 && out->failed ? err_set(e, ERR_LIMIT, "the query is too long with the names of other exporters")
	                              : rc;
}
