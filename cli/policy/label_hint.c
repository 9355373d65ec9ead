// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/label_hint.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "promql/syntax.h"

#define LABELS_MAX 16 // of a selector; further ones keep their names

static const char prefix[] = "exported_";
#define PREFIX_LEN (sizeof prefix - 1)

struct finder {
	struct promql_token labels[LABELS_MAX]; // of the current selector, then of the one that was found
	size_t n;
	const char *brace;     // the last one that was opened
	const char *from, *to; // the selector that was found; NULL: none
	bool is_exported;      // its labels have the prefix
};

static bool has_prefix(const struct promql_token *t)
{
	return t->len > PREFIX_LEN && strncmp(t->start, prefix, PREFIX_LEN) == 0;
}

// The labels of a target that a scrape keeps apart from those of the series.
static bool is_renamed(const struct promql_token *t, bool is_exported)
{
	static const char *const of_targets[] = {"container", "namespace", "pod", NULL};
	return is_exported ? has_prefix(t) : promql_token_is_word(t, of_targets);
}

static void on_token(void *arg, const struct promql_token *t, bool has_gap)
{
	struct finder *f = arg;
	if (promql_token_is_sign(t, '{') && !f->from) {
		f->brace = t->start;
		f->n = 0;
	}
}

static int on_matcher(void *arg, const struct promql_matcher *m)
{
	struct finder *f = arg;
	if (!f->from && f->n < LABELS_MAX && m->label.kind == PROMQL_TOKEN_NAME)
		f->labels[f->n++] = m->label;
	return 0;
}

static void on_selector(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                        bool may_be_empty, struct promql_value *value)
{
	struct finder *f = arg;
	if (f->from || !has_braces)
		return;
	bool any = false;
	f->is_exported = false;
	for (size_t i = 0; i < f->n; i++)
		f->is_exported |= has_prefix(&f->labels[i]);
	for (size_t i = 0; i < f->n; i++)
		any |= is_renamed(&f->labels[i], f->is_exported);
	f->to = any ? promql_skip_brackets(f->brace, '{', '}') : NULL;
	f->from = !f->to ? NULL : name->kind == PROMQL_TOKEN_END ? f->brace : name->start;
}

static void put_name(struct buf *out, const struct finder *f, const struct promql_token *label)
{
	buf_puts(out, f->is_exported ? "" : prefix);
	buf_put(out, label->start + (f->is_exported ? PREFIX_LEN : 0), label->len - (f->is_exported ? PREFIX_LEN : 0));
}

bool label_hint_query(const char *query, struct buf *out, char ret_written[LABEL_HINT_BYTES],
                      char ret_other[LABEL_HINT_BYTES])
{
	struct finder f = {.n = 0};
	struct promql_syntax s = {
	        .query = query, .arg = &f, .token = on_token, .matcher = on_matcher, .selector = on_selector};
	struct promql_value value;
	struct err e;
	size_t offset, len;
	if (promql_syntax_read(&s, &value, &offset, &len, &e) < 0 || !f.from)
		return false;
	const char *at = f.from;
	bool is_first = true;
	buf_puts(out, "count(");
	for (size_t i = 0; i < f.n; i++) {
		const struct promql_token *label = &f.labels[i];
		if (!is_renamed(label, f.is_exported))
			continue;
		size_t before = out->len + (size_t)(label->start - at);
		buf_put(out, at, (size_t)(label->start - at));
		put_name(out, &f, label);
		at = label->start + label->len;
		if (is_first && !out->failed) {
			snprintf(ret_written, LABEL_HINT_BYTES, "%.*s", (int)label->len, label->start);
			snprintf(ret_other, LABEL_HINT_BYTES, "%s", buf_str(out) + before);
		}
		is_first = false;
	}
	buf_put(out, at, (size_t)(f.to - at));
	buf_puts(out, ") unless count(");
	buf_put(out, f.from, (size_t)(f.to - f.from));
	buf_putc(out, ')');
	return !out->failed;
}
