// SPDX-License-Identifier: Apache-2.0
// Queries that Prometheus refuses or that never match: the grammar is that of promql/syntax.h, and the rules about
// matchers are here.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/lint/lint_names.h"
#include "promql/promql.h"
#include "promql/syntax.h"

#define MATCHERS_MAX 32   // matchers of a selector that are compared with each other
#define WORDS_MAX    1024 // bytes of a value that is compared
#define OLD_MAX      64   // bytes of [[x]]
#define NESTING_MAX  64
#define NAME_BYTES   128
#define LETTERS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

struct span {
	const char *s;
	size_t len;
};

// A matcher as a set of values: those of "a|b", or of "a" without is_regex.
struct value_set {
	struct span label, words;
	struct promql_token token; // the value with its quotes, for messages
	bool is_not, is_regex;
	bool is_plain; // neither an escape nor a character with a meaning in regular expressions
	bool is_read;  // plain, or a regular expression of characters, ".", ".*", ".+" and "|" only
};

struct checker {
	struct promql_syntax syntax;
	struct lint_query query; // with .warnings = errors
	struct schema_errors *errors, *odd;
	struct value_set sets[MATCHERS_MAX];
	size_t n_sets;
	bool is_named;              // by a quoted name in braces
	bool is_narrow;             // some matcher does not match the empty value
	struct promql_token second; // the second name of the selector; len 0: none
};

static const struct span name_label = {"__name__", 8};

static bool is_span(struct span a, struct span b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

static struct span text_of(const struct promql_token *t)
{
	bool is_string = t->kind == PROMQL_TOKEN_STRING;
	return (struct span){t->start + is_string, t->len - 2 * (size_t)is_string};
}

// Adds a message about the token `at` to `list`.
#define REPORT(c, list, at, ...)                                                                                       \
	((c)->query.warnings = (list),                                                                                 \
	 lint_query_warn(&(c)->query, (size_t)((at)->start - (c)->syntax.query), (at)->len, __VA_ARGS__))

// ---- matchers ----

// Takes the next word of the set off `rest`, whose `s` is NULL behind the last one.
static struct span next_word(const struct value_set *set, struct span *rest)
{
	const char *bar = set->is_regex ? memchr(rest->s, '|', rest->len) : NULL;
	struct span word = {rest->s, bar ? (size_t)(bar - rest->s) : rest->len};
	*rest = bar ? (struct span){bar + 1, rest->len - word.len - 1} : (struct span){NULL, 0};
	return word;
}

static bool is_at(struct span s, size_t i, char c)
{
	return i < s.len && s.s[i] == c;
}

// Returns whether `word` matches `pattern`, of a set that is read. Goes back to the last ".*" or ".+" only, which is
// enough, so that the time is at most the product of the lengths.
static bool matches(struct span pattern, struct span word)
{
	size_t i = 0, k = 0, repeat = 0, mark = 0; // repeat: behind the last repetition; 0: none
	while (k < word.len) {
		bool is_dot = is_at(pattern, i, '.'), is_many = is_dot && is_at(pattern, i + 1, '*');
		if (is_many || (is_dot && is_at(pattern, i + 1, '+'))) {
			repeat = i += 2;
			mark = k += !is_many;
		} else if (is_dot || is_at(pattern, i, word.s[k])) {
			i++;
			for (k++; is_dot && k < word.len && (word.s[k] & 0xC0) == 0x80;)
				k++; // the rest of a character in UTF-8
		} else if (repeat) {
			i = repeat;
			k = ++mark;
		} else {
			return false;
		}
	}
	while (is_at(pattern, i, '.') && is_at(pattern, i + 1, '*'))
		i += 2;
	return i == pattern.len;
}

static bool contains(const struct value_set *set, struct span word)
{
	for (struct span rest = set->words; rest.s;) {
		struct span other = next_word(set, &rest);
		if (set->is_regex ? matches(other, word) : is_span(other, word))
			return true;
	}
	return false;
}

// Returns whether no value of `a` fulfils `b`; false when `a` is a negation or has values without number.
static bool exclude_each_other(const struct value_set *a, const struct value_set *b)
{
	if (a->is_not || !a->is_plain)
		return false;
	for (struct span rest = a->words; rest.s;) {
		struct span word = next_word(a, &rest);
		if (contains(b, word) != b->is_not)
			return false;
	}
	return true;
}

static void compare(struct checker *c, const struct value_set *a, const struct value_set *b)
{
	struct span label = b->label;
	if (!is_span(a->label, b->label) || !a->is_read || !b->is_read)
		return;
	if (exclude_each_other(a, b) || exclude_each_other(b, a))
		REPORT(c, c->errors, &b->token,
		       "contradicts the matcher %.*s%s%.*s before it, so that no series matches: remove one of them",
		       (int)(label.len < NAME_BYTES ? label.len : NAME_BYTES), label.s,
		       a->is_regex ? (a->is_not ? "!~" : "=~") : (a->is_not ? "!=" : "="),
		       (int)(a->token.len < NAME_BYTES ? a->token.len : NAME_BYTES), a->token.start);
	else if (a->is_not == b->is_not && a->is_regex == b->is_regex && is_span(a->words, b->words))
		REPORT(c, c->odd, &b->token, "repeats a matcher of the same selector: remove one of them");
}

// $x, ${x} and [[x]] in a value. In a regular expression, '$' before a letter matches nothing.
static void check_placeholder(struct checker *c, const struct value_set *set)
{
	struct span value = set->words;
	bool is_raw = *set->token.start == '`';
	for (size_t i = 0; i + 1 < value.len; i++) {
		const char *p = value.s + i, *close = NULL;
		bool is_dollar = *p == '$' && (p[1] == '{' || (strchr(LETTERS, p[1]) && (p[1] < '0' || p[1] > '9')));
		bool is_old = p[0] == '[' && p[1] == '[' && p[2] != ':' && // [[:alpha:]] is a class
		              (close = memmem(p, value.len - i < OLD_MAX ? value.len - i : OLD_MAX, "]]", 2));
		if (*p == '\\') { // in quotes, the backslash of a regular expression is itself escaped
			size_t n = set->is_regex && !is_raw && p[1] == '\\' && i + 2 < value.len ? 2 : 1;
			if (set->is_regex && p[n] == 'Q')
				return; // literal up to \E
			i += n + (n == 2 && p[2] == '\\');
			continue;
		}
		if (*p == '[' && !is_old && set->is_regex)
			return; // '$' is an ordinary character in a class
		if (!is_dollar && !is_old)
			continue;
		size_t len = is_old        ? (size_t)(close + 2 - p)
		             : p[1] == '{' ? strcspn(p, "}\"") + 1
		                           : 1 + strspn(p + 1, LETTERS);
		if (len > value.len - i)
			len = value.len - i;
		const struct promql_token at = {.start = p, .len = len};
		bool is_sure = set->is_regex ? !is_old : len == value.len;
		REPORT(c, is_sure ? c->errors : c->odd, &at,
		       "is a placeholder that only a dashboard replaces: write its value");
		return;
	}
}

// with_dots: accept ".", ".*" and ".+", too.
static bool is_literal(struct span s, bool with_dots)
{
	for (size_t i = 0; i < s.len; i++)
		if (with_dots && s.s[i] == '.')
			i += is_at(s, i + 1, '*') || is_at(s, i + 1, '+');
		else if (strchr(".*+?()[]{}^$\\", s.s[i]))
			return false;
	return true;
}

// Prometheus requires one matcher that the empty value does not match. Of a regular expression that is not understood,
// that is assumed.
static bool is_narrow(const struct value_set *set)
{
	struct span v = set->words;
	bool is_any = v.len == 2 && memcmp(v.s, ".*", 2) == 0, is_some = v.len == 2 && memcmp(v.s, ".+", 2) == 0;
	if (!set->is_regex)
		return (v.len > 0) != set->is_not;
	if (is_any || is_some || is_literal(v, false))
		return (is_any || contains(set, (struct span){"", 0})) == set->is_not;
	return true;
}

// Returns the number of bytes of the class that starts at p, without its last one; 0: it is not closed.
static size_t class_len(const char *p, size_t len)
{
	size_t first = 1 + (p[1] == '^');
	first += p[first] == ']'; // an ordinary character there
	const char *end = first < len ? memchr(p + first, ']', len - first) : NULL;
	return end ? (size_t)(end - p) : 0;
}

static bool is_lookaround(const char *p)
{
	p += p[2] == '<';
	return p[2] == '=' || p[2] == '!';
}

// Checks brackets, repetitions and lookaround of the regular expression text[0..len), as it stands between the quotes
// of a query; text[len] is the closing quote. is_raw: the quotes are backquotes. Returns why every server refuses it
// (all use RE2), with the index of the character in *ret_at, or NULL: also where it would have to guess, as in a class
// with a '['. Source: github.com/google/re2, wiki page Syntax.
static const char *regex_fault(const char *text, size_t len, bool is_raw, size_t *ret_at)
{
	bool is_start = true; // there is nothing to repeat yet
	size_t open[NESTING_MAX], depth = 0, n;
	for (size_t i = 0; i < len; i++) {
		const char *p = text + i;
		bool is_double = !is_raw && p[1] == '\\', was_start = is_start;
		*ret_at = i;
		is_start = *p == '|' || *p == '(';
		switch (*p) {
		case '\\':
			if (p[1 + is_double] == 'Q')
				return NULL; // literal up to \E
			i += is_double ? 2 + (size_t)(p[2] == '\\') : 1;
			break;
		case '[':
			if (memchr(p + 1, '\\', len - i - 1) || memchr(p + 1, '[', len - i - 1))
				return NULL;
			n = class_len(p, len - i);
			if (n == 0)
				return "this [ is never closed";
			i += n;
			break;
		case '(':
			if (depth == NESTING_MAX)
				return NULL;
			open[depth++] = i;
			if (p[1] != '?')
				break;
			if (is_lookaround(p))
				return "no server has lookahead and lookbehind: write two matchers";
			i += strcspn(p, ":>)\"'`"); // (?:, (?i), (?P<name>
			depth -= text[i] == ')';
			break;
		case ')':
			if (depth == 0)
				return "this ) was never opened";
			depth--;
			break;
		case '*':
		case '+':
		case '?':
			if (was_start)
				return "there is nothing to repeat before this";
			break;
		default:
			break;
		}
	}
	if (depth == 0)
		return NULL;
	*ret_at = open[depth - 1];
	return "this ( is never closed";
}

static int check_matcher(void *arg, const struct promql_matcher *m)
{
	struct checker *c = arg;
	struct value_set set = {.label = text_of(&m->label), .is_not = m->is_not, .is_regex = m->is_regex};
	if ((m->is_name || is_span(set.label, name_label)) && c->is_named && c->second.len == 0)
		c->second = m->label;
	if (m->is_name && !c->is_named)
		for (size_t i = 0; i < c->n_sets; i++)
			if (is_span(c->sets[i].label, name_label))
				c->second = m->label;
	c->is_named |= m->is_name;
	if (m->is_name || m->value.kind != PROMQL_TOKEN_STRING || m->value.is_open)
		return 0;
	set.words = text_of(&m->value);
	set.token = m->value;
	set.is_read = set.words.len <= WORDS_MAX && !memchr(set.words.s, '\\', set.words.len) &&
	              (!set.is_regex || is_literal(set.words, true));
	set.is_plain = set.is_read && (!set.is_regex || is_literal(set.words, false));
	check_placeholder(c, &set);
	size_t at;
	const char *why = set.is_regex ? regex_fault(set.words.s, set.words.len, *set.token.start == '`', &at) : NULL;
	if (why) {
		const struct promql_token wrong = {.start = set.words.s + at, .len = 1};
		REPORT(c, c->errors, &wrong, "%s", why);
	}
	c->is_narrow |= is_narrow(&set);
	for (size_t i = 0; i < c->n_sets; i++)
		compare(c, &c->sets[i], &set);
	if (c->n_sets < MATCHERS_MAX)
		c->sets[c->n_sets++] = set;
	return 0;
}

// ---- selectors ----

static void end_selector(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                         bool may_be_empty, struct promql_value *v)
{
	struct checker *c = arg;
	bool has_name = name->kind == PROMQL_TOKEN_NAME;
	for (size_t i = 0; i < c->n_sets && has_name; i++)
		if (is_span(c->sets[i].label, name_label) && c->second.len == 0)
			c->second = c->sets[i].token;
	if (has_name && c->is_named && c->second.len == 0)
		c->second = *name;
	if (c->second.len)
		REPORT(c, c->errors, &c->second,
		       "names the metric of the selector a second time: remove one of the names");
	else if (!has_name && !c->is_named && !c->is_narrow && !may_be_empty) {
		const struct promql_token brace = {.start = c->syntax.next.start, .len = 1};
		REPORT(c, c->errors, &brace,
		       "the selector matches every series, which Prometheus refuses: name a metric, or a label with a "
		       "value");
	}
	c->n_sets = 0;
	c->is_named = c->is_narrow = false;
	c->second.len = 0;
}

static void report_mistake(void *arg, size_t offset, size_t len, const char *message)
{
	struct checker *c = arg;
	const struct promql_token at = {.start = c->syntax.query + offset, .len = len};
	REPORT(c, c->errors, &at, "%s", message);
}

// ---- queries ----

static void check_query(struct checker *c)
{
	struct promql_value v;
	size_t offset, len;
	struct err e;
	const char *query = c->syntax.query;
	if (promql_syntax_read(&c->syntax, &v, &offset, &len, &e) < 0) {
		report_mistake(c, offset, len, e.msg);
		return;
	}
	const struct promql_token all = {.start = query, .len = strlen(query)};
	if (v.type == PROMQL_VALUE_RANGE)
		REPORT(c, c->errors, &all,
		       "is a range vector, and a signal needs numbers: apply a function such as rate() or "
		       "avg_over_time(), or remove the range");
	else if (v.type == PROMQL_VALUE_STRING)
		REPORT(c, c->errors, &all, "is a string, and a signal needs numbers");
}

// Brackets and quotes alone.
static void check_balance(struct checker *c)
{
	static const char open[] = "([{", close[] = ")]}";
	struct promql_token stack[NESTING_MAX], t;
	const char *p = c->syntax.query;
	size_t depth = 0;
	for (t = promql_next(&p); t.kind != PROMQL_TOKEN_END && depth < NESTING_MAX; t = promql_next(&p)) {
		const char *opens = t.kind == PROMQL_TOKEN_SIGN ? strchr(open, *t.start) : NULL;
		const char *closes = t.kind == PROMQL_TOKEN_SIGN ? strchr(close, *t.start) : NULL;
		if (t.kind == PROMQL_TOKEN_SIGN && *t.start == '\\' && *p)
			p++; // VictoriaMetrics: an escaped character of a name
		if (opens)
			stack[depth++] = t;
		if (t.is_open || (closes && (depth == 0 || *stack[depth - 1].start != open[closes - close]))) {
			REPORT(c, c->errors, &t,
			       t.is_open ? "the string is not closed" : "this bracket was never opened");
			return;
		}
		depth -= closes != NULL;
	}
	if (depth > 0 && depth < NESTING_MAX)
		REPORT(c, c->errors, &stack[depth - 1], "this %c is never closed", *stack[depth - 1].start);
}

// What all queries of a document are checked with.
struct query_lists {
	const char *text;
	int (*kind_of)(void *arg, const char *source);
	void *arg;
	struct schema_errors *errors, *warnings;
};

// Checks the query of a map with `query` and `source`. Returns whether it has an error.
static bool lint_query_of(const struct query_lists *l, const struct doc_node *map, const char *path)
{
	const struct doc_node *node = doc_get(map, "query");
	size_t n = l->errors->n + l->errors->dropped;
	if (!node || node->kind != DOC_SCALAR || node->text_len == 0 || strlen(node->text) != node->text_len)
		return false; // the decoder reports it
	struct checker c = {.query = {.node = node, .text = l->text, .path = path},
	                    .errors = l->errors,
	                    .odd = l->warnings,
	                    .syntax = {.query = node->text,
	                               .arg = &c,
	                               .matcher = check_matcher,
	                               .selector = end_selector,
	                               .mistake = report_mistake}};
	int kind = l->kind_of(l->arg, doc_get_text(map, "source", NULL));
	c.syntax.is_thanos = kind == PROMQL_KIND_THANOS;
	if (kind == PROMQL_KIND_VICTORIAMETRICS)
		check_balance(&c);
	else
		check_query(&c);
	return l->errors->n + l->errors->dropped > n;
}

void lint_queries(const struct doc_node *root, const char *text, int (*kind_of)(void *arg, const char *source),
                  void *arg, struct schema_errors *errors, struct schema_errors *warnings, bool *bad)
{
	const struct query_lists lists = {text, kind_of, arg, errors, warnings};
	const struct doc_node *spec = doc_get(root, "spec"), *signals = doc_get(spec, "signals");
	const struct doc_node *signal = signals && signals->kind == DOC_SEQ ? signals->child : NULL;
	for (size_t i = 0; signal && i < POLICY_SIGNALS_MAX; signal = signal->next, i++) {
		char path[64];
		snprintf(path, sizeof path, "spec.signals[%zu].query", i);
		if (!bad[i])
			bad[i] = lint_query_of(&lists, signal, path);
	}
	lint_query_of(&lists, doc_get(doc_get(doc_get(spec, "behavior"), "scaleDown"), "victims"),
	              "spec.behavior.scaleDown.victims.query");
}

// ---- values ----

// Narrows the values by the name of the metric.
static void narrow(struct span name, struct promql_value *v)
{
	char text[NAME_BYTES];
	snprintf(text, sizeof text, "%.*s", (int)(name.len < sizeof text ? name.len : 0), name.s);
	enum lint_kind kind = lint_name_kind(text);
	if (strncmp(text, "vllm:num_requests_", 18) == 0 || strcmp(text, "sglang:num_running_reqs") == 0 ||
	    strcmp(text, "sglang:num_queue_reqs") == 0) {
		v->low = 0;
		v->is_idle_zero = true;
	}
	if (kind == LINT_RATIO ||
	    (kind == LINT_KIND__COUNT && (lint_name_ends_in(text, "_ratio") || lint_name_ends_in(text, ":ratio") ||
	                                  lint_name_ends_in(text, "cache_usage_perc")))) {
		v->low = 0;
		v->high = 1;
	} else if (kind == LINT_PERCENT || (kind == LINT_KIND__COUNT && lint_name_ends_in(text, "_percent"))) {
		v->low = 0;
		v->high = 100;
	}
}

static int keep_name(void *arg, const struct promql_matcher *m)
{
	struct span *name = arg;
	const struct promql_token *t = m->is_name ? &m->label : &m->value;
	bool is_name = m->is_name || (is_span(text_of(&m->label), name_label) && !m->is_not && !m->is_regex &&
	                              t->kind == PROMQL_TOKEN_STRING && !t->is_open);
	if (is_name)
		*name = text_of(t);
	return 0;
}

static void narrow_selector(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                            bool may_be_empty, struct promql_value *v)
{
	struct span *known = arg;
	narrow(name->kind == PROMQL_TOKEN_NAME ? text_of(name) : *known, v);
	*known = (struct span){"", 0};
}

bool lint_query_value(const char *query, struct promql_value *ret_value)
{
	struct span name = {"", 0};
	struct promql_syntax s = {
	        .query = query, .is_thanos = true, .arg = &name, .matcher = keep_name, .selector = narrow_selector};
	size_t offset, len;
	struct err e;
	if (promql_syntax_read(&s, ret_value, &offset, &len, &e) == 0)
		return true;
	ret_value->low = -INFINITY;
	ret_value->high = INFINITY;
	return false;
}
