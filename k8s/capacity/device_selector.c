// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/device_selector.h"

#include "base/base.h"

#define TEXT_BYTES 320

enum value_kind { VALUE_UNKNOWN, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING };
struct value {
	enum value_kind kind;
	bool is_true;
	double number;
	char text[TEXT_BYTES];
};

struct parser {
	const char *at;
	const struct device_facts *device;
	int depth;
	bool has_failed; // the expression is not understood
};

static struct value unknown(void)
{
	return (struct value){.kind = VALUE_UNKNOWN};
}

static struct value boolean(bool is_true)
{
	return (struct value){.kind = VALUE_BOOL, .is_true = is_true};
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

static bool take(struct parser *p, const char *symbol)
{
	skip_blanks(p);
	size_t len = strlen(symbol);
	if (strncmp(p->at, symbol, len) != 0)
		return false;
	p->at += len;
	return true;
}

static struct value fail(struct parser *p)
{
	p->has_failed = true;
	return unknown();
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool take_word(struct parser *p, char word[TEXT_BYTES])
{
	size_t len = 0;
	skip_blanks(p);
	while (is_word(p->at[len]))
		len++;
	if (len == 0 || len >= TEXT_BYTES)
		return false;
	memcpy(word, p->at, len);
	word[len] = '\0';
	p->at += len;
	return true;
}

// A string without escapes.
static bool take_string(struct parser *p, char text[TEXT_BYTES])
{
	skip_blanks(p);
	char quote = *p->at;
	if (quote != '"' && quote != '\'')
		return false;
	size_t len = 0;
	const char *start = p->at + 1;
	while (start[len] && start[len] != quote && start[len] != '\\')
		len++;
	if (start[len] != quote || len >= TEXT_BYTES)
		return false;
	memcpy(text, start, len);
	text[len] = '\0';
	p->at = start + len + 1;
	return true;
}

// ---- the device ----

// A name without a domain belongs to the domain of the driver.
static struct json_span find(const struct parser *p, struct json_span map, const char *domain, const char *name)
{
	char qualified[2 * TEXT_BYTES];
	snprintf(qualified, sizeof qualified, "%s/%s", domain, name);
	struct json_span found = json_span_get(map, qualified);
	if (!found.text && strcmp(domain, p->device->driver) == 0)
		found = json_span_get(map, name);
	return found;
}

static struct value attribute(struct json_span a)
{
	struct json_span text = json_span_get(a, "string"), version = json_span_get(a, "version"),
	                 number = json_span_get(a, "int"), is_true = json_span_get(a, "bool");
	struct value v = unknown();
	int64_t n;
	if (text.text && json_span_text(text, v.text, sizeof v.text) >= 0) {
		v.kind = VALUE_STRING;
	} else if (number.text && json_span_i64(number, INT64_MIN, INT64_MAX, &n)) {
		v.kind = VALUE_NUMBER;
		v.number = (double)n;
	} else if (is_true.text && !version.text) {
		return boolean(json_span_kind(is_true) == 't');
	}
	return v; // a version is not compared as text
}

static bool read_quantity(const char *text, double *ret_value)
{
	return num_parse_quantity(text, strlen(text), ret_value, NULL) == 0;
}

// capacity["domain"].name.compareTo(quantity("40Gi")): -1, 0 or 1.
static struct value compare_capacity(struct parser *p, struct json_span capacity)
{
	char has[TEXT_BYTES], wanted[TEXT_BYTES];
	double x, y;
	if (!take(p, "compareTo") || !take(p, "(") || !take(p, "quantity") || !take(p, "(") ||
	    !take_string(p, wanted) || !take(p, ")") || !take(p, ")"))
		return fail(p);
	if (json_span_text(json_span_get(capacity, "value"), has, sizeof has) < 0 || !read_quantity(has, &x) ||
	    !read_quantity(wanted, &y))
		return unknown();
	return (struct value){.kind = VALUE_NUMBER, .number = (x > y) - (x < y)};
}

static struct value device_value(struct parser *p)
{
	char member[TEXT_BYTES], domain[TEXT_BYTES], name[TEXT_BYTES];
	struct value v = {.kind = VALUE_STRING};
	if (!take(p, ".") || !take_word(p, member))
		return fail(p);
	if (strcmp(member, "driver") == 0) {
		snprintf(v.text, sizeof v.text, "%s", p->device->driver);
		return v;
	}
	bool is_capacity = strcmp(member, "capacity") == 0;
	if ((!is_capacity && strcmp(member, "attributes") != 0) || !take(p, "[") || !take_string(p, domain) ||
	    !take(p, "]"))
		return fail(p);
	if (take(p, "[") ? !take_string(p, name) || !take(p, "]") : !take(p, ".") || !take_word(p, name))
		return fail(p);
	struct json_span found = find(p, is_capacity ? p->device->capacity : p->device->attributes, domain, name);
	if (is_capacity)
		return take(p, ".") ? compare_capacity(p, found) : fail(p);
	return attribute(found);
}

// ---- the expression ----

static struct value parse_or(struct parser *p);

static struct value parse_list(struct parser *p, const struct value *wanted)
{
	bool has_unknown = wanted->kind == VALUE_UNKNOWN, is_found = false;
	if (!take(p, "["))
		return fail(p);
	while (!take(p, "]")) {
		struct value v = unknown();
		v.kind = VALUE_STRING;
		if (!take_string(p, v.text))
			return fail(p);
		is_found = is_found || (wanted->kind == VALUE_STRING && strcmp(wanted->text, v.text) == 0);
		if (!take(p, ",")) {
			if (!take(p, "]"))
				return fail(p);
			break;
		}
	}
	return has_unknown ? unknown() : boolean(is_found);
}

static struct value parse_primary(struct parser *p)
{
	char word[TEXT_BYTES];
	struct value v = {.kind = VALUE_STRING};
	if (++p->depth > DEVICE_SELECTOR_DEPTH_MAX)
		return fail(p);
	if (take(p, "(")) {
		v = parse_or(p);
		if (!take(p, ")"))
			return fail(p);
	} else if (take(p, "!")) {
		v = parse_primary(p);
		v = v.kind == VALUE_BOOL ? boolean(!v.is_true) : unknown();
	} else if (*p->at == '"' || *p->at == '\'') {
		if (!take_string(p, v.text))
			return fail(p);
	} else if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')) {
		int64_t n;
		size_t len = 1 + strspn(p->at + 1, "0123456789");
		if (num_parse_i64(p->at, len, INT32_MIN, INT32_MAX, &n, NULL) < 0)
			return fail(p);
		p->at += len;
		v = (struct value){.kind = VALUE_NUMBER, .number = (double)n};
	} else if (!take_word(p, word)) {
		return fail(p);
	} else if (strcmp(word, "device") == 0) {
		v = device_value(p);
	} else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
		v = boolean(word[0] == 't');
	} else {
		return fail(p);
	}
	p->depth--;
	return v;
}

static struct value compare(const char *op, const struct value *x, const struct value *y)
{
	int order;
	if (x->kind == VALUE_UNKNOWN || x->kind != y->kind)
		return unknown();
	if (x->kind == VALUE_NUMBER)
		order = (x->number > y->number) - (x->number < y->number);
	else if (x->kind == VALUE_STRING)
		order = strcmp(x->text, y->text);
	else
		order = x->is_true - y->is_true;
	if (op[0] == '=')
		return boolean(order == 0);
	if (op[0] == '!')
		return boolean(order != 0);
	if (x->kind != VALUE_NUMBER)
		return unknown();
	bool has_equal = op[1] == '=';
	return boolean((op[0] == '<' ? order < 0 : order > 0) || (has_equal && order == 0));
}

static struct value parse_comparison(struct parser *p)
{
	static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
	struct value x = parse_primary(p);
	for (size_t i = 0; !p->has_failed && i < sizeof operators / sizeof operators[0]; i++) {
		if (take(p, operators[i])) {
			struct value y = parse_primary(p);
			return compare(operators[i], &x, &y);
		}
	}
	skip_blanks(p);
	if (strncmp(p->at, "in", 2) == 0 && !is_word(p->at[2])) {
		p->at += 2;
		return parse_list(p, &x);
	}
	return x;
}

// Parses sides with an operator between them. As in CEL, a side that is `decisive` decides whatever the others are.
static struct value parse_sides(struct parser *p, const char *op, bool decisive, struct value (*side)(struct parser *))
{
	struct value x = side(p);
	while (!p->has_failed && take(p, op)) {
		struct value y = side(p);
		bool has_decisive = (x.kind == VALUE_BOOL && x.is_true == decisive) ||
		                    (y.kind == VALUE_BOOL && y.is_true == decisive);
		bool is_known = has_decisive || (x.kind == VALUE_BOOL && y.kind == VALUE_BOOL);
		x = is_known ? boolean(has_decisive == decisive) : unknown();
	}
	return x;
}

static struct value parse_and(struct parser *p)
{
	return parse_sides(p, "&&", false, parse_comparison);
}

static struct value parse_or(struct parser *p)
{
	return parse_sides(p, "||", true, parse_and);
}

enum device_match device_selector_match(const char *expression, const struct device_facts *device)
{
	struct parser p = {.at = expression, .device = device};
	struct value v = parse_or(&p);
	skip_blanks(&p);
	if (p.has_failed || *p.at || v.kind != VALUE_BOOL)
		return DEVICE_MATCH_UNKNOWN;
	return v.is_true ? DEVICE_MATCH_YES : DEVICE_MATCH_NO;
}
