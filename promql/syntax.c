// SPDX-License-Identifier: Apache-2.0
// A recursive descent over PromQL's grammar (Prometheus: promql/parser/generated_parser.y and the type checks of
// parse.go). Every name that it accepts is a selector or a word that no server parses as a selector.
//
// Servers disagree about where comments end (a '\r' ends one for Prometheus, not for VictoriaMetrics) and about
// backslashes in backquotes: a strict reader refuses such backslashes.
#include "promql/syntax.h"

#include "base/base.h"

#define SHOWN_BYTES   40 // longest token in a message
#define MESSAGE_BYTES 256

// ---- tokens ----

static void advance(struct promql_syntax *s)
{
	const char *before = s->at;
	s->next = promql_next(&s->at);
	s->has_gap = s->next.start != before;
}

static void accept(struct promql_syntax *s)
{
	if (s->token)
		s->token(s->arg, &s->next, s->has_gap);
	s->end = s->next.start + s->next.len;
	advance(s);
}

static bool is_sign(const struct promql_syntax *s, char sign)
{
	return promql_token_is_sign(&s->next, sign);
}

static bool is_word(const struct promql_syntax *s, const char *word)
{
	const char *const words[] = {word, NULL};
	return promql_token_is_word(&s->next, words);
}

// Returns whether `sign` follows the token directly, as the second character of an operator.
static bool is_followed_by(const struct promql_syntax *s, char sign)
{
	return *s->at == sign;
}

// Returns whether the token behind the next one is `sign`.
static bool is_before(const struct promql_syntax *s, char sign)
{
	const char *ahead = s->at;
	struct promql_token t = promql_next(&ahead);
	return promql_token_is_sign(&t, sign);
}

static int refuse_at(struct promql_syntax *s, const char *where, size_t len, enum err_kind kind, const char *why)
{
	s->error_at = (size_t)(where - s->query);
	s->error_len = len;
	return err_set(s->e, kind, "%s", why);
}

static int refuse(struct promql_syntax *s, const char *why)
{
	return refuse_at(s, s->next.start, s->next.len, ERR_INPUT, why);
}

int promql_syntax_refuse(struct promql_syntax *s, const char *where, const char *why)
{
	return refuse_at(s, where, 1, ERR_INPUT, why);
}

// Placeholders that another program replaces: $x, ${x}, [[x]], {{ x }}.
static int refuse_placeholder(struct promql_syntax *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const char *p = s->next.start;
	if (*p == '{')
		return refuse_at(s, p, 2, ERR_INPUT, "a template must be rendered first: write the value");
	size_t len = 1 + strspn(p + 1, letters);
	if (p[1] == '{')
		len = 1 + strcspn(p + 1, "}\n") + 1;
	if (len > strlen(p))
		len = strlen(p);
	return refuse_at(
	        s, p, len, ERR_INPUT,
	        "is a placeholder that only a dashboard replaces: write its value, such as [5m] or \"team-a\"");
}

// Reports "expected WHAT, got ..".
static int expected(struct promql_syntax *s, const char *what)
{
	char why[MESSAGE_BYTES];
	int shown = s->next.len < SHOWN_BYTES ? (int)s->next.len : SHOWN_BYTES;
	bool is_end = s->next.kind == PROMQL_TOKEN_END;
	if (!s->is_strict && (is_sign(s, '$') || (is_sign(s, '{') && is_followed_by(s, '{'))))
		return refuse_placeholder(s);
	if (!s->is_strict && is_end && s->open) {
		snprintf(why, sizeof why, "this %c is never closed", *s->open);
		return refuse_at(s, s->open, 1, ERR_INPUT, why);
	}
	if (is_end)
		snprintf(why, sizeof why, "expected %s, got the end of the query", what);
	else
		snprintf(why, sizeof why, "expected %s, got %.*s", what, shown, s->next.start);
	return refuse(s, why);
}

static int expect_sign(struct promql_syntax *s, char sign, const char *shown)
{
	if (!is_sign(s, sign))
		return expected(s, shown);
	accept(s);
	return 0;
}

// Reports a mistake in query[start..end).
__attribute__((format(printf, 4, 5))) static void mistake(struct promql_syntax *s, const char *start, const char *end,
                                                          const char *fmt, ...)
{
	char message[MESSAGE_BYTES];
	va_list ap;
	if (!s->mistake)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	s->mistake(s->arg, (size_t)(start - s->query), (size_t)(end - start), message);
}

// ---- literals ----

// Checks that p[0..len) is a number or a duration, which Prometheus 3 accepts in place of each other. Durations have
// whole numbers, largest unit first; other servers take more, which only the server knows.
static int check_number(struct promql_syntax *s, const char *p, size_t len, const char *what)
{
	int64_t ms;
	struct err e;
	if (promql_is_number(p, len))
		return 0;
	if (!promql_is_duration(p, len))
		return expected(s, what);
	return s->is_strict || num_parse_duration_ms(p, len, &ms, &e) == 0 ? 0 : refuse_at(s, p, len, ERR_INPUT, e.msg);
}

static int number(struct promql_syntax *s, const char *what)
{
	const struct promql_token *t = &s->next;
	if (t->kind != PROMQL_TOKEN_NUMBER)
		return expected(s, what);
	if (check_number(s, t->start, t->len, what) < 0)
		return -1;
	accept(s);
	return 0;
}

static int check_string(struct promql_syntax *s)
{
	const struct promql_token *t = &s->next;
	if (t->is_open)
		return refuse(s, "the string is not closed");
	if (t->start[0] != '`' && memchr(t->start, '\n', t->len))
		return refuse(s, "the string has a line break: write \\n");
	if (s->is_strict)
		return t->start[0] == '`' && memchr(t->start, '\\', t->len)
		               ? refuse(s, "a backslash in backquotes means different things to different "
		                           "servers: use double quotes")
		               : 0;
	for (const char *p = t->start + 1; t->start[0] != '`' && p < t->start + t->len - 1; p++) {
		size_t n = *p == '\\' ? promql_escape_len(p, t->start[0]) : 1;
		if (n == 0)
			return refuse_at(s, p, 2, ERR_INPUT,
			                 "is not a valid escape: for a backslash write \\\\, or quote with backquotes");
		p += n - 1;
	}
	return 0;
}

static int string(struct promql_syntax *s)
{
	if (s->next.kind != PROMQL_TOKEN_STRING)
		return expected(s, "a string");
	if (check_string(s) < 0)
		return -1;
	accept(s);
	return 0;
}

// ---- selectors ----

static int match_operator(struct promql_syntax *s, struct promql_matcher *m)
{
	m->is_not = is_sign(s, '!');
	m->is_regex = is_followed_by(s, '~');
	bool is_long = m->is_regex || (m->is_not && is_followed_by(s, '='));
	if (!is_sign(s, '=') && !(m->is_not && is_long))
		return expected(s, "=, !=, =~ or !~");
	accept(s);
	if (is_long)
		accept(s);
	return 0;
}

// One of the items in braces: label="value", or the quoted name of a metric.
static int matcher(struct promql_syntax *s)
{
	struct promql_matcher m = {.label = s->next};
	bool is_string = m.label.kind == PROMQL_TOKEN_STRING;
	if (!is_string && m.label.kind != PROMQL_TOKEN_NAME)
		return expected(s, "a label");
	if (is_string && check_string(s) < 0)
		return -1;
	if (!s->is_strict && !is_string && memchr(m.label.start, ':', m.label.len))
		return refuse(s, "a label with a colon needs quotes");
	accept(s);
	m.is_name = is_string && (is_sign(s, ',') || is_sign(s, '}'));
	if (!m.is_name && match_operator(s, &m) < 0)
		return -1;
	m.value = s->next;
	if (s->matcher && s->matcher(s->arg, &m) < 0)
		return -1;
	return m.is_name ? 0 : string(s);
}

static void end_selector(struct promql_syntax *s, const struct promql_token *name, bool has_braces, bool needs_comma,
                         struct promql_value *v)
{
	v->type = PROMQL_VALUE_VECTOR;
	if (s->selector)
		s->selector(s->arg, name, has_braces, needs_comma, s->is_label_argument, v);
	s->is_label_argument = false;
}

static int braces(struct promql_syntax *s, const struct promql_token *name, struct promql_value *v)
{
	bool needs_comma = false;
	const char *outer = s->open;
	s->open = s->next.start;
	accept(s);
	while (!is_sign(s, '}')) {
		if (matcher(s) < 0)
			return -1;
		needs_comma = !is_sign(s, ',');
		if (!needs_comma)
			accept(s);
		else if (!is_sign(s, '}'))
			return expected(s, "a comma or }");
	}
	end_selector(s, name, true, needs_comma, v);
	accept(s);
	s->open = outer;
	return 0;
}

// ---- calls ----

static int expression(struct promql_syntax *s, struct promql_value *v);

static int label_list(struct promql_syntax *s, bool *ret_has)
{
	const char *outer = s->open, *open = s->next.start;
	if (expect_sign(s, '(', "a list of labels in parentheses") < 0)
		return -1;
	s->open = open;
	*ret_has = !is_sign(s, ')');
	while (!is_sign(s, ')')) {
		if (s->next.kind == PROMQL_TOKEN_STRING ? check_string(s) < 0 : s->next.kind != PROMQL_TOKEN_NAME)
			return s->next.kind == PROMQL_TOKEN_STRING ? -1 : expected(s, "a label");
		accept(s);
		if (is_sign(s, ','))
			accept(s);
		else if (!is_sign(s, ')'))
			return expected(s, "a comma or )");
	}
	accept(s);
	s->open = outer;
	return 0;
}

static const char *const type_names[] = {"anything", "a scalar", "an instant vector", "a range vector", "a string"};
_Static_assert(sizeof type_names / sizeof type_names[0] == PROMQL_VALUE_TYPE__COUNT, "one name per type");

static void report_argument(struct promql_syntax *s, const struct promql_function *f, enum promql_value_type type,
                            const struct promql_value *v)
{
	if (type == PROMQL_VALUE_RANGE && v->type == PROMQL_VALUE_VECTOR)
		mistake(s, v->start, v->end,
		        "%s() needs a range vector, got an instant vector: add a range such as [5m]", f->name);
	else if (type == PROMQL_VALUE_VECTOR && v->type == PROMQL_VALUE_RANGE)
		mistake(s, v->start, v->end,
		        "%s() needs an instant vector, got a range vector: apply a function such as rate() or "
		        "avg_over_time() to it first",
		        f->name);
	else
		mistake(s, v->start, v->end, "%s() needs %s here, got %s", f->name, type_names[type],
		        type_names[v->type]);
}

static void report_count(struct promql_syntax *s, const struct promql_function *f, const struct promql_token *name,
                         size_t n)
{
	int wanted = n < f->least ? f->least : f->most;
	mistake(s, name->start, name->start + name->len, "%s() needs %s%d argument%s, got %zu", f->name,
	        f->least == f->most ? ""
	        : n < f->least      ? "at least "
	                            : "at most ",
	        wanted, wanted == 1 ? "" : "s", n);
}

// f: NULL for an unknown function.
static int arguments(struct promql_syntax *s, const struct promql_function *f, struct promql_arguments *a)
{
	const char *outer = s->open, *open = s->next.start;
	*a = (struct promql_arguments){.data = promql_value_unknown,
	                               .limit = {promql_value_unknown, promql_value_unknown}};
	if (expect_sign(s, '(', "(") < 0)
		return -1;
	s->open = open;
	while (!is_sign(s, ')')) {
		struct promql_value v;
		s->is_label_argument = f && f->reads_more && a->n == 1;
		if (expression(s, &v) < 0)
			return -1;
		s->is_label_argument = false;
		promql_arguments_add(a, f, &v);
		if (is_sign(s, ')'))
			break;
		if (expect_sign(s, ',', "an operator, a comma or )") < 0)
			return -1;
		if (is_sign(s, ')'))
			return expected(s, "an argument");
	}
	accept(s);
	s->open = outer;
	return 0;
}

// Reads by (..) or without (..). Returns whether it is there; -1 on error.
static int grouping(struct promql_syntax *s)
{
	bool has;
	if (!is_word(s, "by") && !is_word(s, "without"))
		return 0;
	accept(s);
	return label_list(s, &has) < 0 ? -1 : 1;
}

static void report_function(struct promql_syntax *s, const struct promql_token *name, bool is_of_thanos)
{
	const char *end = name->start + name->len, *similar = promql_function_similar(name->start, name->len);
	int len = name->len < SHOWN_BYTES ? (int)name->len : SHOWN_BYTES;
	if (is_of_thanos)
		mistake(s, name->start, end, "only Thanos has the function %.*s()", len, name->start);
	else if (similar)
		mistake(s, name->start, end, "Prometheus has no function %.*s(): did you mean %s()?", len, name->start,
		        similar);
	else
		mistake(s, name->start, end,
		        "Prometheus has no function %.*s(): correct its name, or name the server that has it (check "
		        "--dialect)",
		        len, name->start);
}

// is_aggregation: by (..) or without (..) may stand before or behind the arguments.
static int call(struct promql_syntax *s, struct promql_value *v, bool is_aggregation)
{
	const struct promql_token name = s->next;
	const struct promql_function *f = promql_function_find(name.start, name.len);
	struct promql_arguments a;
	bool is_of_thanos = f && f->is_thanos && !s->is_thanos;
	if (is_of_thanos)
		f = NULL;
	if (s->is_strict && (!f || f->reads_more))
		return expected(s, "a function of Prometheus that reads its arguments alone");
	if (!f)
		report_function(s, &name, is_of_thanos);
	accept(s);
	int is_grouped = is_aggregation ? grouping(s) : 0;
	if (is_grouped < 0 || arguments(s, f, &a) < 0)
		return -1;
	if (f) {
		if (a.n < f->least || a.n > f->most)
			report_count(s, f, &name, a.n);
		else if (a.expected != PROMQL_VALUE_ANY)
			report_argument(s, f, a.expected, &a.wrong);
		promql_value_apply(f, &name, &a, v);
	}
	return is_aggregation && !is_grouped && grouping(s) < 0 ? -1 : 0;
}

// ---- operands ----

// Words that are never the name of a metric.
static const char *const reserved[] = {"on", "ignoring", "group_left", "group_right", "bool", "atan2", NULL};

static int name(struct promql_syntax *s, struct promql_value *v)
{
	static const char *const numbers[] = {"inf", "nan", NULL}, *const grouping[] = {"by", "without", NULL};
	const struct promql_token t = s->next;
	const char *ahead = s->at;
	struct promql_token next = promql_next(&ahead);
	bool is_call = promql_token_is_sign(&next, '(');
	if (promql_token_is_word(&t, numbers)) {
		v->type = PROMQL_VALUE_SCALAR;
		accept(s);
		return 0;
	}
	if (promql_token_is_word(&t, promql_aggregations) && (is_call || promql_token_is_word(&next, grouping)))
		return call(s, v, true);
	bool is_keyword = promql_token_is_word(&t, promql_aggregations) ||
	                  promql_token_is_word(&t, promql_label_list_words) ||
	                  promql_token_is_word(&t, promql_other_words);
	if (is_keyword && (s->is_strict || promql_token_is_word(&t, reserved) ||
	                   (is_call && !promql_function_find(t.start, t.len)))) {
		char why[MESSAGE_BYTES];
		snprintf(why, sizeof why, "%.*s is a keyword here: write a metric of that name as {__name__=\"%.*s\"}",
		         (int)t.len, t.start, (int)t.len, t.start);
		return refuse(s, why);
	}
	if (is_call)
		return call(s, v, false);
	accept(s);
	if (is_sign(s, '{'))
		return braces(s, &t, v);
	end_selector(s, &t, false, false, v);
	return 0;
}

static int operand(struct promql_syntax *s, struct promql_value *v, bool *ret_is_selector)
{
	static const struct promql_token nameless = {.kind = PROMQL_TOKEN_END};
	const struct promql_token t = s->next;
	const char *outer = s->open;
	int rc = -1;
	*v = promql_value_unknown;
	*ret_is_selector = is_sign(s, '{');
	v->start = t.start;
	if (t.kind == PROMQL_TOKEN_NAME) {
		rc = name(s, v);
		*ret_is_selector = rc == 0 && v->type == PROMQL_VALUE_VECTOR && s->end[-1] != ')';
	} else if (t.kind == PROMQL_TOKEN_NUMBER) {
		rc = number(s, "a number");
		*v = promql_value_of_number(&t);
	} else if (t.kind == PROMQL_TOKEN_STRING) {
		v->type = PROMQL_VALUE_STRING;
		rc = string(s);
	} else if (is_sign(s, '{') && (s->is_strict || !is_followed_by(s, '{'))) {
		rc = braces(s, &nameless, v);
	} else if (expect_sign(s, '(', "a metric, a function, a number or (") == 0) {
		s->open = t.start;
		rc = expression(s, v) < 0 ? -1 : expect_sign(s, ')', "an operator or )");
		s->open = outer;
	}
	v->start = t.start;
	v->end = s->end;
	return rc;
}

// ---- modifiers ----

static bool is_duration_function(const struct promql_token *t)
{
	static const char *const words[] = {"step", "range", "min", "max", NULL};
	return promql_token_is_word(t, words);
}

// Accepts the tokens of a duration expression (Prometheus 3, promql-duration-expr) up to, and without, the bracket or
// the end of the query. Returns whether one of them has a colon.
static bool duration_expression(struct promql_syntax *s)
{
	bool has_colon = false;
	for (int depth = 0; s->next.kind != PROMQL_TOKEN_END; accept(s)) {
		if (depth == 0 && is_sign(s, ']'))
			break;
		depth += is_sign(s, '(') - is_sign(s, ')');
		has_colon |= memchr(s->next.start, ':', s->next.len) != NULL;
	}
	return has_colon;
}

static bool is_arithmetic(const struct promql_token *t)
{
	return t->kind == PROMQL_TOKEN_SIGN && strchr("+-*/%^", *t->start);
}

static bool is_duration_expression(const struct promql_syntax *s)
{
	const char *ahead = s->at;
	struct promql_token t = promql_next(&ahead);
	bool is_computed = is_arithmetic(&t);
	return !s->is_strict && ((s->next.kind == PROMQL_TOKEN_NUMBER && is_computed) || is_sign(s, '(') ||
	                         (is_duration_function(&s->next) && promql_token_is_sign(&t, '(')));
}

// [5m], [1h:] and [1h:1m]. For the lexer, a colon starts a name.
static int range(struct promql_syntax *s, bool *ret_is_subquery)
{
	static const char what[] = "a duration such as 5m";
	const char *outer = s->open;
	s->open = s->next.start;
	accept(s);
	*ret_is_subquery = false;
	if (is_duration_expression(s)) {
		*ret_is_subquery = duration_expression(s);
	} else {
		const struct promql_token t = s->next;
		if (number(s, what) < 0)
			return -1;
		if (promql_value_of_number(&t).high == 0)
			mistake(s, t.start, t.start + t.len,
			        "a range of 0 has no samples: write a duration such as 5m");
	}
	if (s->next.kind == PROMQL_TOKEN_NAME && s->next.start[0] == ':') {
		const char *step = s->next.start + 1;
		size_t len = s->next.len - 1;
		bool is_function = !s->is_strict && len > 0 && is_before(s, '(');
		if (len > 0 && !is_function && check_number(s, step, len, what) < 0)
			return -1;
		*ret_is_subquery = true;
		accept(s);
		bool is_computed = !s->is_strict && (len > 0 ? is_arithmetic(&s->next) : is_duration_expression(s));
		if (is_function || is_computed)
			duration_expression(s);
		else if (len == 0 && s->next.kind == PROMQL_TOKEN_NUMBER && number(s, what) < 0)
			return -1;
	}
	if (expect_sign(s, ']', "]") < 0)
		return -1;
	s->open = outer;
	return 0;
}

static int at_modifier(struct promql_syntax *s)
{
	accept(s);
	if (is_word(s, "start") || is_word(s, "end")) {
		accept(s);
		return expect_sign(s, '(', "(") < 0 ? -1 : expect_sign(s, ')', ")");
	}
	if (is_sign(s, '-') || is_sign(s, '+'))
		accept(s);
	return number(s, "a time in seconds, start() or end()");
}

static int offset(struct promql_syntax *s)
{
	accept(s);
	if (is_sign(s, '-') || is_sign(s, '+'))
		accept(s);
	bool is_call = !s->is_strict && is_duration_function(&s->next) && is_before(s, '(');
	if (is_call)
		accept(s);
	if (s->is_strict || !is_sign(s, '('))
		return number(s, "a duration such as 5m");
	for (int depth = 0; s->next.kind != PROMQL_TOKEN_END;) {
		depth += is_sign(s, '(') - is_sign(s, ')');
		accept(s);
		if (depth == 0)
			return 0;
	}
	return expected(s, ")");
}

static bool is_series(const struct promql_value *v)
{
	return v->type == PROMQL_VALUE_VECTOR || v->type == PROMQL_VALUE_ANY;
}

// is_selector: the operand is a selector, without parentheses.
static int modifiers(struct promql_syntax *s, struct promql_value *v, bool is_selector)
{
	bool has_series = is_selector, has_offset = false, has_at = false;
	for (;;) {
		const char *start = s->next.start;
		if (is_sign(s, '[')) {
			bool is_subquery;
			if (range(s, &is_subquery) < 0)
				return -1;
			if (is_subquery && !is_series(v))
				mistake(s, v->start, v->end, "a subquery needs an instant vector, got %s",
				        type_names[v->type]);
			else if (!is_subquery && has_series && v->type == PROMQL_VALUE_VECTOR && (has_offset || has_at))
				mistake(s, start, s->end, "the range comes before offset and @: x[5m] offset 1h");
			else if (!is_subquery && !is_selector)
				mistake(s, start, s->end,
				        "a range over an expression needs a resolution: write [30d:5m]");
			else if (!is_subquery && v->type == PROMQL_VALUE_RANGE)
				mistake(s, start, s->end, "this is a range vector already");
			v->type = PROMQL_VALUE_RANGE;
			has_series = true;
			if (is_subquery)
				has_offset = has_at = is_selector = false;
		} else if (is_sign(s, '@')) {
			if (at_modifier(s) < 0)
				return -1;
			if (!has_series || has_at)
				mistake(s, start, s->end, "%s",
				        has_at ? "@ is written twice" : "@ follows a selector or a subquery only");
			has_at = true;
		} else if (is_word(s, "offset")) {
			if (offset(s) < 0)
				return -1;
			if (!has_series || has_offset)
				mistake(s, start, s->end, "%s",
				        has_offset ? "offset is written twice"
				                   : "offset follows a selector or a subquery only: rate(x[5m] offset "
				                     "1h)");
			has_offset = true;
		} else if (!s->is_strict && (is_word(s, "anchored") || is_word(s, "smoothed"))) {
			accept(s);
		} else {
			v->end = s->end;
			return 0;
		}
	}
}

// ---- operators ----

static bool next_operation(const struct promql_syntax *s, struct promql_operation *o)
{
	static const char *const words[] = {"or", "and", "unless", "atan2", NULL};
	static const enum promql_rank ranks[] = {PROMQL_RANK_OR, PROMQL_RANK_AND, PROMQL_RANK_AND,
	                                         PROMQL_RANK_MULTIPLY};
	*o = (struct promql_operation){.token = s->next};
	if (s->next.kind == PROMQL_TOKEN_SIGN) {
		char sign = *s->next.start;
		o->sign = sign;
		o->is_equal = is_followed_by(s, '=');
		o->rank = sign == '+' || sign == '-' ? PROMQL_RANK_ADD
		          : strchr("*/%", sign)      ? PROMQL_RANK_MULTIPLY
		          : sign == '^'              ? PROMQL_RANK_POWER
		                                     : PROMQL_RANK_COMPARE;
		return strchr("+-*/%^<>", sign) || ((sign == '=' || sign == '!') && o->is_equal);
	}
	for (size_t i = 0; words[i]; i++)
		if (is_word(s, words[i])) {
			o->rank = ranks[i];
			o->sign = words[i][0];
			return true;
		}
	return false;
}

// Accepts fill (0), fill_left (0), fill_right (0). Prometheus 3.10.
static int fill(struct promql_syntax *s, struct promql_operation *o)
{
	static const char *const words[] = {"fill", "fill_left", "fill_right", NULL};
	while (!s->is_strict && promql_token_is_word(&s->next, words) && is_before(s, '(')) {
		accept(s);
		accept(s);
		if (is_sign(s, '-') || is_sign(s, '+'))
			accept(s);
		if (s->next.kind == PROMQL_TOKEN_NAME)
			accept(s); // Inf, NaN
		else if (number(s, "a number") < 0)
			return -1;
		if (expect_sign(s, ')', ")") < 0)
			return -1;
		o->is_filled = true;
	}
	return 0;
}

// Accepts the operator and what modifies it.
static int operation(struct promql_syntax *s, struct promql_operation *o)
{
	bool has;
	accept(s);
	if (o->rank == PROMQL_RANK_COMPARE && o->is_equal)
		accept(s);
	if (o->rank == PROMQL_RANK_COMPARE && is_word(s, "bool")) {
		o->is_bool = true;
		accept(s);
	}
	if (is_word(s, "on") || is_word(s, "ignoring")) {
		accept(s);
		if (label_list(s, &o->has_labels) < 0)
			return -1;
		if (is_word(s, "group_left") || is_word(s, "group_right")) {
			o->is_grouped = true;
			accept(s);
			if (is_sign(s, '(') && label_list(s, &has) < 0)
				return -1;
		}
	}
	return fill(s, o);
}

static void check_operand(struct promql_syntax *s, struct promql_value *v)
{
	if (v->type == PROMQL_VALUE_RANGE)
		mistake(s, v->start, v->end,
		        "a range vector cannot be an operand: apply a function such as rate() or avg_over_time() to "
		        "it");
	else if (v->type == PROMQL_VALUE_STRING)
		mistake(s, v->start, v->end, "a string cannot be an operand");
	else
		return;
	v->type = PROMQL_VALUE_ANY;
}

static void check_operation(struct promql_syntax *s, const struct promql_operation *o, struct promql_value *a,
                            struct promql_value *b)
{
	const char *start = o->token.start, *end = start + o->token.len;
	bool is_set = o->rank <= PROMQL_RANK_AND;
	check_operand(s, a);
	check_operand(s, b);
	bool is_vectors = is_series(a) && is_series(b);
	if (o->rank == PROMQL_RANK_COMPARE && !o->is_bool && a->type == PROMQL_VALUE_SCALAR &&
	    b->type == PROMQL_VALUE_SCALAR)
		mistake(s, start, end + o->is_equal, "the comparison of two scalars needs bool: 1 > bool 0");
	else if (is_set && !is_vectors)
		mistake(s, start, end, "needs instant vectors on both sides: write vector(0) for a number");
	else if ((o->has_labels || o->is_filled) && !is_vectors)
		mistake(s, start, end, "labels can only be matched between instant vectors");
	else if (is_set && (o->is_grouped || o->is_filled))
		mistake(s, start, end, "matches many to many: leave out group_left, group_right and fill");
}

static int signed_operand(struct promql_syntax *s, struct promql_value *v)
{
	const char *start = s->next.start;
	bool is_signed = false, is_negative = false, is_selector;
	for (; is_sign(s, '-') || is_sign(s, '+'); accept(s)) {
		is_negative ^= is_sign(s, '-');
		is_signed = true;
	}
	if (operand(s, v, &is_selector) < 0 || modifiers(s, v, is_selector) < 0)
		return -1;
	if (is_signed)
		check_operand(s, v);
	if (is_negative) {
		double low = v->low;
		v->low = -v->high;
		v->high = -low;
	}
	v->start = start;
	return 0;
}

// Reads operands and the operators between them, from `rank` on. All operators are read from the left to the right,
// which is wrong for powers, of which nothing is known anyway, and keeps the recursion shallow.
static int operators(struct promql_syntax *s, enum promql_rank rank, struct promql_value *v)
{
	struct promql_operation o;
	if (signed_operand(s, v) < 0)
		return -1;
	while (next_operation(s, &o) && o.rank >= rank) {
		struct promql_value right;
		if (operation(s, &o) < 0 || operators(s, o.rank + 1, &right) < 0)
			return -1;
		check_operation(s, &o, v, &right);
		promql_value_combine(&o, v, &right, v);
	}
	return 0;
}

static int expression(struct promql_syntax *s, struct promql_value *v)
{
	if (++s->depth > PROMQL_DEPTH_MAX)
		return refuse_at(s, s->next.start, 1, ERR_LIMIT,
		                 "the query is nested too deeply: 64 levels are the most");
	_Static_assert(PROMQL_DEPTH_MAX == 64, "the message names it");
	if (operators(s, PROMQL_RANK_OR, v) < 0)
		return -1;
	s->depth--;
	return 0;
}

int promql_syntax_read(struct promql_syntax *s, struct promql_value *ret_value, size_t *ret_offset, size_t *ret_len,
                       struct err *e)
{
	s->at = s->end = s->query;
	s->open = NULL;
	s->depth = 0;
	s->is_label_argument = false;
	s->e = e;
	advance(s);
	int rc = expression(s, ret_value);
	if (rc == 0 && s->next.kind != PROMQL_TOKEN_END) {
		bool closes = s->next.kind == PROMQL_TOKEN_SIGN && strchr(")]}", *s->next.start);
		rc = !s->is_strict && closes ? refuse(s, "this bracket was never opened")
		                             : expected(s, "an operator or the end of the query");
	}
	if (rc < 0) {
		*ret_offset = s->error_at;
		*ret_len = s->error_len ? s->error_len : 1;
	}
	return rc;
}
