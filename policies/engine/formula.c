// SPDX-License-Identifier: Apache-2.0
// The evaluator. It computes both branches of a choice and drops one: nothing has side effects, and a program without
// jumps cannot loop.
#include "policies/engine/formula.h"

#include <assert.h>
#include <math.h>

int formula_operands(enum formula_code code)
{
	return code < FORMULA_NEGATE ? 0 : code < FORMULA_ADD ? 1 : code < FORMULA_SELECT ? 2 : 3;
}

static struct formula_result number(double v)
{
	if (!isfinite(v))
		return (struct formula_result){.kind = FORMULA_FAILED};
	return (struct formula_result){v, FORMULA_NUMBER};
}

static struct formula_result input(const struct formula_input *in, double v)
{
	return in->present ? number(v) : (struct formula_result){.kind = FORMULA_NIL};
}

static double apply(enum formula_code code, double a)
{
	switch (code) {
	case FORMULA_NEGATE:
		return -a;
	case FORMULA_NOT:
		return a == 0;
	case FORMULA_ABS:
		return fabs(a);
	case FORMULA_CEIL:
		return ceil(a);
	case FORMULA_ROUND:
		return round(a);
	case FORMULA_TRUNCATE:
		return trunc(a);
	default:
		return floor(a);
	}
}

static struct formula_result unary(enum formula_code code, struct formula_result a)
{
	if (code == FORMULA_IS_NIL && a.kind != FORMULA_FAILED)
		return number(a.kind == FORMULA_NIL);
	return a.kind == FORMULA_NUMBER ? number(apply(code, a.number)) : a;
}

static double arithmetic(enum formula_code code, double a, double b)
{
	switch (code) {
	case FORMULA_ADD:
		return a + b;
	case FORMULA_SUBTRACT:
		return a - b;
	case FORMULA_MULTIPLY:
		return a * b;
	case FORMULA_DIVIDE:
		return b == 0 ? (double)NAN : a / b;
	case FORMULA_REMAINDER:
		return b == 0 ? (double)NAN : fmod(a, b);
	case FORMULA_POWER:
		return pow(a, b);
	case FORMULA_MIN:
		return a < b ? a : b;
	case FORMULA_MAX:
		return a > b ? a : b;
	case FORMULA_EQUAL:
		return a == b;
	case FORMULA_NOT_EQUAL:
		return a != b;
	case FORMULA_LESS:
		return a < b;
	case FORMULA_LESS_EQUAL:
		return a <= b;
	case FORMULA_GREATER:
		return a > b;
	default:
		return a >= b;
	}
}

// An operand equal to `decides` determines the result alone: 0 for and, 1 for or.
static struct formula_result logic(double decides, struct formula_result a, struct formula_result b)
{
	if (a.kind == FORMULA_NUMBER && a.number == decides)
		return a;
	if (b.kind == FORMULA_NUMBER && b.number == decides)
		return b;
	if (a.kind == FORMULA_FAILED || b.kind == FORMULA_NUMBER)
		return a;
	return b.kind == FORMULA_FAILED || a.kind == FORMULA_NUMBER ? b : a;
}

static struct formula_result binary(enum formula_code code, struct formula_result a, struct formula_result b)
{
	if (code == FORMULA_DROP || (code == FORMULA_ELSE && a.kind == FORMULA_NIL))
		return b;
	if (code == FORMULA_ELSE)
		return a;
	if (code == FORMULA_AND || code == FORMULA_OR)
		return logic(code == FORMULA_OR, a, b);
	if (a.kind == FORMULA_FAILED || b.kind == FORMULA_NUMBER)
		return a.kind == FORMULA_NUMBER ? number(arithmetic(code, a.number, b.number)) : a;
	return b.kind == FORMULA_FAILED || a.kind == FORMULA_NUMBER ? b : a;
}

static struct formula_result ternary(enum formula_code code, const struct formula_result *v)
{
	if (code == FORMULA_SELECT) {
		if (v[0].kind != FORMULA_NUMBER)
			return v[0];
		return v[0].number != 0 ? v[1] : v[2];
	}
	return binary(FORMULA_MIN, binary(FORMULA_MAX, v[0], v[1]), v[2]);
}

struct formula_result formula_eval(const struct formula *formula, const struct formula_input *inputs, double current)
{
	struct formula_result stack[FORMULA_STACK_MAX];
	uint32_t n = 0;
	for (uint32_t i = 0; i < formula->n_ops; i++) {
		const struct formula_op *op = &formula->ops[i];
		enum formula_code code = (enum formula_code)op->code;
		uint32_t operands = (uint32_t)formula_operands(code);
		assert(n >= operands && n - operands < FORMULA_STACK_MAX);
		struct formula_result *v = &stack[n -= operands];
		if (operands == 3)
			*v = ternary(code, v);
		else if (operands == 2)
			*v = binary(code, v[0], v[1]);
		else if (operands == 1)
			*v = unary(code, v[0]);
		else if (code == FORMULA_PROPOSAL)
			*v = input(&inputs[op->signal], inputs[op->signal].proposal);
		else if (code == FORMULA_VALUE)
			*v = input(&inputs[op->signal], inputs[op->signal].value);
		else if (code == FORMULA_LOAD)
			*v = stack[op->signal];
		else
			*v = number(code == FORMULA_CURRENT ? current : op->number);
		n++;
	}
	assert(n == 1);
	return stack[0];
}
