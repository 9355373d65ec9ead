// SPDX-License-Identifier: Apache-2.0
// Any text as a formula. Beyond "does not crash": a fault has its place inside the text; what compiles is evaluated
// without touching anything outside, gives a finite number, nil or a failure, and the same twice.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policies/engine/formula.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void evaluate(const struct formula *f)
{
	static const struct formula_input worlds[][3] = {
	        {{true, 3, 0.5}, {true, 7, 20}, {true, 0, 0}},
	        {{true, 1e308, -1e308}, {false, 0, 0}, {true, 0, 1e-308}},
	        {{false, 0, 0}, {false, 0, 0}, {false, 0, 0}},
	};
	for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
		struct formula_result a = formula_eval(f, worlds[i], 5), b = formula_eval(f, worlds[i], 5);
		require(a.kind == b.kind && (a.kind != FORMULA_NUMBER || (isfinite(a.number) && a.number == b.number)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a", "queue", "sm-active"};
	struct formula_op ops[FORMULA_OPS_MAX];
	struct formula f;
	struct formula_fault fault;
	const char *text = (const char *)data;
	enum formula_names meaning = size % 2 ? FORMULA_VALUES : FORMULA_PROPOSALS;
	if (formula_compile(size ? text : "", size, names, 3, meaning, ops, &f, &fault) < 0) {
		require(fault.offset <= size && fault.len <= size - fault.offset && fault.message[0]);
		return 0;
	}
	require(f.n_ops > 0 && f.n_ops <= FORMULA_OPS_MAX && f.reads != 0 && f.reads < 8 && f.ops == ops);
	require((f.reads_value & ~f.reads) == 0);
	evaluate(&f);
	return 0;
}
