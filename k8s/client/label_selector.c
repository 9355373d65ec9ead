// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/label_selector.h"

#include <ctype.h>

#include "base/base.h"

#define NAME_BYTES_MAX   63
#define PREFIX_BYTES_MAX 253

struct label_selector {
	size_t n_requirements, n_values;
	struct label_requirement requirements[LABEL_SELECTOR_REQUIREMENTS_MAX];
	const char *values[LABEL_SELECTOR_VALUES_MAX];
	char *words; // every key and value, NUL-terminated; at most the length of the text, and the terminators
};

// ---- valid words ----

static bool is_name(const char *s, size_t len)
{
	if (len == 0 || len > NAME_BYTES_MAX || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
			return false;
	return true;
}

static bool is_subdomain(const char *s, size_t len)
{
	if (len == 0 || len > PREFIX_BYTES_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool alnum = islower((unsigned char)s[i]) || isdigit((unsigned char)s[i]);
		bool at_end = i == 0 || s[i - 1] == '.' || i == len - 1 || s[i + 1] == '.';
		if (!alnum && (at_end || (s[i] != '-' && s[i] != '.')))
			return false;
	}
	return true;
}

bool label_key_is_valid(const char *key)
{
	const char *slash = strchr(key, '/');
	return (!slash || is_subdomain(key, (size_t)(slash - key))) &&
	       is_name(slash ? slash + 1 : key, strlen(slash ? slash + 1 : key));
}

bool label_value_is_valid(const char *value)
{
	return value[0] == '\0' || is_name(value, strlen(value));
}

// ---- words ----

enum token { T_END, T_WORD, T_COMMA, T_OPEN, T_CLOSE, T_NOT, T_OPERATOR };

struct parser {
	const char *at; // behind the current token
	enum token token;
	enum label_operator op; // of T_OPERATOR
	const char *word;       // text of T_WORD, in selector->words
	const char *start;
	size_t len; // length of the current token in the text
	char *room; // for the next word
	struct label_selector *selector;
	struct err *e;
};

static void next(struct parser *p)
{
	static const struct {
		const char *text;
		enum token token;
		enum label_operator op;
	} symbols[] = {
	        {"==", T_OPERATOR, LABEL_IN},     {"!=", T_OPERATOR, LABEL_NOT_IN}, {"=", T_OPERATOR, LABEL_IN},
	        {">", T_OPERATOR, LABEL_GREATER}, {"<", T_OPERATOR, LABEL_LESS},    {"!", T_NOT, LABEL_EXISTS},
	        {",", T_COMMA, LABEL_EXISTS},     {"(", T_OPEN, LABEL_EXISTS},      {")", T_CLOSE, LABEL_EXISTS},
	};
	p->at += strspn(p->at, " \t\r\n");
	p->start = p->at;
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		size_t len = strlen(symbols[i].text);
		if (strncmp(p->at, symbols[i].text, len) == 0) {
			p->at += len;
			p->len = len;
			p->token = symbols[i].token;
			p->op = symbols[i].op;
			return;
		}
	}
	p->len = strcspn(p->at, "=!(),>< \t\r\n");
	p->token = p->len ? T_WORD : T_END;
	if (p->len) {
		memcpy(p->room, p->at, p->len);
		p->room[p->len] = '\0';
		p->word = p->room;
		p->room += p->len + 1;
	}
	p->at += p->len;
}

static int expected(const struct parser *p, const char *what)
{
	char found[64];
	text_show(found, sizeof found, p->start, p->len);
	return p->token == T_END ? err_set(p->e, ERR_INPUT, "the selector ends where %s is expected", what)
	                         : err_set(p->e, ERR_INPUT, "expected %s, found \"%s\"", what, found);
}

// ---- requirements ----

static int add_value(struct parser *p, struct label_requirement *r, const char *value)
{
	struct label_selector *s = p->selector;
	if (!label_value_is_valid(value)) {
		char shown[64];
		text_show(shown, sizeof shown, value, strlen(value));
		return err_set(p->e, ERR_INPUT,
		               "invalid label value \"%s\": expected up to 63 letters, digits, '-', '_', '.', with a "
		               "letter or "
		               "digit at both ends",
		               shown);
	}
	if (s->n_values == LABEL_SELECTOR_VALUES_MAX)
		return err_set(p->e, ERR_LIMIT, "more than %d values in a selector", LABEL_SELECTOR_VALUES_MAX);
	s->values[s->n_values++] = value;
	r->n_values++;
	return 0;
}

// Parses "(a,b)", where a value may be empty.
static int read_values(struct parser *p, struct label_requirement *r)
{
	if (p->token != T_OPEN)
		return expected(p, "'('");
	do {
		const char *value = "";
		next(p);
		if (p->token == T_WORD) {
			value = p->word;
			next(p);
		}
		if (add_value(p, r, value) < 0)
			return -1;
	} while (p->token == T_COMMA);
	if (p->token != T_CLOSE)
		return expected(p, "',' or ')'");
	next(p);
	return 0;
}

// Parses the value after an operator; "" when there is none.
static int read_value(struct parser *p, struct label_requirement *r)
{
	if (p->token == T_END || p->token == T_COMMA)
		return add_value(p, r, "");
	if (p->token != T_WORD)
		return expected(p, "a value");
	if (add_value(p, r, p->word) < 0)
		return -1;
	next(p);
	return 0;
}

static int read_limit(struct parser *p, struct label_requirement *r)
{
	if (read_value(p, r) < 0)
		return -1;
	int64_t limit;
	if (num_parse_i64(r->values[0], strlen(r->values[0]), INT64_MIN, INT64_MAX, &limit, p->e) < 0)
		return err_wrap(p->e, "expected a whole number after '>' and '<'");
	return 0;
}

static int read_condition(struct parser *p, struct label_requirement *r)
{
	bool is_in = p->token == T_WORD && strcmp(p->word, "in") == 0;
	if (p->token == T_OPERATOR) {
		r->op = p->op;
		next(p);
		return r->op == LABEL_GREATER || r->op == LABEL_LESS ? read_limit(p, r) : read_value(p, r);
	}
	if (is_in || (p->token == T_WORD && strcmp(p->word, "notin") == 0)) {
		r->op = is_in ? LABEL_IN : LABEL_NOT_IN;
		next(p);
		return read_values(p, r);
	}
	if (p->token != T_END && p->token != T_COMMA)
		return expected(p, "an operator (=, ==, !=, in, notin, >, <), ',' or the end");
	r->op = LABEL_EXISTS;
	return 0;
}

static int read_requirement(struct parser *p)
{
	struct label_selector *s = p->selector;
	bool negated = p->token == T_NOT;
	if (s->n_requirements == LABEL_SELECTOR_REQUIREMENTS_MAX)
		return err_set(p->e, ERR_LIMIT, "more than %d requirements in a selector",
		               LABEL_SELECTOR_REQUIREMENTS_MAX);
	struct label_requirement *r = &s->requirements[s->n_requirements++];
	*r = (struct label_requirement){.op = LABEL_DOES_NOT_EXIST, .values = &s->values[s->n_values]};
	if (negated)
		next(p);
	if (p->token != T_WORD)
		return expected(p, negated ? "a label key" : "a label key or '!'");
	r->key = p->word;
	if (!label_key_is_valid(r->key)) {
		char shown[64];
		text_show(shown, sizeof shown, r->key, strlen(r->key));
		return err_set(p->e, ERR_INPUT, "invalid label key \"%s\"", shown);
	}
	next(p);
	return negated ? 0 : read_condition(p, r);
}

static int read_all(struct parser *p)
{
	next(p);
	if (p->token == T_END)
		return 0;
	for (;;) {
		if (read_requirement(p) < 0)
			return -1;
		if (p->token == T_END)
			return 0;
		if (p->token != T_COMMA)
			return expected(p, "',' or the end");
		next(p);
	}
}

struct label_selector *label_selector_parse(const char *text, struct err *e)
{
	size_t len = text ? strlen(text) : 0;
	if (len > LABEL_SELECTOR_BYTES_MAX) {
		err_set(e, ERR_LIMIT, "a label selector of %zu bytes, the ceiling is %d", len,
		        LABEL_SELECTOR_BYTES_MAX);
		return NULL;
	}
	struct label_selector *s = calloc(1, sizeof *s);
	if (!s || !(s->words = malloc(2 * len + 1))) {
		free(s);
		err_no_memory(e);
		return NULL;
	}
	struct parser p = {.at = text ? text : "", .room = s->words, .selector = s, .e = e};
	if (read_all(&p) < 0) {
		err_wrap(e, "label selector");
		label_selector_free(s);
		return NULL;
	}
	return s;
}

void label_selector_free(struct label_selector *s)
{
	if (!s)
		return;
	free(s->words);
	free(s);
}

// ---- matching ----

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

void label_sort(struct label *labels, size_t n)
{
	size_t i = 1;
	while (i < n && by_key(&labels[i - 1], &labels[i]) <= 0)
		i++;
	if (i < n) // the API server sorts them
		qsort(labels, n, sizeof *labels, by_key);
}

static const char *find(const struct label *labels, size_t n, const char *key)
{
	const struct label wanted = {.key = key};
	const struct label *found = n ? bsearch(&wanted, labels, n, sizeof *labels, by_key) : NULL;
	return found ? found->value : NULL;
}

static bool has_value(const struct label_requirement *r, const char *value)
{
	return text_is_one_of(value, (const char *const *)r->values, r->n_values);
}

static bool compares(const struct label_requirement *r, const char *value)
{
	int64_t has, wanted;
	if (r->n_values != 1 || num_parse_i64(value, strlen(value), INT64_MIN, INT64_MAX, &has, NULL) < 0 ||
	    num_parse_i64(r->values[0], strlen(r->values[0]), INT64_MIN, INT64_MAX, &wanted, NULL) < 0)
		return false;
	return r->op == LABEL_GREATER ? has > wanted : has < wanted;
}

bool label_requirement_matches(const struct label_requirement *r, const char *value)
{
	switch (r->op) {
	case LABEL_IN:
		return value && has_value(r, value);
	case LABEL_NOT_IN:
		return !value || !has_value(r, value);
	case LABEL_EXISTS:
		return value != NULL;
	case LABEL_DOES_NOT_EXIST:
		return value == NULL;
	default:
		return value && compares(r, value);
	}
}

bool label_selector_matches(const struct label_selector *s, const struct label *labels, size_t n)
{
	for (size_t i = 0; i < s->n_requirements; i++)
		if (!label_requirement_matches(&s->requirements[i], find(labels, n, s->requirements[i].key)))
			return false;
	return true;
}
