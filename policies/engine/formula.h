// SPDX-License-Identifier: Apache-2.0
// A formula over signals, as in `combine` and in `signals[].formula`. It is compiled once into a short program without
// jumps, and evaluated without allocation in time bounded by its length.
//
//   name          in `combine`: the proposal of the signal, in replicas; in `signals[].formula`: its value (after the
//                 window); nil while it has no usable data
//   name.value    the value of the signal; nil likewise
//   current       the present scale
//   numbers (12, 0.5, 1_000, 1e3), true, false; ( ); a name with characters other than letters, digits and _ in
//   backquotes: `sm-active` min(a, b..) max(a, b..) abs(a) clamp(a, low, high) ceil(a) floor(a) round(a) int(a)
//   float(a) sum([a, b..]) mean([a, b..]) min([a, b..]) max([a, b..]) count([a, b..], {# > 1}) any(..) all(..) none(..)
//   one(..): of how many elements, called #, the condition is true;
//                 without a condition, the elements are conditions themselves: count([a > 1, b == nil])
//   let x = a; b  x stands for a in b
// Operators, tightest first; those of one line associate to the left:
//   a ?? b                b when a is nil
//   a ** b  a ^ b         a to the power of b; associates to the right
//   -a  +a  !a            (also: not)
//   * / %                 % keeps the sign of its left side
//   + -
//   == != < <= > >=       do not chain; "a == nil", "a != nil" test for data
//   not a
//   a and b, a && b
//   a or b, a || b
//   a ? b : c             also: if a { b } else { c }, which is a whole formula, or stands in () or {}
// In `signals[].formula`, a signal without data that neither ?? nor a comparison with nil handles makes the whole
// formula nil, whatever branch is taken: KEDA's formula fails when a trigger fails. As in KEDA's scalingModifiers
// (expr-lang), ?? binds tighter than arithmetic. Arithmetic and comparisons with nil result in nil; and, or result in a
// boolean where one operand decides (nil and false is false). Division by zero and results out of range fail the
// formula, unless the failed part is not needed (false and .., the branch not taken).
#ifndef GPUSCALE_POLICIES_ENGINE_FORMULA_H
#define GPUSCALE_POLICIES_ENGINE_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMULA_BYTES_MAX   1024
#define FORMULA_OPS_MAX     128
#define FORMULA_STACK_MAX   32
#define FORMULA_NESTING_MAX 24
#define FORMULA_SIGNALS_MAX 16
#define FORMULA_LETS_MAX    8

struct formula_op {
	double number;  // value of a constant
	uint8_t code;   // private to formula*.c
	uint8_t signal; // index of a name; FORMULA_LOAD: the place on the stack
	uint8_t unused[6];
};

struct formula {
	uint32_t n_ops;
	uint32_t reads;       // bit i: signal i is named
	uint32_t reads_value; // bit i: so is its value
	uint32_t handles;     // bit i: ?? or a comparison with nil handles a missing signal i
	const struct formula_op *ops;
};

// An error in bytes offset..offset + len of the text.
struct formula_fault {
	size_t offset, len;
	const char *message; // constant: what is wrong with these bytes, then the fix
	bool is_name;        // the bytes are an unknown name: the caller may suggest a similar one
};

// The meaning of a signal's name: its proposal or its value.
enum formula_names { FORMULA_PROPOSALS, FORMULA_VALUES };

// Compiles text[0..len) (at most FORMULA_BYTES_MAX) over names[0..n_names) (at most FORMULA_SIGNALS_MAX) into ops, and
// checks the types: arithmetic takes numbers, and/or/not/?: take booleans; the formula must result in a number and name
// a signal. Returns 0 with *ret_formula pointing to ops, or -1 with *ret_fault. KEDA: scalingModifiers.formula, an
// expression of expr-lang over values.
int formula_compile(const char *text, size_t len, const char *const *names, size_t n_names, enum formula_names meaning,
                    struct formula_op ops[FORMULA_OPS_MAX], struct formula *ret_formula,
                    struct formula_fault *ret_fault);

struct formula_input {
	bool present;
	double proposal, value;
};

enum formula_kind { FORMULA_NUMBER, FORMULA_NIL, FORMULA_FAILED };

struct formula_result {
	double number; // finite; of FORMULA_NUMBER
	enum formula_kind kind;
};

// Evaluates the formula; `inputs` has one element per name passed to formula_compile().
struct formula_result formula_eval(const struct formula *formula, const struct formula_input *inputs, double current);

// ---- between the compiler and the evaluator ----

enum formula_code {
	FORMULA_CONSTANT,
	FORMULA_CURRENT,
	FORMULA_PROPOSAL,
	FORMULA_VALUE,
	FORMULA_LOAD, // a copy of an earlier element of the stack
	// one operand
	FORMULA_NEGATE,
	FORMULA_NOT,
	FORMULA_ABS,
	FORMULA_CEIL,
	FORMULA_FLOOR,
	FORMULA_ROUND,
	FORMULA_TRUNCATE,
	FORMULA_IS_NIL,
	// two
	FORMULA_ADD,
	FORMULA_SUBTRACT,
	FORMULA_MULTIPLY,
	FORMULA_DIVIDE,
	FORMULA_REMAINDER,
	FORMULA_POWER,
	FORMULA_MIN,
	FORMULA_MAX,
	FORMULA_EQUAL,
	FORMULA_NOT_EQUAL,
	FORMULA_LESS,
	FORMULA_LESS_EQUAL,
	FORMULA_GREATER,
	FORMULA_GREATER_EQUAL,
	FORMULA_AND,
	FORMULA_OR,
	FORMULA_ELSE, // ??
	FORMULA_DROP, // the second operand; the first is of `let`, or of a list
	// three
	FORMULA_SELECT,
	FORMULA_CLAMP,
	FORMULA_CODE__COUNT
};

// Returns how many operands the code takes from the stack, 0 to 3. Every code pushes one result.
int formula_operands(enum formula_code code);

#endif
