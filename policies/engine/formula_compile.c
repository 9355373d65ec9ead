// SPDX-License-Identifier: Apache-2.0
// The compiler: recursive descent that emits the program while it checks types. It stops at the first fault.
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "policies/engine/formula.h"

#define DIGITS_MAX 15 // significant: then a decimal number is one rounded division away from its digits
#define SCALE_MAX  22 // 10^22 is the largest power of ten that a double represents exactly

// ---- tokens ----

enum token_kind { TOKEN_END, TOKEN_NUMERAL, TOKEN_WORD, TOKEN_QUOTED, TOKEN_SYMBOL };

struct token {
	enum token_kind kind;
	size_t offset, len; // range of its bytes; TOKEN_QUOTED: with its backquotes
	const char *fault;  // constant: why the bytes are not a valid token; NULL
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool starts_numeral(const char *text, size_t len, size_t i)
{
	return is_digit(text[i]) || (text[i] == '.' && i + 1 < len && is_digit(text[i + 1]));
}

// The sign in 1e-3; `s` follows at least one byte of a numeral.
static bool is_sign_of_exponent(const char *s)
{
	return (*s == '-' || *s == '+') && (s[-1] == 'e' || s[-1] == 'E');
}

static size_t end_of(const char *text, size_t len, size_t i)
{
	static const char *const pairs[] = {"??", "==", "!=", "<=", ">=", "&&", "||", "**"};
	char first = text[i];
	if (first == '`') {
		for (i++; i < len && text[i] != '`';)
			i++;
		return i < len ? i + 1 : i;
	}
	if (starts_numeral(text, len, i)) {
		for (i++; i < len && (is_word(text[i]) || text[i] == '.' || is_sign_of_exponent(text + i));)
			i++;
		return i;
	}
	if (is_word(first)) {
		while (i < len && is_word(text[i]))
			i++;
		return i;
	}
	for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
		if (i + 1 < len && first == pairs[k][0] && text[i + 1] == pairs[k][1])
			return i + 2;
	return i + 1;
}

// Returns the first token at or after text[at]; TOKEN_END, at len, when only spaces follow.
static struct token token_at(const char *text, size_t len, size_t at)
{
	while (at < len && memchr(" \t\r\n", text[at], 4))
		at++;
	struct token t = {.kind = TOKEN_END, .offset = at};
	if (at == len)
		return t;
	char first = text[at];
	t.kind = starts_numeral(text, len, at) ? TOKEN_NUMERAL
	         : is_word(first)              ? TOKEN_WORD
	         : first == '`'                ? TOKEN_QUOTED
	                                       : TOKEN_SYMBOL;
	t.len = end_of(text, len, at) - at;
	if (t.kind == TOKEN_QUOTED && (t.len < 3 || text[at + t.len - 1] != '`'))
		t.fault = "has no closing backquote: write `name`";
	else if (t.kind == TOKEN_SYMBOL && !memchr("?:=!<>&|+-*/%^(),.[]{}#;", first, 24))
		t.fault = "has no meaning in a formula: remove it";
	return t;
}

// ---- the compiler ----

enum type { NUMBER, BOOLEAN };

// What `let` names, or # in a condition about a list: an element of the stack.
struct local {
	const char *name;
	size_t len;
	int place;
	enum type type;
	bool nilable;
};

struct compiler {
	const char *text;
	size_t len, at; // at: the byte after the token
	struct token token;
	const char *const *names;
	size_t n_names;
	enum formula_names meaning;
	struct local locals[FORMULA_LETS_MAX + 1];
	size_t n_locals;
	uint32_t place_reads[FORMULA_STACK_MAX]; // the signals that an element of a list, or of `let`, reads
	struct formula_op *ops;
	struct formula formula;
	int stack, nesting;
	struct formula_fault *fault;
	bool failed;
};

// A part of the formula: its type, whether it can be nil, and its position.
struct part {
	enum type type;
	bool nilable;
	size_t offset, end;
};

static void fail_at(struct compiler *c, size_t offset, size_t len, const char *message)
{
	if (!c->failed)
		*c->fault = (struct formula_fault){.offset = offset, .len = len, .message = message};
	c->failed = true;
}

static void fail_token(struct compiler *c, const struct token *t, const char *message)
{
	fail_at(c, t->offset, t->len, message);
}

static void fail_part(struct compiler *c, const struct part *p, const char *message)
{
	fail_at(c, p->offset, p->end - p->offset, message);
}

static void next(struct compiler *c)
{
	c->token = token_at(c->text, c->len, c->at);
	c->at = c->token.offset + c->token.len;
	if (c->token.fault)
		fail_token(c, &c->token, c->token.fault);
}

static bool has_text(const struct compiler *c, const struct token *token, const char *text)
{
	return strlen(text) == token->len && memcmp(c->text + token->offset, text, token->len) == 0;
}

static bool is(const struct compiler *c, const char *text)
{
	return c->token.kind != TOKEN_QUOTED && c->token.kind != TOKEN_END && has_text(c, &c->token, text);
}

static bool take(struct compiler *c, const char *text)
{
	if (c->failed || !is(c, text))
		return false;
	next(c);
	return true;
}

static void expect(struct compiler *c, const char *text, const char *message)
{
	if (!take(c, text))
		fail_token(c, &c->token, message);
}

// ---- emitting ----

static void emit(struct compiler *c, enum formula_code code, int signal, double value)
{
	if (c->failed)
		return;
	c->stack += 1 - formula_operands(code);
	if (c->formula.n_ops == FORMULA_OPS_MAX || c->stack > FORMULA_STACK_MAX) {
		fail_at(c, 0, c->len, "is too long a formula: let the queries do a part of it");
		return;
	}
	c->ops[c->formula.n_ops++] =
	        (struct formula_op){.number = value, .code = (uint8_t)code, .signal = (uint8_t)signal};
}

// Returns the signals whose values the ops from `first` on read.
static uint32_t reads_from(const struct compiler *c, uint32_t first)
{
	uint32_t reads = 0;
	for (uint32_t i = first; i < c->formula.n_ops; i++) {
		const struct formula_op *op = &c->ops[i];
		if (op->code == FORMULA_PROPOSAL || op->code == FORMULA_VALUE)
			reads |= UINT32_C(1) << op->signal;
		else if (op->code == FORMULA_LOAD)
			reads |= c->place_reads[op->signal];
	}
	return reads;
}

static void require(struct compiler *c, const struct part *p, enum type type)
{
	static const char *const faults[] = {
	        [NUMBER] = "is true or false where a number is needed: write (.. ? 1 : 0)",
	        [BOOLEAN] = "is a number where true or false is needed: compare it, as in .. > 0",
	};
	if (p->type != type)
		fail_part(c, p, faults[type]);
}

// ---- the grammar ----

static struct part parse_choice(struct compiler *c);

static double power_of_ten(int n)
{
	double power = 1;
	while (n-- > 0)
		power *= 10;
	return power;
}

// 12, 0.5, .5, 1_000, 1e3. The digits and the power of ten are exact, so that the result is rounded once.
static double numeral(struct compiler *c)
{
	double digits = 0;
	int n_digits = 0, scale = 0, exponent = 0, sign = 0; // sign 0: no exponent yet
	bool point = false, ends_in_digit = false;
	const char *s = c->text + c->token.offset;
	for (size_t i = 0; i < c->token.len && exponent < 1000; i++) {
		bool digit = is_digit(s[i]);
		if (digit && sign != 0) {
			exponent = exponent * 10 + (s[i] - '0');
		} else if (digit) {
			digits = digits * 10 + (s[i] - '0');
			n_digits += digits > 0;
			scale += point;
		} else if (s[i] == '.' && !point && sign == 0) {
			point = true;
		} else if ((s[i] == 'e' || s[i] == 'E') && ends_in_digit && sign == 0) {
			bool is_signed = i + 1 < c->token.len && !is_digit(s[i + 1]);
			sign = is_signed && s[i + 1] == '-' ? -1 : 1;
			i += is_signed;
		} else if (s[i] != '_' || !ends_in_digit) {
			ends_in_digit = false;
			break;
		}
		ends_in_digit = digit;
	}
	scale = sign * exponent - scale;
	if (!ends_in_digit)
		fail_token(c, &c->token, "is not a number: write it as 12, 0.5 or 1e3");
	else if (n_digits > DIGITS_MAX || scale > SCALE_MAX || scale < -SCALE_MAX)
		fail_token(c, &c->token, "has too many digits: 15 are enough");
	return c->failed ? 0 : scale < 0 ? digits / power_of_ten(-scale) : digits * power_of_ten(scale);
}

// Returns the index of the signal of that name; -1 when there is none.
static int find_signal(const struct compiler *c, const struct token *name)
{
	size_t quotes = name->kind == TOKEN_QUOTED;
	const char *s = c->text + name->offset + quotes;
	size_t len = name->len - 2 * quotes;
	for (size_t i = 0; i < c->n_names; i++)
		if (strlen(c->names[i]) == len && memcmp(c->names[i], s, len) == 0)
			return (int)i;
	return -1;
}

static void parse_signal(struct compiler *c, const struct token *name)
{
	int i = find_signal(c, name);
	if (i < 0) {
		fail_token(c, name, "is not a signal of this policy (write a name with '-' or '.' in backquotes)");
		if (c->fault->offset == name->offset)
			c->fault->is_name = true;
		return;
	}
	c->formula.reads |= UINT32_C(1) << i;
	if (take(c, "."))
		expect(c, "value",
		       "cannot follow a signal, only .value can: write a name with '.' or '-' in backquotes, as in "
		       "`sm-active`");
	else if (c->meaning == FORMULA_PROPOSALS) {
		emit(c, FORMULA_PROPOSAL, i, 0);
		return;
	}
	c->formula.reads_value |= UINT32_C(1) << i;
	emit(c, FORMULA_VALUE, i, 0);
}

enum arguments { ONE, THREE, SEVERAL, NUMBERS, CONDITIONS }; // the last two: a list

struct function {
	const char *name, *usage;
	enum arguments arguments;
	enum formula_code code; // CONDITIONS: how the count is compared; FORMULA_CODE__COUNT: it is not
	bool with_all;          // .. with the number of elements, else with `number`
	uint8_t number;
};
static const struct function functions[] = {
        {"min", "needs two or more numbers: min(a, b)", SEVERAL, FORMULA_MIN, false, 0},
        {"max", "needs two or more numbers: max(a, b)", SEVERAL, FORMULA_MAX, false, 0},
        {"abs", "needs one number: abs(a)", ONE, FORMULA_ABS, false, 0},
        {"ceil", "needs one number: ceil(a)", ONE, FORMULA_CEIL, false, 0},
        {"floor", "needs one number: floor(a)", ONE, FORMULA_FLOOR, false, 0},
        {"round", "needs one number: round(a)", ONE, FORMULA_ROUND, false, 0},
        {"int", "needs one number: int(a)", ONE, FORMULA_TRUNCATE, false, 0},
        {"float", "needs one number: float(a)", ONE, FORMULA_CODE__COUNT, false, 0},
        {"clamp", "needs three numbers: clamp(a, low, high)", THREE, FORMULA_CLAMP, false, 0},
        {"sum", "needs a list of numbers: sum([a, b])", NUMBERS, FORMULA_ADD, false, 0},
        {"mean", "needs a list of numbers: mean([a, b])", NUMBERS, FORMULA_ADD, true, 0},
        {"count", "needs a list: count([a, b], {# > 1})", CONDITIONS, FORMULA_CODE__COUNT, false, 0},
        {"any", "needs a list: any([a, b], {# > 1})", CONDITIONS, FORMULA_GREATER, false, 0},
        {"all", "needs a list: all([a, b], {# > 1})", CONDITIONS, FORMULA_EQUAL, true, 0},
        {"none", "needs a list: none([a, b], {# > 1})", CONDITIONS, FORMULA_EQUAL, false, 0},
        {"one", "needs a list: one([a, b], {# > 1})", CONDITIONS, FORMULA_EQUAL, false, 1},
};

static void load(struct compiler *c, const struct local *l, struct part *p)
{
	p->type = l->type;
	p->nilable = l->nilable;
	emit(c, FORMULA_LOAD, l->place, 0);
}

// Compiles the condition, which the token after the comma starts, once for each of the n elements from `first` on, and
// adds up how often it is true.
static void count_elements(struct compiler *c, const struct local *first, int n, bool has_condition, struct part *p)
{
	struct local *hash = &c->locals[c->n_locals];
	const struct token start = c->token;
	if (has_condition && (c->n_locals > 0 && c->locals[c->n_locals - 1].name[0] == '#'))
		fail_token(c, &start, "is a condition within a condition: use two formulas");
	if (c->n_locals == sizeof c->locals / sizeof c->locals[0])
		fail_token(c, &start, "has too many names before it");
	emit(c, FORMULA_CONSTANT, 0, 0);
	for (int i = 0; i < n && !c->failed; i++) {
		struct part one = {.offset = start.offset, .end = start.offset + start.len};
		*hash = *first;
		hash->place += i;
		if (has_condition) {
			c->token = start;
			c->at = start.offset + start.len;
			c->n_locals++;
			bool braced = take(c, "{");
			one = parse_choice(c);
			if (braced)
				expect(c, "}", "found where } is expected");
			c->n_locals--;
		} else {
			load(c, hash, &one);
		}
		require(c, &one, BOOLEAN);
		p->nilable |= one.nilable;
		emit(c, FORMULA_CONSTANT, 0, 1);
		emit(c, FORMULA_CONSTANT, 0, 0);
		emit(c, FORMULA_SELECT, 0, 0);
		emit(c, FORMULA_ADD, 0, 0);
	}
	for (int i = 0; i < n; i++)
		emit(c, FORMULA_DROP, 0, 0);
}

// The arguments of `f`, from the token after its ( on.
static void parse_arguments(struct compiler *c, const struct function *f, const struct token *name, struct part *p)
{
	bool listed = take(c, "["), counts = f->arguments == CONDITIONS;
	struct local first = {.name = "#", .len = 1, .place = c->stack, .type = NUMBER};
	int n = 0;
	do {
		uint32_t first_op = c->formula.n_ops;
		int place = c->stack;
		struct part argument = parse_choice(c);
		if (counts && !c->failed)
			c->place_reads[place] = reads_from(c, first_op);
		if (!counts)
			require(c, &argument, NUMBER);
		else if (n > 0 && argument.type != first.type)
			fail_part(c, &argument, "must have the type of the elements before it");
		first.type = argument.type;
		first.nilable |= argument.nilable;
		if (++n > 1 && !counts && f->arguments >= SEVERAL) // folded: min(a, b, c) is min(min(a, b), c)
			emit(c, f->code, 0, 0);
	} while (take(c, ","));
	p->nilable = first.nilable && !counts;
	if (listed)
		expect(c, "]", "found where ] or , is expected");
	if (counts) {
		bool has_condition = take(c, ",");
		if (has_condition || first.type == BOOLEAN)
			count_elements(c, &first, n, has_condition, p);
		else
			fail_token(c, name, f->usage);
	}
	static const int fewest[] = {[ONE] = 1, [THREE] = 3, [SEVERAL] = 2, [NUMBERS] = 1, [CONDITIONS] = 1};
	bool many = f->arguments >= SEVERAL;
	if (listed ? !many : f->arguments > SEVERAL || n < fewest[f->arguments] || (!many && n > fewest[f->arguments]))
		fail_token(c, name, f->usage);
	if (f->arguments == NUMBERS ? f->with_all : counts && f->code != FORMULA_CODE__COUNT)
		emit(c, FORMULA_CONSTANT, 0, f->with_all ? n : f->number);
	if (f->arguments == NUMBERS && f->with_all)
		emit(c, FORMULA_DIVIDE, 0, 0);
	else if ((counts || !many) && f->code != FORMULA_CODE__COUNT)
		emit(c, f->code, 0, 0);
	if (counts && f->code != FORMULA_CODE__COUNT)
		p->type = BOOLEAN;
}

static bool parse_call(struct compiler *c, const struct token *name, struct part *p)
{
	const struct function *f = NULL;
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		if (name->kind == TOKEN_WORD && has_text(c, name, functions[i].name))
			f = &functions[i];
	if (f && c->meaning == FORMULA_VALUES && !is(c, "(") && find_signal(c, name) >= 0)
		return false; // a trigger may have the name of a function
	if (!take(c, "(")) {
		if (f)
			fail_token(
			        c, name,
			        "is a function: write its arguments in (), or put a signal of that name in backquotes");
		return f != NULL;
	}
	if (!f) {
		fail_token(c, name,
		           "is not a function: use min, max, abs, clamp, ceil, floor, round, int, float, sum, mean, "
		           "count, any, all, none or one");
		return true;
	}
	parse_arguments(c, f, name, p);
	expect(c, ")", "found where ) or , is expected");
	return true;
}

static const struct local *find_local(const struct compiler *c, const struct token *name)
{
	for (size_t i = c->n_locals; i-- > 0;)
		if (c->locals[i].len == name->len && memcmp(c->locals[i].name, c->text + name->offset, name->len) == 0)
			return &c->locals[i];
	return NULL;
}

static struct part parse_word(struct compiler *c)
{
	struct token name = c->token;
	struct part p = {.type = NUMBER, .offset = name.offset};
	next(c);
	const struct local *local = find_local(c, &name);
	if (local) {
		load(c, local, &p);
		return p;
	}
	bool is_word = name.kind == TOKEN_WORD, is_true = is_word && has_text(c, &name, "true");
	if (is_true || (is_word && has_text(c, &name, "false"))) {
		p.type = BOOLEAN;
		emit(c, FORMULA_CONSTANT, 0, is_true);
	} else if (is_word && has_text(c, &name, "current") &&
	           (c->meaning != FORMULA_VALUES || find_signal(c, &name) < 0)) {
		emit(c, FORMULA_CURRENT, 0, 0);
	} else if (is_word && has_text(c, &name, "nil")) {
		fail_token(c, &name, "can only be compared: write a == nil or a != nil");
	} else if (name.kind == TOKEN_QUOTED || !parse_call(c, &name, &p)) {
		p.nilable = true;
		parse_signal(c, &name);
	}
	return p;
}

static struct part parse_primary(struct compiler *c)
{
	struct part p = {.type = NUMBER, .offset = c->token.offset};
	if (c->token.kind == TOKEN_NUMERAL) {
		emit(c, FORMULA_CONSTANT, 0, numeral(c));
		next(c);
	} else if ((c->token.kind == TOKEN_WORD && !is(c, "and") && !is(c, "or") && !is(c, "not")) ||
	           c->token.kind == TOKEN_QUOTED || (is(c, "#") && find_local(c, &c->token))) {
		p = parse_word(c);
	} else if (take(c, "(")) {
		size_t offset = p.offset;
		p = parse_choice(c);
		p.offset = offset;
		expect(c, ")", "found where ) is expected");
	} else {
		fail_token(c, &c->token, "found where a number, a signal or ( is expected");
	}
	p.end = c->token.offset;
	while (p.end > p.offset && memchr(" \t\r\n", c->text[p.end - 1], 4))
		p.end--;
	return p;
}

static struct part parse_else(struct compiler *c)
{
	uint32_t first_op = c->formula.n_ops;
	struct part p = parse_primary(c);
	while (!c->failed && is(c, "??")) {
		if (!p.nilable)
			fail_part(c, &p, "is never nil: remove ?? and what follows it");
		c->formula.handles |= reads_from(c, first_op);
		next(c);
		bool negative = take(c, "-");
		struct part other = parse_primary(c);
		if (negative) {
			require(c, &other, NUMBER);
			emit(c, FORMULA_NEGATE, 0, 0);
		}
		if (other.type != p.type)
			fail_part(c, &other, "must have the type of the part before ??: a number, or true or false");
		emit(c, FORMULA_ELSE, 0, 0);
		p.nilable = other.nilable;
		p.end = other.end;
	}
	return p;
}

static struct part parse_unary(struct compiler *c);

// Binds tighter than a sign on its left, and associates to the right: -a ** b ** c is -(a ** (b ** c)).
static struct part parse_power(struct compiler *c)
{
	struct part p = parse_else(c);
	if (!c->failed && (is(c, "**") || is(c, "^"))) {
		require(c, &p, NUMBER);
		next(c);
		struct part other = parse_unary(c);
		require(c, &other, NUMBER);
		emit(c, FORMULA_POWER, 0, 0);
		p.nilable |= other.nilable;
		p.end = other.end;
	}
	return p;
}

static struct part parse_unary(struct compiler *c)
{
	size_t offset = c->token.offset;
	bool negate = is(c, "-"), invert = is(c, "!"), plus = is(c, "+");
	if (c->failed || (!negate && !invert && !plus))
		return parse_power(c);
	if (++c->nesting > FORMULA_NESTING_MAX)
		fail_at(c, offset, 1, "is nested too deep");
	next(c);
	struct part p = parse_unary(c);
	c->nesting--;
	require(c, &p, invert ? BOOLEAN : NUMBER);
	if (!plus)
		emit(c, negate ? FORMULA_NEGATE : FORMULA_NOT, 0, 0);
	p.offset = offset;
	return p;
}

struct infix {
	const char *text;
	enum formula_code code;
};

static const struct infix *find_operator(const struct compiler *c, const struct infix *list, size_t n)
{
	for (size_t i = 0; i < n && list[i].text && !c->failed; i++)
		if (is(c, list[i].text))
			return &list[i];
	return NULL;
}

static struct part parse_not(struct compiler *c);

enum level { PRODUCT, SUM, AND, OR };

// clang-format off
static const struct {
	struct part (*operand)(struct compiler *c); // NULL: the level before
	enum type type;                             // of every operand
	struct infix operators[3];
} levels[] = {
	[PRODUCT] = {parse_unary, NUMBER,  {{"*", FORMULA_MULTIPLY}, {"/", FORMULA_DIVIDE}, {"%", FORMULA_REMAINDER}}},
	[SUM]     = {NULL,        NUMBER,  {{"+", FORMULA_ADD}, {"-", FORMULA_SUBTRACT}}},
	[AND]     = {parse_not,   BOOLEAN, {{"and", FORMULA_AND}, {"&&", FORMULA_AND}}},
	[OR]      = {NULL,        BOOLEAN, {{"or", FORMULA_OR}, {"||", FORMULA_OR}}},
};
// clang-format on

static struct part parse_operand(struct compiler *c, enum level level);

// operand (op operand)*, associating to the left.
static struct part parse_level(struct compiler *c, enum level level)
{
	struct part p = parse_operand(c, level);
	const struct infix *op;
	while ((op = find_operator(c, levels[level].operators, 3))) {
		require(c, &p, levels[level].type);
		next(c);
		struct part other = parse_operand(c, level);
		require(c, &other, levels[level].type);
		emit(c, op->code, 0, 0);
		p.nilable |= other.nilable;
		p.end = other.end;
	}
	return p;
}

static struct part parse_operand(struct compiler *c, enum level level)
{
	return levels[level].operand ? levels[level].operand(c) : parse_level(c, level - 1);
}

static struct part parse_comparison(struct compiler *c)
{
	static const struct infix list[] = {
	        {"==", FORMULA_EQUAL},      {"!=", FORMULA_NOT_EQUAL}, {"<", FORMULA_LESS},
	        {"<=", FORMULA_LESS_EQUAL}, {">", FORMULA_GREATER},    {">=", FORMULA_GREATER_EQUAL},
	};
	uint32_t first_op = c->formula.n_ops;
	struct part p = parse_level(c, SUM);
	const struct infix *op = find_operator(c, list, sizeof list / sizeof list[0]);
	if (!op)
		return p;
	bool equality = op->code == FORMULA_EQUAL || op->code == FORMULA_NOT_EQUAL;
	next(c);
	if (equality && take(c, "nil")) {
		if (!p.nilable)
			fail_part(c, &p, "is never nil: remove the comparison");
		c->formula.handles |= reads_from(c, first_op);
		emit(c, FORMULA_IS_NIL, 0, 0);
		if (op->code == FORMULA_NOT_EQUAL)
			emit(c, FORMULA_NOT, 0, 0);
		p.nilable = false;
		p.end = c->token.offset;
	} else {
		struct part other = parse_level(c, SUM);
		if (!equality || p.type == NUMBER || other.type == NUMBER) {
			require(c, &p, NUMBER);
			require(c, &other, NUMBER);
		}
		emit(c, op->code, 0, 0);
		p.nilable |= other.nilable;
		p.end = other.end;
	}
	p.type = BOOLEAN;
	if (find_operator(c, list, sizeof list / sizeof list[0]))
		fail_token(c, &c->token, "cannot follow a comparison: join two with and");
	return p;
}

static struct part parse_not(struct compiler *c)
{
	size_t offset = c->token.offset;
	if (c->failed || !is(c, "not"))
		return parse_comparison(c);
	if (++c->nesting > FORMULA_NESTING_MAX)
		fail_at(c, offset, 3, "is nested too deep");
	next(c);
	struct part p = parse_not(c);
	c->nesting--;
	require(c, &p, BOOLEAN);
	emit(c, FORMULA_NOT, 0, 0);
	p.offset = offset;
	return p;
}

// The result of a ? b : c and of if a { b } else { c }.
static struct part select_part(struct compiler *c, size_t offset, const struct part *condition, const struct part *yes,
                               const struct part *no)
{
	if (yes->type != no->type)
		fail_part(c, no, "must have the type of the other choice: a number, or true or false");
	emit(c, FORMULA_SELECT, 0, 0);
	return (struct part){yes->type, condition->nilable || yes->nilable || no->nilable, offset, no->end};
}

// { a }
static struct part parse_block(struct compiler *c)
{
	expect(c, "{", "found where { is expected, as in if a > b { a } else { b }");
	struct part p = parse_choice(c);
	expect(c, "}", "found where } is expected");
	return p;
}

static struct part parse_choice(struct compiler *c)
{
	if (++c->nesting > FORMULA_NESTING_MAX)
		fail_token(c, &c->token, "is nested too deep");
	struct part p = {.type = NUMBER, .offset = c->token.offset};
	if (!c->failed && is(c, "if") && find_signal(c, &c->token) < 0) {
		next(c);
		struct part condition = parse_choice(c);
		require(c, &condition, BOOLEAN);
		struct part yes = parse_block(c);
		expect(c, "else", "found where else is expected, as in if a > b { a } else { b }");
		struct part no = is(c, "if") ? parse_choice(c) : parse_block(c);
		p = select_part(c, p.offset, &condition, &yes, &no);
	} else if (!c->failed) {
		p = parse_level(c, OR);
	}
	if (!c->failed && is(c, "?")) {
		require(c, &p, BOOLEAN);
		next(c);
		struct part yes = parse_choice(c);
		expect(c, ":", "found where : is expected, as in a > b ? a : b");
		struct part no = parse_choice(c);
		p = select_part(c, p.offset, &p, &yes, &no);
	}
	c->nesting--;
	return p;
}

// let name = a; ..
static void parse_lets(struct compiler *c)
{
	while (take(c, "let")) {
		const struct token name = c->token;
		if (name.kind != TOKEN_WORD || find_signal(c, &name) >= 0 || find_local(c, &name))
			fail_token(c, &name, "cannot be named by let: choose a name that is not used yet");
		if (c->n_locals == FORMULA_LETS_MAX)
			fail_token(c, &name, "is one name too many: let names up to 8");
		if (!c->failed)
			next(c);
		expect(c, "=", "found where = is expected, as in let x = a + b; x * 2");
		int place = c->stack;
		uint32_t first_op = c->formula.n_ops;
		struct part p = parse_choice(c);
		if (!c->failed)
			c->place_reads[place] = reads_from(c, first_op);
		expect(c, ";", "found where ; is expected, as in let x = a + b; x * 2");
		if (!c->failed)
			c->locals[c->n_locals++] =
			        (struct local){c->text + name.offset, name.len, place, p.type, p.nilable};
	}
}

int formula_compile(const char *text, size_t len, const char *const *names, size_t n_names, enum formula_names meaning,
                    struct formula_op ops[FORMULA_OPS_MAX], struct formula *ret_formula,
                    struct formula_fault *ret_fault)
{
	assert(n_names <= FORMULA_SIGNALS_MAX);
	struct compiler c = {.text = text,
	                     .len = len,
	                     .names = names,
	                     .n_names = n_names,
	                     .meaning = meaning,
	                     .ops = ops,
	                     .fault = ret_fault};
	if (len > FORMULA_BYTES_MAX)
		fail_at(&c, 0, len, "is longer than 1024 bytes: let the queries do a part of it");
	if (!c.failed)
		next(&c);
	parse_lets(&c);
	struct part p = parse_choice(&c);
	for (size_t i = 0; i < c.n_locals; i++)
		emit(&c, FORMULA_DROP, 0, 0);
	if (!c.failed && c.token.kind != TOKEN_END)
		fail_token(&c, &c.token, "found where the end of the formula or an operator is expected");
	require(&c, &p, NUMBER);
	if (c.formula.reads == 0)
		fail_at(&c, 0, len, "names no signal: write Max, Min or a formula over the names of signals");
	if (c.failed)
		return -1;
	assert(c.stack == 1);
	*ret_formula = c.formula;
	ret_formula->ops = ops;
	return 0;
}
