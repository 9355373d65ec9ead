// SPDX-License-Identifier: Apache-2.0
// Writes the query while the strict reader of promql/syntax.h reads it, and completes every selector. Comments are
// omitted.
#include "promql/confine.h"

#include <ctype.h>

#include "base/base.h"
#include "promql/promql.h"
#include "promql/syntax.h"

struct confiner {
	struct promql_syntax syntax;
	const char *label, *value; // label NULL: none is enforced
	const char *matchers;      // added to every selector when no label is enforced
	bool has;                  // the selector has the enforced matcher; or the flag is nothing but matchers
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
	if (!c->label || m->is_name ||
	    !(is_string ? is_text(label->start + 1, label->len - 2, c->label)
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
	if (!c->has) {
		buf_puts(c->out, has_braces ? (needs_comma ? "," : "") : "{");
		if (c->label)
			buf_printf(c->out, "%s=\"%s\"", c->label, c->value);
		else
			buf_puts(c->out, c->matchers);
		buf_puts(c->out, has_braces ? "" : "}");
	}
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

// Reads `query` and writes it as the hooks of `c` do. `skip` characters at its start are not the caller's.
static int confine(struct confiner *c, const char *query, size_t skip, size_t *ret_offset, struct err *e)
{
	struct promql_value v;
	size_t offset = 0, len;
	struct err why;
	c->syntax.query = query;
	c->syntax.is_strict = true;
	c->syntax.arg = c;
	if (promql_syntax_read(&c->syntax, &v, &offset, &len, &why) < 0) {
		int line = 1, column = 1;
		for (const char *p = query + skip; p < query + offset; p++) {
			column = *p == '\n' ? 1 : column + 1;
			line += *p == '\n';
		}
		if (ret_offset)
			*ret_offset = offset;
		return err_set(e, why.kind, "%d:%d: %s", line, column, why.msg);
	}
	if (c->out->failed)
		return err_set(e, ERR_LIMIT, "the query is too long once it is confined; the ceiling is %zu bytes",
		               c->out->max);
	return 0;
}

int confine_query(struct buf *out, const char *query, const char *label, const char *value, size_t *ret_offset,
                  struct err *e)
{
	struct confiner c = {.label = label, .value = value, .out = out};
	c.syntax = (struct promql_syntax){.token = put_token, .matcher = check_matcher, .selector = complete_selector};
	if (ret_offset)
		*ret_offset = 0;
	if (!is_value(value))
		return err_set(e, ERR_INPUT, "\"%.80s\" is not a valid namespace", value);
	return confine(&c, query, 0, ret_offset, e);
}

int confine_add_matchers(struct buf *out, const char *query, const char *matchers, struct err *e)
{
	struct confiner c = {.matchers = matchers, .out = out};
	c.syntax = (struct promql_syntax){.token = put_token, .selector = complete_selector};
	return confine(&c, query, 0, NULL, e);
}

// ---- matchers of a flag ----

// Writes the tokens between the braces that confine_check_matchers() adds.
static void put_inner_token(void *arg, const struct promql_token *token, bool has_gap)
{
	struct confiner *c = arg;
	if (token->start == c->syntax.query || promql_token_is_sign(token, '}'))
		return;
	buf_put(c->out, token->start, token->len);
}

static int check_flag_matcher(void *arg, const struct promql_matcher *m)
{
	struct confiner *c = arg;
	const struct promql_token *label = &m->label;
	if (label->kind == PROMQL_TOKEN_NAME && !is_text(label->start, label->len, "__name__") &&
	    !memchr(label->start, ':', label->len))
		return 0;
	return promql_syntax_refuse(&c->syntax, label->start,
	                            "expected a label, as in job=\"gpuscale-exporter/gpuscale-exporter\"");
}

// The brace that closes the first selector must be the last character, which was added.
static void check_flag_end(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                           bool may_be_empty, struct promql_value *value)
{
	struct confiner *c = arg;
	c->has = c->has && needs_comma && c->syntax.next.start[1] == '\0';
}

int confine_check_matchers(struct buf *out, const char *matchers, struct err *e)
{
	struct confiner c = {.out = out, .has = true};
	struct buf query;
	c.syntax = (struct promql_syntax){
	        .token = put_inner_token, .matcher = check_flag_matcher, .selector = check_flag_end};
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	buf_printf(&query, "{%s}", matchers);
	int rc = query.failed ? err_set(e, ERR_LIMIT, "the matchers are too long: %d bytes are the most",
	                                PROMQL_QUERY_BYTES_MAX)
	                      : confine(&c, buf_str(&query), 1, NULL, e);
	if (rc == 0 && !c.has)
		rc = err_set(e, ERR_INPUT,
		             "1:1: expected matchers with commas between them, as in job=\"a\",env=\"b\"");
	buf_done(&query);
	return rc;
}
