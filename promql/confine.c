// SPDX-License-Identifier: Apache-2.0
// A strict parser of PromQL's grammar (Prometheus: promql/parser/generated_parser.y) that writes its input while it
// parses. It has two states: an operand is expected, or an operator. Every name in the output is therefore a selector
// with its matcher, or a word that no server parses as a selector. The server checks precedence and types.
//
// Servers disagree about where comments end (a '\r' ends one for Prometheus, not for VictoriaMetrics) and about
// backslashes in backquotes: comments are omitted, and such backslashes are refused.
#include "promql/confine.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/lexer.h"

#define SHOWN_BYTES 40 // of a token in a message

struct confiner {
	const char *query, *at; // at: after the token
	struct promql_token token;
	bool has_gap;              // preceded by whitespace or a comment
	const char *label, *value; // label NULL: none is enforced
	const char *matchers;      // added to every selector when no label is enforced
	struct buf *out;
	size_t *ret_offset;
	struct err *e;
	int depth;
};

// ---- tokens ----

static void advance(struct confiner *c)
{
	const char *before = c->at;
	c->token = promql_next(&c->at);
	c->has_gap = c->token.start != before;
}

// Writes the token and advances to the next one.
static void accept(struct confiner *c)
{
	if (c->has_gap && c->out->len > 0)
		buf_putc(c->out, ' ');
	buf_put(c->out, c->token.start, c->token.len);
	advance(c);
}

static bool is_sign(const struct confiner *c, char sign)
{
	return promql_token_is_sign(&c->token, sign);
}

static bool is_word(const struct confiner *c, const char *word)
{
	const char *const words[] = {word, NULL};
	return promql_token_is_word(&c->token, words);
}

// Returns whether `sign` follows the token directly, as the second character of an operator.
static bool is_followed_by(const struct confiner *c, char sign)
{
	return *c->at == sign;
}

static int refuse_at(struct confiner *c, const char *where, enum err_kind kind, const char *why)
{
	int line = 1, column = 1;
	for (const char *p = c->query; p < where; p++) {
		column = *p == '\n' ? 1 : column + 1;
		line += *p == '\n';
	}
	if (c->ret_offset)
		*c->ret_offset = (size_t)(where - c->query);
	return err_set(c->e, kind, "%d:%d: %s", line, column, why);
}

static int refuse(struct confiner *c, const char *why)
{
	return refuse_at(c, c->token.start, ERR_INPUT, why);
}

// Reports "expected WHAT, got ..".
static int expected(struct confiner *c, const char *what)
{
	struct err e = {0};
	int shown = c->token.len < SHOWN_BYTES ? (int)c->token.len : SHOWN_BYTES;
	if (c->token.kind == PROMQL_TOKEN_END)
		err_set(&e, ERR_INPUT, "expected %s, got the end of the query", what);
	else
		err_set(&e, ERR_INPUT, "expected %s, got %.*s", what, shown, c->token.start);
	return refuse(c, e.msg);
}

static int expect_sign(struct confiner *c, char sign, const char *shown)
{
	if (!is_sign(c, sign))
		return expected(c, shown);
	accept(c);
	return 0;
}

// ---- literals ----

static size_t count_digits(const char *p, size_t len)
{
	size_t n = 0;
	while (n < len && isdigit((unsigned char)p[n]))
		n++;
	return n;
}

// Returns the length of the digits, with or without a fraction; 0 when there are none.
static size_t count_decimal(const char *p, size_t len)
{
	size_t n = count_digits(p, len), fraction = 0;
	if (n < len && p[n] == '.')
		fraction = 1 + count_digits(p + n + 1, len - n - 1);
	return n + fraction > 1 || n == 1 ? n + fraction : 0;
}

static bool is_duration(const char *p, size_t len)
{
	static const char *const units[] = {"ms", "s", "m", "h", "d", "w", "y"};
	if (len == 0)
		return false;
	while (len > 0) {
		size_t n = count_decimal(p, len), unit = 0;
		for (size_t i = 0; n > 0 && unit == 0 && i < sizeof units / sizeof units[0]; i++) {
			size_t size = strlen(units[i]);
			if (len - n >= size && memcmp(p + n, units[i], size) == 0)
				unit = size;
		}
		if (unit == 0)
			return false;
		p += n + unit;
		len -= n + unit;
	}
	return true;
}

static bool is_number(const char *p, size_t len)
{
	if (len > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		for (size_t i = 2; i < len; i++)
			if (!isxdigit((unsigned char)p[i]))
				return false;
		return true;
	}
	size_t n = count_decimal(p, len);
	if (n > 0 && n < len && (p[n] == 'e' || p[n] == 'E')) {
		size_t sign = n + 1 < len && (p[n + 1] == '+' || p[n + 1] == '-');
		size_t exponent = count_digits(p + n + 1 + sign, len - n - 1 - sign);
		n = exponent ? n + 1 + sign + exponent : 0;
	}
	return n == len && n > 0;
}

// A number or a duration, which Prometheus 3 accepts in place of each other.
static int number(struct confiner *c, const char *what)
{
	if (c->token.kind != PROMQL_TOKEN_NUMBER ||
	    (!is_number(c->token.start, c->token.len) && !is_duration(c->token.start, c->token.len)))
		return expected(c, what);
	accept(c);
	return 0;
}

static int check_string(struct confiner *c)
{
	const struct promql_token *t = &c->token;
	if (t->is_open)
		return refuse(c, "the string is not closed");
	if (t->start[0] == '`' ? memchr(t->start, '\\', t->len) != NULL : memchr(t->start, '\n', t->len) != NULL)
		return refuse(c, t->start[0] == '`' ? "a backslash in backquotes means different things to different "
		                                      "servers: use double quotes"
		                                    : "the string has a line break: write \\n");
	return 0;
}

static int string(struct confiner *c)
{
	if (c->token.kind != PROMQL_TOKEN_STRING)
		return expected(c, "a string");
	if (check_string(c) < 0)
		return -1;
	accept(c);
	return 0;
}

// ---- selectors ----

static bool is_text(const char *start, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(start, text, len) == 0;
}

// Accepts a matcher on the enforced label only if it equals the one that would be added.
static int check_enforced(struct confiner *c, const char *where, bool is_equal)
{
	const struct promql_token *t = &c->token;
	struct err e = {0};
	if (is_equal && t->kind == PROMQL_TOKEN_STRING && !t->is_open && is_text(t->start + 1, t->len - 2, c->value))
		return 0;
	err_set(&e, ERR_INPUT, "the source confines policies of this namespace to %s=\"%s\": remove this matcher",
	        c->label, c->value);
	return refuse_at(c, where, ERR_INPUT, e.msg);
}

static int match_operator(struct confiner *c, bool *ret_is_equal)
{
	bool is_equal = is_sign(c, '='), is_not = is_sign(c, '!');
	*ret_is_equal = is_equal && !is_followed_by(c, '~');
	if (*ret_is_equal) {
		accept(c);
		return 0;
	}
	if ((!is_equal && !is_not) || (is_not && !is_followed_by(c, '=') && !is_followed_by(c, '~')))
		return expected(c, "=, !=, =~ or !~");
	accept(c);
	accept(c);
	return 0;
}

// One of the items in braces: label="value", or the quoted name of a metric.
static int matcher(struct confiner *c, bool *has)
{
	const struct promql_token t = c->token;
	bool is_equal, is_string = t.kind == PROMQL_TOKEN_STRING;
	if (!is_string && t.kind != PROMQL_TOKEN_NAME)
		return expected(c, "a label");
	if (is_string && check_string(c) < 0)
		return -1;
	accept(c);
	if (is_string && (is_sign(c, ',') || is_sign(c, '}')))
		return 0;
	if (match_operator(c, &is_equal) < 0)
		return -1;
	bool is_enforced =
	        c->label && (is_string ? is_text(t.start + 1, t.len - 2, c->label) : is_text(t.start, t.len, c->label));
	if (is_enforced && check_enforced(c, t.start, is_equal) < 0)
		return -1;
	*has |= is_enforced && !is_string;
	return string(c);
}

static void add_enforced(struct confiner *c)
{
	if (c->label)
		buf_printf(c->out, "%s=\"%s\"", c->label, c->value);
	else
		buf_puts(c->out, c->matchers);
}

static int braces(struct confiner *c)
{
	bool has = false, needs_comma = false;
	accept(c);
	while (!is_sign(c, '}')) {
		if (matcher(c, &has) < 0)
			return -1;
		needs_comma = !is_sign(c, ',');
		if (!needs_comma)
			accept(c);
		else if (!is_sign(c, '}'))
			return expected(c, "a comma or }");
	}
	if (!has && needs_comma)
		buf_putc(c->out, ',');
	if (!has)
		add_enforced(c);
	accept(c);
	return 0;
}

// ---- expressions ----

static int expression(struct confiner *c);

static int label_list(struct confiner *c)
{
	if (expect_sign(c, '(', "a list of labels in parentheses") < 0)
		return -1;
	while (!is_sign(c, ')')) {
		if (c->token.kind == PROMQL_TOKEN_STRING ? check_string(c) < 0 : c->token.kind != PROMQL_TOKEN_NAME)
			return c->token.kind == PROMQL_TOKEN_STRING ? -1 : expected(c, "a label");
		accept(c);
		if (is_sign(c, ','))
			accept(c);
		else if (!is_sign(c, ')'))
			return expected(c, "a comma or )");
	}
	accept(c);
	return 0;
}

static int arguments(struct confiner *c)
{
	if (expect_sign(c, '(', "(") < 0)
		return -1;
	while (!is_sign(c, ')')) {
		if (expression(c) < 0)
			return -1;
		if (is_sign(c, ')'))
			break;
		if (expect_sign(c, ',', "an operator, a comma or )") < 0)
			return -1;
		if (is_sign(c, ')'))
			return expected(c, "an argument");
	}
	accept(c);
	return 0;
}

static bool is_grouping(const struct confiner *c)
{
	return is_word(c, "by") || is_word(c, "without");
}

static int aggregation(struct confiner *c)
{
	accept(c);
	bool is_grouped = is_grouping(c);
	if (is_grouped) {
		accept(c);
		if (label_list(c) < 0)
			return -1;
	}
	if (arguments(c) < 0)
		return -1;
	if (is_grouped || !is_grouping(c))
		return 0;
	accept(c);
	return label_list(c);
}

static bool is_function(const struct promql_token *t)
{
	for (const char *const *f = promql_functions; *f; f++) // unlike keywords, functions are case-sensitive
		if (is_text(t->start, t->len, *f))
			return true;
	return false;
}

static int keyword_as_name(struct confiner *c)
{
	struct err e = {0};
	err_set(&e, ERR_INPUT, "%.*s is a keyword here: write a metric of that name as {__name__=\"%.*s\"}",
	        (int)c->token.len, c->token.start, (int)c->token.len, c->token.start);
	return refuse(c, e.msg);
}

static int name(struct confiner *c)
{
	static const char *const numbers[] = {"inf", "nan", NULL};
	const char *ahead = c->at;
	struct promql_token next = promql_next(&ahead);
	bool is_call = promql_token_is_sign(&next, '(');
	if (promql_token_is_word(&c->token, numbers)) {
		accept(c);
		return 0;
	}
	if (promql_token_is_word(&c->token, promql_aggregations)) {
		static const char *const grouping[] = {"by", "without", NULL};
		return is_call || promql_token_is_word(&next, grouping) ? aggregation(c) : keyword_as_name(c);
	}
	if (promql_token_is_word(&c->token, promql_label_list_words) ||
	    promql_token_is_word(&c->token, promql_other_words))
		return keyword_as_name(c);
	if (is_call) {
		if (!is_function(&c->token))
			return expected(c, "a function of Prometheus that reads its arguments alone");
		accept(c);
		return arguments(c);
	}
	accept(c);
	if (is_sign(c, '{'))
		return braces(c);
	buf_putc(c->out, '{');
	add_enforced(c);
	buf_putc(c->out, '}');
	return 0;
}

static int operand(struct confiner *c)
{
	switch (c->token.kind) {
	case PROMQL_TOKEN_NAME:
		return name(c);
	case PROMQL_TOKEN_NUMBER:
		return number(c, "a number");
	case PROMQL_TOKEN_STRING:
		return string(c);
	default:
		break;
	}
	if (is_sign(c, '{'))
		return braces(c);
	if (expect_sign(c, '(', "a metric, a function, a number or (") < 0 || expression(c) < 0)
		return -1;
	return expect_sign(c, ')', "an operator or )");
}

// [5m], [1h:] and [1h:1m]. For the lexer, a colon starts a name.
static int range(struct confiner *c)
{
	static const char what[] = "a duration such as 5m";
	accept(c);
	if (number(c, what) < 0)
		return -1;
	if (c->token.kind == PROMQL_TOKEN_NAME && c->token.start[0] == ':') {
		size_t len = c->token.len - 1;
		if (len > 0 && !is_duration(c->token.start + 1, len) && !is_number(c->token.start + 1, len))
			return expected(c, what);
		accept(c);
		if (len == 0 && c->token.kind == PROMQL_TOKEN_NUMBER && number(c, what) < 0)
			return -1;
	}
	return expect_sign(c, ']', "]");
}

static int at_modifier(struct confiner *c)
{
	accept(c);
	if (is_word(c, "start") || is_word(c, "end")) {
		accept(c);
		if (expect_sign(c, '(', "(") < 0)
			return -1;
		return expect_sign(c, ')', ")");
	}
	if (is_sign(c, '-') || is_sign(c, '+'))
		accept(c);
	return number(c, "a time in seconds, start() or end()");
}

static int modifiers(struct confiner *c)
{
	for (;;) {
		int rc = 0;
		if (is_sign(c, '[')) {
			rc = range(c);
		} else if (is_sign(c, '@')) {
			rc = at_modifier(c);
		} else if (is_word(c, "offset")) {
			accept(c);
			if (is_sign(c, '-') || is_sign(c, '+'))
				accept(c);
			rc = number(c, "a duration such as 5m");
		} else {
			return 0;
		}
		if (rc < 0)
			return -1;
	}
}

// Returns 1 for an operator, 0 when the expression ends here.
static int operator(struct confiner *c)
{
	static const char *const words[] = {"and", "or", "unless", "atan2", NULL};
	bool is_comparison = (is_sign(c, '=') || is_sign(c, '!')) && is_followed_by(c, '=');
	if (is_comparison) {
		accept(c);
		accept(c);
	} else if (is_sign(c, '<') || is_sign(c, '>')) {
		bool or_equal = is_followed_by(c, '=');
		is_comparison = true;
		accept(c);
		if (or_equal)
			accept(c);
	} else if (promql_token_is_word(&c->token, words) ||
	           (c->token.kind == PROMQL_TOKEN_SIGN && strchr("+-*/%^", *c->token.start))) {
		accept(c);
	} else {
		return 0;
	}
	if (is_comparison && is_word(c, "bool"))
		accept(c);
	if (!is_word(c, "on") && !is_word(c, "ignoring"))
		return 1;
	accept(c);
	if (label_list(c) < 0)
		return -1;
	if (!is_word(c, "group_left") && !is_word(c, "group_right"))
		return 1;
	accept(c);
	return is_sign(c, '(') && label_list(c) < 0 ? -1 : 1;
}

static int expression(struct confiner *c)
{
	int more;
	if (++c->depth > CONFINE_DEPTH_MAX)
		return refuse_at(c, c->token.start, ERR_LIMIT,
		                 "the query is nested too deeply: 64 levels are the most");
	_Static_assert(CONFINE_DEPTH_MAX == 64, "the message names it");
	do {
		while (is_sign(c, '-') || is_sign(c, '+'))
			accept(c);
		if (operand(c) < 0 || modifiers(c) < 0)
			return -1;
		more = operator(c);
	} while (more > 0);
	c->depth--;
	return more;
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

static int confine(struct confiner *c)
{
	advance(c);
	if (expression(c) < 0)
		return -1;
	if (c->token.kind != PROMQL_TOKEN_END)
		return expected(c, "an operator or the end of the query");
	if (c->out->failed)
		return err_set(c->e, ERR_LIMIT, "the query is too long once it is confined; the ceiling is %zu bytes",
		               c->out->max);
	return 0;
}

int confine_query(struct buf *out, const char *query, const char *label, const char *value, size_t *ret_offset,
                  struct err *e)
{
	struct confiner c = {.query = query,
	                     .at = query,
	                     .label = label,
	                     .value = value,
	                     .out = out,
	                     .ret_offset = ret_offset,
	                     .e = e};
	if (ret_offset)
		*ret_offset = 0;
	if (!is_value(value))
		return err_set(e, ERR_INPUT, "\"%.80s\" is not a valid namespace", value);
	return confine(&c);
}

int confine_add_matchers(struct buf *out, const char *query, const char *matchers, struct err *e)
{
	struct confiner c = {.query = query, .at = query, .matchers = matchers, .out = out, .e = e};
	return confine(&c);
}

int confine_check_matchers(struct buf *out, const char *matchers, struct err *e)
{
	struct confiner c = {.query = matchers, .at = matchers, .out = out, .e = e};
	bool unused;
	for (advance(&c);; accept(&c)) {
		if (c.token.kind != PROMQL_TOKEN_NAME || is_word(&c, "__name__") ||
		    memchr(c.token.start, ':', c.token.len))
			return expected(&c, "a label, as in job=\"gpuscale-exporter/gpuscale-exporter\"");
		if (matcher(&c, &unused) < 0)
			return -1;
		if (c.token.kind == PROMQL_TOKEN_END)
			break;
		if (!is_sign(&c, ','))
			return expected(&c, "a comma or the end of the matchers");
	}
	return out->failed ? err_set(e, ERR_LIMIT, "the matchers are too long: %zu bytes are the most", out->max) : 0;
}
