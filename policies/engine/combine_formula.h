// SPDX-License-Identifier: Apache-2.0
// The part of stage combine that evaluates a formula. KEDA: scalingModifiers, but over proposals in replicas, so that
// signals of different units can be compared. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_COMBINE_FORMULA_H
#define GPUSCALE_POLICIES_ENGINE_COMBINE_FORMULA_H

#include <stdbool.h>

struct tick;

// Sets t->wanted to the result of the formula, or holds the scale; for COMBINE_FORMULA.
void combine_by_formula(struct tick *t);

// Makes t->wanted, the result of formulas in which failed signals are nil, the fallback if there are such signals. Only
// under fallback behavior ScalingModifiers.
void combine_formula_fall_back(struct tick *t);

// Returns whether the formula can be evaluated although no signal has data: under fallback behavior ScalingModifiers,
// once every signal that it reads has been missing for long enough to be nil.
bool combine_formula_has_defaults(const struct tick *t);

#endif
