// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a formula means what its precedence table says, missing data and division by zero go where they
// should, and each mistake is answered with its place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/formula.h"
#include "test/support/engine.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

// a 3 (value 0.5), b 7 (value 20), c 0 (value 0), no: without data, sm-active 4 (value 0.25)
static const char *const names[] = {"a", "b", "c", "no", "sm-active"};
static const struct formula_input inputs[] = {
        {true, 3, 0.5}, {true, 7, 20}, {true, 0, 0}, {false, 99, (double)NAN}, {true, 4, 0.25}};
#define CURRENT 5

static int compile(const char *text, struct formula_op *ops, struct formula *f, struct formula_fault *fault)
{
	return formula_compile(text, strlen(text), names, N(names), FORMULA_PROPOSALS, ops, f, fault);
}

static struct formula_result eval_names(const char *text, enum formula_names meaning)
{
	struct formula_op ops[FORMULA_OPS_MAX];
	struct formula f;
	struct formula_fault fault;
	if (formula_compile(text, strlen(text), names, N(names), meaning, ops, &f, &fault) < 0)
		fail_msg("%s: at %zu: %s", text, fault.offset, fault.message);
	return formula_eval(&f, inputs, CURRENT);
}

static struct formula_result eval(const char *text)
{
	return eval_names(text, FORMULA_PROPOSALS);
}

#define NIL    (-1e301)
#define FAILED (-1e302)

static const struct {
	const char *text;
	double want;
} rows[] = {
        {"a", 3},
        {"a.value", 0.5},
        {"a . value", 0.5},
        {"`sm-active`", 4},
        {"`sm-active`.value", 0.25},
        {"current + a", 8},
        {"max(a, b)", 7},
        {"max(a, b, 11)", 11},
        {"min(b, 9, a, 5)", 3},
        {"abs(a - b)", 4},
        {"ceil(a / 2) + floor(a / 2)", 3},
        {"clamp(b, 1, 5)", 5},
        {"clamp(a, 4, 5)", 4},
        {"clamp(a, 1, 5)", 3},
        {"a + b * 2", 17},
        {"(a + b) * 2", 20},
        {"b - a - 1", 3},
        {"b / 2 / 7", 0.5},
        {"b % 4", 3},
        {"-b % 4", -3},
        {"- -a", 3},
        {"b * 1.1", 7 * 1.1},
        {"a + 0.1", 3 + 0.1},
        {"a * 1000000", 3000000},
        {".5 * a + 1_000", 1001.5},
        {"a * 1e3 + 2.5E-1 + 1e+0", 3001.25},
        {"a ** 2 ** 3", 6561}, // to the right
        {"-a ^ 2", -9},        // a sign binds looser
        {"2 ** -1 * b", 3.5},
        {"no ?? 2 ** 3 + a", 11}, // ?? binds tighter
        {"+a - +b", -4},
        {"a<b?1:2", 1},
        {"a >= 3 and b <= 7 ? 1 : 2", 1},
        {"a > 3 or b < 7 ? 1 : 2", 2},
        {"a > 3 || b == 7 && a == 3 ? 1 : 2", 1}, // and binds tighter
        {"not a > 3 and b > 0 ? 1 : 2", 1},       // not binds looser than a comparison
        {"!(a > 3) ? 1 : 2", 1},
        {"not not true ? a : 2", 3},
        {"a != b ? 1 : 2", 1},
        {"(a > 1) == (b > 1) ? 1 : 2", 1},
        {"a > 5 ? 1 : b > 5 ? 2 : 3", 2}, // to the right
        {"a > 1 ? b > 9 ? 1 : 2 : 3", 2},
        {"true ? a : b", 3},
        {"if a > b { 1 } else { 2 }", 2},
        {"if a > b { 1 } else if b > 5 { a } else { 3 }", 3},
        {"2 * (if no == nil { a } else { b })", 6},
        {"if no > 1 { 1 } else { 2 }", NIL},
        {"  a\t+\n1 ", 4},
        // nil: what has no data
        {"no", NIL},
        {"no.value", NIL},
        {"no ** 2", NIL},
        {"no + 1", NIL},
        {"max(a, no)", NIL},
        {"-no", NIL},
        {"clamp(a, 1, no)", NIL},
        {"no > 3 ? 1 : 2", NIL},
        {"no ?? 4", 4},
        {"no ?? a", 3},
        {"a ?? 4", 3},
        {"no ?? -4", -4},
        {"no ?? no ?? 6", 6},
        {"no ?? 1 + 2", 3}, // ?? binds tighter than arithmetic, as in KEDA
        {"2 * no ?? 3", 6},
        {"max(a, no ?? 0)", 3},
        {"((no > 3) ?? false) ? 1 : a", 3},
        {"no == nil ? a : no", 3},
        {"a == nil ? 1 : 2", 2},
        {"no != nil ? no : b", 7},
        {"a != nil ? a : b", 3},
        {"no > 3 and a > 5 ? 1 : 2", 2}, // nil and false
        {"no > 3 or a < 5 ? 1 : 2", 1},  // nil or true
        {"no > 3 and a < 5 ? 1 : 2", NIL},
        {"a > 1 ? b : no", 7}, // the branch not taken may lack data
        // no result
        {"a / c", FAILED},
        {"a % c", FAILED},
        {"(-a) ** 0.5", FAILED},
        {"(a / c) ?? 1", FAILED}, // a fault is not missing data
        {"(no / c) ?? 1", 1},
        {"(2 + no) ?? 4", 4},
        {"max(2, no) ?? 4", 4},
        {"(true ? 2 : no) ?? 4", 2},
        {"((2 > no) == true ? 1 : 2) ?? 4", 4},
        {"a / c ?? 1", FAILED}, // reads as a / (c ?? 1)
        {"no + a / c", FAILED},
        {"c > 0 and a / c > 1 ? 1 : 2", 2}, // guarded, as it would be with short circuits
        {"c > 0 ? a / c : b", 7},
        {"c == 0 or a / c > 1 ? 1 : 2", 1},
        {"a * 999999999999999 * 999999999999999", 3 * 999999999999999.0 * 999999999999999.0},
        // rounding, lists, let
        {"round(a * 0.5)", 2}, // half away from zero
        {"round(-a / 2)", -2},
        {"int(-a / 2)", -1},
        {"float(a) / 2", 1.5},
        {"sum([a, b, 1])", 11},
        {"sum([a])", 3},
        {"mean([a, b])", 5},
        {"mean([a])", 3},
        {"max([a, b, 1]) - min([a, b, 1])", 6},
        {"max([a])", 3},
        {"count([a, b, c], # > 2)", 2},
        {"count([a, b, c], {# > 2})", 2},
        {"count([a, no, c], {# == nil})", 1}, // of missing
        {"count([a == nil, no == nil])", 1},
        {"count([a, b], {# > c and # < current}) + 10", 11},
        {"10 - count([a, b, c], # >= 0) * 2", 4},
        {"any([a, b], # > 5) ? 1 : 2", 1},
        {"all([a, b], # > 5) ? 1 : 2", 2},
        {"all([a, b], # > 1) ? 1 : 2", 1},
        {"none([a, b], # > 9) ? 1 : 2", 1},
        {"one([a, b], # > 5) ? 1 : 2", 1},
        {"sum([count([a, b], # > 5), a])", 4},
        {"sum([a, no])", NIL},
        {"sum([a, no ?? 1])", 4},
        {"count([a, no], # > 2)", NIL},
        {"count([a / c, b], # > 2)", FAILED},
        {"let x = a + b; x * x", 100},
        {"let x = a;\nlet y = x * 2;\ny + x", 9},
        {"let unused = a / c; b", 7},
        {"let x = no; x ?? 2", 2},
        {"let x = a; count([x, b], # > x) + x", 4},
        {"let big = a > b; big ? 1 : 2", 2},
};

// In signals[].formula a name is the value, and a signal may have the name of a function, as a trigger of KEDA.
static void names_are_values_in_a_signal(void **state)
{
	static const struct {
		const char *text;
		double want;
	} values[] = {
	        {"a", 0.5},
	        {"a.value + b", 20.5},
	        {"max(a, b * 2) / 4", 10},
	        {"no ?? c", 0},
	        {"`sm-active` * 100", 25},
	        {"count([a, b, c, no], # == nil)", 1},
	        // of llm-d: replicas for a queue, less those that are starting
	        {"let per_replica = 8;\n  let needed = b / per_replica;\n  needed <= a ? needed : max(needed - (no ?? "
	         "0), "
	         "a)",
	         2.5},
	        // of llm-d: the share of ready replicas as a credit, only upwards
	        {"a > 0.4 ? b + ceil(b * (a * (c > 0 && c < b ? c / b : 1.0) / 0.4 - 1)) : (a < 0.2 ? b - floor(b * (1 "
	         "- a / "
	         "0.2)) : b)",
	         25},
	};
	(void)state;
	for (size_t i = 0; i < N(values); i++) {
		struct formula_result r = eval_names(values[i].text, FORMULA_VALUES);
		if (r.kind != FORMULA_NUMBER || fabs(r.number - values[i].want) > 1e-12)
			fail_msg("%s: %g, must be %g", values[i].text, r.number, values[i].want);
	}
	static const char *const odd[] = {"current", "max", "let"};
	struct formula_op ops[FORMULA_OPS_MAX];
	struct formula f;
	struct formula_fault fault;
	assert_int_equal(formula_compile("max(max, current)", 17, odd, 2, FORMULA_VALUES, ops, &f, &fault), 0);
	assert_int_equal(f.reads_value, 3);
}

static void formula_means_what_it_says(void **state)
{
	for (size_t i = 0; i < N(rows); i++) {
		struct formula_result r = eval(rows[i].text);
		double got = r.kind == FORMULA_NIL ? NIL : r.kind == FORMULA_FAILED ? FAILED : r.number;
		if (got != rows[i].want)
			fail_msg("%s: %g, must be %g", rows[i].text, got, rows[i].want);
	}
}

static void numbers_out_of_range_fail(void **state)
{
	char text[FORMULA_BYTES_MAX] = "a";
	for (int i = 0; i < 22; i++)
		strncat(text, " * 999999999999999", sizeof text - strlen(text) - 1);
	assert_int_equal(eval(text).kind, FORMULA_FAILED);
}

// ---- random formulas: printed with as few parentheses as the precedence table allows, and worked out on the tree ----

struct node {
	enum { LEAF, BINARY, NEGATION, CHOICE } kind;
	int leaf, op;
	struct node *x, *y, *z;
};
static struct node pool[256];
static size_t n_pool;

static const struct {
	const char *text;
	int level;
} operators[] = {{"+", 1}, {"-", 1}, {"*", 2}, {"/", 2}, {"%", 2}, {"??", 4}};
static const char *const leaves[] = {"a", "b.value", "c", "no", "2", "0.25", "current"};

static struct node *random_node(int depth)
{
	struct node *n = &pool[n_pool++];
	*n = (struct node){.kind = LEAF, .leaf = rand() % (int)N(leaves)};
	if (depth == 0 || n_pool + 8 > N(pool) || rand() % 5 == 0)
		return n;
	n->kind = rand() % 8 == 0 ? NEGATION : rand() % 8 == 0 ? CHOICE : BINARY;
	n->op = rand() % (int)N(operators);
	n->x = random_node(depth - 1);
	if (n->kind == BINARY && operators[n->op].level == 4) { // its left side must be able to be nil
		n->x->kind = LEAF;
		n->x->leaf = rand() % 4;
	}
	n->y = n->kind == NEGATION ? NULL : random_node(depth - 1);
	n->z = n->kind == CHOICE ? random_node(depth - 1) : NULL;
	return n;
}

static int level_of(const struct node *n)
{
	return n->kind == LEAF ? 9 : n->kind == NEGATION ? 3 : n->kind == CHOICE ? 0 : operators[n->op].level;
}

static void print(const struct node *n, int least, char *out, size_t size)
{
	bool wrap = level_of(n) < least;
	size_t used = strlen(out);
	snprintf(out + used, size - used, "%s%s", wrap ? "(" : "", n->kind == NEGATION ? "-" : "");
	used = strlen(out);
	if (n->kind == LEAF) {
		snprintf(out + used, size - used, "%s", leaves[n->leaf]);
	} else if (n->kind == NEGATION) {
		print(n->x, 3, out, size);
	} else if (n->kind == CHOICE) {
		print(n->x, 1, out, size);
		snprintf(out + strlen(out), size - strlen(out), " > 1 ? ");
		print(n->y, 0, out, size);
		snprintf(out + strlen(out), size - strlen(out), " : ");
		print(n->z, 0, out, size);
	} else {
		int level = operators[n->op].level;
		print(n->x, level, out, size);
		used = strlen(out);
		snprintf(out + used, size - used, " %s ", operators[n->op].text);
		print(n->y, level + 1, out, size);
	}
	used = strlen(out);
	snprintf(out + used, size - used, "%s", wrap ? ")" : "");
}

static double work_out(const struct node *n)
{
	static const double values[] = {3, 20, 0, NIL, 2, 0.25, CURRENT};
	if (n->kind == LEAF)
		return values[n->leaf];
	double x = work_out(n->x);
	if (n->kind == NEGATION)
		return x == NIL || x == FAILED ? x : -x;
	if (n->kind == CHOICE)
		return x == NIL || x == FAILED ? x : work_out(x > 1 ? n->y : n->z);
	double y = work_out(n->y), v;
	if (operators[n->op].level == 4)
		return x == NIL ? y : x;
	if (x == FAILED || y == FAILED)
		return FAILED;
	if (x == NIL || y == NIL)
		return NIL;
	switch (operators[n->op].text[0]) {
	case '+':
		v = x + y;
		break;
	case '-':
		v = x - y;
		break;
	case '*':
		v = x * y;
		break;
	case '/':
		v = y == 0 ? (double)NAN : x / y;
		break;
	default:
		v = y == 0 ? (double)NAN : fmod(x, y);
		break;
	}
	return isfinite(v) ? v : FAILED;
}

static void random_formulas_are_worked_out_as_their_trees(void **state)
{
	int compared = 0, numbers = 0;
	srand(3);
	for (int k = 0; k < 50000; k++) {
		char text[4096] = "";
		n_pool = 0;
		const struct node *tree = random_node(4);
		print(tree, 0, text, sizeof text);
		struct formula_op ops[FORMULA_OPS_MAX];
		struct formula f;
		struct formula_fault fault;
		if (compile(text, ops, &f, &fault) < 0) {
			if (!strstr(fault.message, "names no signal") && !strstr(fault.message, "too long"))
				fail_msg("%s: at %zu: %s", text, fault.offset, fault.message);
			continue;
		}
		struct formula_result r = formula_eval(&f, inputs, CURRENT);
		double got = r.kind == FORMULA_NIL ? NIL : r.kind == FORMULA_FAILED ? FAILED : r.number;
		double want = work_out(tree);
		if (got != want)
			fail_msg("%s: %g, must be %g", text, got, want);
		compared++;
		numbers += r.kind == FORMULA_NUMBER;
	}
	assert_true(compared > 30000 && numbers > 5000);
}

// ---- mistakes ----

static const struct {
	const char *text, *place, *message;
} faults[] = {
        {"", "", "found where"},
        {"a +", "", "found where"},
        {"max(a, quue)", "quue", "is not a signal"},
        {"sm-active", "sm", "backquotes"},
        {"avg(a)", "avg", "is not a function"},
        {"max(a)", "max", "two or more"},
        {"clamp(a, 1)", "clamp", "three"},
        {"abs(a, b)", "abs", "one number"},
        {"max", "max", "is a function"},
        {"sum(a, b)", "sum", "list of numbers"},
        {"count([a, b])", "count", "needs a list"},
        {"count([a, b > 1], # > 1)", "b > 1", "type of the elements"},
        {"count([a], # + 1)", "# + 1", "where true or false is needed"},
        {"count([a], count([b], # > 1) > 1)", "#", "within a condition"},
        {"abs([a])", "abs", "one number"},
        {"# > 1 ? a : b", "#", "found where a number"},
        {"let a = 1; a", "a", "not used yet"},
        {"let x 1; a", "1", "found where ="},
        {"let x = 1, a", ",", "found where ;"},
        {"let p=a;let q=a;let r=a;let s=a;let t=a;let u=a;let v=a;let w=a;let x=a;x", "x", "up to 8"},
        {"a.rate", "rate", "only .value"},
        {"a b", "b", "end of the formula"},
        {"(a", "", "found where )"},
        {"a)", ")", "end of the formula"},
        {"a > 3", "a > 3", "where a number is needed"},
        {"a + (b > 3)", "(b > 3)", "where a number is needed"},
        {"a ? 1 : 2", "a", "where true or false is needed"},
        {"not a", "a", "where true or false is needed"},
        {"a and b > 1 ? 1 : 2", "a", "where true or false is needed"},
        {"a > 1 ? 1 : b > 1", "b > 1", "must have the type"},
        {"a > 1 ? 1", "", "found where :"},
        {"if a > 1 { 1 }", "", "found where else"},
        {"if a > 1 2 else 3", "2", "found where {"},
        {"if a { 1 } else { 2 }", "a", "where true or false is needed"},
        {"if a > 1 { 1 } else { b > 1 }", "b > 1", "must have the type"},
        {"a < b < 3 ? 1 : 2", "<", "cannot follow a comparison"},
        {"a + true", "true", "where a number is needed"},
        {"3 ?? a", "3", "is never nil"},
        {"(a + 1) * (no ?? 1 ?? 2)", "no ?? 1", "is never nil"},
        {"no ?? true", "true", "must have the type"},
        {"3 == nil ? a : b", "3", "is never nil"},
        {"nil", "nil", "can only be compared"},
        {"a ?? nil", "nil", "can only be compared"},
        {"1 + current", "1 + current", "names no signal"},
        {"a @ 3", "@", "has no meaning"},
        {"a = 3 ? 1 : 2", "=", "end of the formula"},
        {"1.2.3 + a", "1.2.3", "is not a number"},
        {"1. + a", "1.", "is not a number"},
        {"3a", "3a", "is not a number"},
        {"1e + a", "1e", "is not a number"},
        {"1e-a", "1e-a", "is not a number"},
        {"1__0 + a", "1__0", "is not a number"},
        {"a + 1e23", "1e23", "too many digits"},
        {"a + 1e99999999999", "1e99999999999", "too many digits"},
        {"a ** (b > 1)", "(b > 1)", "where a number is needed"},
        {"a + 1234567890123456", "1234567890123456", "too many digits"},
        {"`sm-active", "`sm-active", "no closing backquote"},
        {"a + \x01", "\x01", "has no meaning"},
        {"and", "and", "found where"},
};

static void each_mistake_is_answered_with_its_place(void **state)
{
	for (size_t i = 0; i < N(faults); i++) {
		struct formula_op ops[FORMULA_OPS_MAX];
		struct formula f;
		struct formula_fault fault;
		if (compile(faults[i].text, ops, &f, &fault) == 0)
			fail_msg("%s: compiles", faults[i].text);
		if (fault.len != strlen(faults[i].place) ||
		    memcmp(faults[i].text + fault.offset, faults[i].place, fault.len) != 0 ||
		    !strstr(fault.message, faults[i].message))
			fail_msg("%s: \"%.*s\" %s", faults[i].text, (int)fault.len, faults[i].text + fault.offset,
			         fault.message);
	}
}

static void formula_too_deep_or_too_long_is_refused(void **state)
{
	static const char *const units[] = {"(", "-", "!", "not ", "max(a,", "a>1?", "a+", "a??"};
	for (size_t i = 0; i < N(units); i++) {
		char text[2 * FORMULA_BYTES_MAX] = "";
		while (strlen(text) + strlen(units[i]) < FORMULA_BYTES_MAX)
			strncat(text, units[i], sizeof text - strlen(text) - 1);
		struct formula_op ops[FORMULA_OPS_MAX];
		struct formula f;
		struct formula_fault fault;
		assert_int_equal(compile(text, ops, &f, &fault), -1);
		memset(text, ' ', FORMULA_BYTES_MAX);
		text[FORMULA_BYTES_MAX] = 'a';
		text[FORMULA_BYTES_MAX + 1] = '\0';
		assert_int_equal(compile(text, ops, &f, &fault), -1);
		assert_non_null(strstr(fault.message, "1024"));
	}
}

// ---- in the engine ----

struct world {
	struct engine e;
	struct formula_op ops[FORMULA_OPS_MAX];
};

static void start(struct world *w, const char *text)
{
	static const char *const signals[] = {"busy", "queue"};
	struct formula_fault fault;
	engine_init(&w->e, 10);
	engine_add_replicas(&w->e, "busy");
	engine_add_value(&w->e, "queue", 8)->target.type = TARGET_AVERAGE_VALUE;
	w->e.policy.combine = COMBINE_FORMULA;
	if (formula_compile(text, strlen(text), signals, 2, FORMULA_PROPOSALS, w->ops, &w->e.policy.formula, &fault) <
	    0)
		fail_msg("%s: %s", text, fault.message);
	engine_start(&w->e);
}

static void formula_decides(void **state)
{
	static const struct {
		const char *text;
		double busy, queue; // NAN = none
		int32_t want;
		enum action action;
		enum reason reason;
	} cases[] = {
	        {"max(busy, queue)", 4, 160, 20, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
	        {"busy * 1.1", 100, 80, 110, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE}, // not 111
	        {"busy * 1.11", 10, 80, 12, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
	        {"busy - 100", 10, 80, 1, ACTION_SCALE_DOWN, REASON_TOO_FEW_REPLICAS},
	        {"queue.value / 40", 10, 80, 2, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
	        {"(busy + queue) / 2", 10, 168, 16, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE}, // 15.5
	        {"max(busy, queue)", 20, (double)NAN, 10, ACTION_HOLD, REASON_FORMULA_MISSING},
	        {"max(busy, queue ?? 0)", 20, (double)NAN, 20, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
	        {"max(busy, queue ?? 0)", 4, (double)NAN, 4, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
	        {"max(busy, queue ?? current)", 4, (double)NAN, 10, ACTION_NONE, REASON_DESIRED_WITHIN_RANGE},
	        {"busy", 20, (double)NAN, 20, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
	        {"(busy ?? 3) + (queue ?? 4)", (double)NAN, (double)NAN, 10, ACTION_HOLD, REASON_NON_FINITE},
	        {"busy / (queue.value - 80)", 10, 80, 10, ACTION_HOLD, REASON_FORMULA_FAILED},
	};
	for (size_t i = 0; i < N(cases); i++) {
		struct world w;
		start(&w, cases[i].text);
		engine_show(&w.e, 0, cases[i].busy);
		engine_show(&w.e, 1, cases[i].queue);
		const struct decision *d = engine_tick(&w.e);
		if (d->desired != cases[i].want || d->action != cases[i].action || d->reason != cases[i].reason)
			fail_msg("case %zu: %s: %d %s %s", i, cases[i].text, d->desired, action_names[d->action],
			         reason_info(d->reason)->name);
		assert_true(d->driver >= 0);
		engine_done(&w.e);
	}
}

static void hold_names_the_signal_that_lacks(void **state)
{
	struct world w;
	start(&w, "max(busy, queue)");
	engine_show(&w.e, 0, 20);
	engine_tick(&w.e);
	const struct trace_entry *entry = engine_find(&w.e, REASON_FORMULA_MISSING);
	assert_non_null(entry);
	assert_int_equal(entry->signal, 1);
	engine_done(&w.e);
}

static void sustain_speaks_when_it_makes_the_difference(void **state)
{
	struct world w;
	start(&w, "max(busy, queue)");
	w.e.signals[0].sustain.up_ms = 30000;
	engine_start(&w.e);
	for (int i = 0; i < 3; i++) {
		engine_show(&w.e, 0, 20);
		engine_show(&w.e, 1, 80);
		engine_tick(&w.e);
		assert_int_equal(w.e.decision.desired, i < 2 ? 10 : 20);
		assert_int_equal(w.e.decision.reason, i < 2 ? REASON_SUSTAIN_PENDING : REASON_DESIRED_WITHIN_RANGE);
		w.e.now_ms += 15000;
	}
	engine_done(&w.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(formula_means_what_it_says),
	        cmocka_unit_test(names_are_values_in_a_signal),
	        cmocka_unit_test(numbers_out_of_range_fail),
	        cmocka_unit_test(random_formulas_are_worked_out_as_their_trees),
	        cmocka_unit_test(each_mistake_is_answered_with_its_place),
	        cmocka_unit_test(formula_too_deep_or_too_long_is_refused),
	        cmocka_unit_test(formula_decides),
	        cmocka_unit_test(hold_names_the_signal_that_lacks),
	        cmocka_unit_test(sustain_speaks_when_it_makes_the_difference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
