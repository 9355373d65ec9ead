// SPDX-License-Identifier: Apache-2.0
// Writes the query while the strict reader of promql/syntax.h reads it, and completes every selector. Comments are
// omitted.
#include "promql/confine.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/syntax.h"

struct confiner {
	struct promql_syntax syntax;
	const char *label, *value;
	bool has; // the selector has the matcher
	struct buf *out;
};

static void put_token(void *arg, const struct promql_token *token, bool has_gap)
{
	struct confiner *c = arg;
	if (has_gap && c->out->len > 0)
		buf_putc(c->out, ' ');
	buf_put(c->out, token->start, token->len);
}

static bool is_text(const char *start, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(start, text, len) == 0;
}

// Accepts a matcher on the enforced label only if it equals the one that would be added.
static int check_matcher(void *arg, const struct promql_matcher *m)
{
	struct confiner *c = arg;
	const struct promql_token *label = &m->label, *value = &m->value;
	bool is_string = label->kind == PROMQL_TOKEN_STRING;
	struct err e = {0};
	if (m->is_name || !(is_string ? is_text(label->start + 1, label->len - 2, c->label)
	                              : is_text(label->start, label->len, c->label)))
		return 0;
	if (!m->is_not && !m->is_regex && value->kind == PROMQL_TOKEN_STRING && !value->is_open &&
	    is_text(value->start + 1, value->len - 2, c->value)) {
		c->has |= !is_string;
		return 0;
	}
	err_set(&e, ERR_INPUT, "the source confines policies of this namespace to %s=\"%s\": remove this matcher",
	        c->label, c->value);
	return promql_syntax_refuse(&c->syntax, label->start, e.msg);
}

static void complete_selector(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                              bool may_be_empty, struct promql_value *value)
{
	struct confiner *c = arg;
	(void)name;
	(void)may_be_empty;
	(void)value;
	if (!c->has)
		buf_printf(c->out, "%s%s=\"%s\"%s", has_braces ? (needs_comma ? "," : "") : "{", c->label, c->value,
		           has_braces ? "" : "}");
	c->has = false;
}

// ---- public functions ----

static bool is_value(const char *value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
	return value[0] && value[strspn(value, letters)] == '\0';
}

bool confine_label_is_valid(const char *label)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	return label[0] && !isdigit((unsigned char)label[0]) && label[strspn(label, letters)] == '\0' &&
	       strcmp(label, "__name__") != 0;
}

int confine_query(struct buf *out, const char *query, const char *label, const char *value, size_t *ret_offset,
                  struct err *e)
{
	struct confiner c = {.label = label, .value = value, .out = out};
	struct promql_value v;
	size_t offset = 0, len;
	struct err why;
	c.syntax = (struct promql_syntax){.query = query,
	                                  .is_strict = true,
	                                  .arg = &c,
	                                  .token = put_token,
	                                  .matcher = check_matcher,
	                                  .selector = complete_selector};
	if (ret_offset)
		*ret_offset = 0;
	if (!is_value(value))
		return err_set(e, ERR_INPUT, "\"%.80s\" is not a valid namespace", value);
	if (promql_syntax_read(&c.syntax, &v, &offset, &len, &why) < 0) {
		int line = 1, column = 1;
		for (const char *p = query; p < query + offset; p++) {
			column = *p == '\n' ? 1 : column + 1;
			line += *p == '\n';
		}
		if (ret_offset)
			*ret_offset = offset;
		return err_set(e, why.kind, "%d:%d: %s", line, column, why.msg);
	}
	if (out->failed)
		return err_set(e, ERR_LIMIT, "the query is too long once it is confined; the ceiling is %zu bytes",
		               out->max);
	return 0;
}
