// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_value.h"

#include <math.h>
#include <stdint.h>

#include "base/num.h"
#include "promql/functions.h"

const struct promql_value promql_value_unknown = {.low = -INFINITY, .high = INFINITY};

struct promql_value promql_value_of_number(const struct promql_token *t)
{
	struct promql_value v = promql_value_unknown;
	int64_t ms;
	double number;
	v.type = PROMQL_VALUE_SCALAR;
	if (num_parse_f64(t->start, t->len, &number, NULL) < 0) {
		if (num_parse_duration_ms(t->start, t->len, &ms, NULL) < 0)
			return v;
		number = (double)ms / 1000;
	}
	v.low = v.high = number;
	v.is_idle_zero = number == 0;
	return v;
}

static void clamp(struct promql_value *v, double least, double most)
{
	v->low = fmin(fmax(v->low, least), most);
	v->high = fmax(fmin(v->high, most), least);
	v->is_idle_zero = v->is_idle_zero && v->low <= 0 && v->high >= 0;
}

static void bound(struct promql_value *v, double low, double high)
{
	v->low = low;
	v->high = high;
	v->is_idle_zero = v->is_idle_zero && low <= 0 && high >= 0;
}

void promql_value_apply(const struct promql_function *f, const struct promql_token *name,
                        const struct promql_value *data, const struct promql_value limit[2], struct promql_value *v)
{
	const struct promql_value *x = data;
	double unit;
	*v = *x;
	switch ((enum promql_effect)f->effect) {
	case PROMQL_SAME:
		break;
	case PROMQL_TOTAL:
		bound(v, x->low >= 0 ? 0 : -INFINITY, x->high <= 0 ? 0 : INFINITY);
		break;
	case PROMQL_RATE:
		bound(v, 0, INFINITY);
		v->is_idle_zero = true;
		break;
	case PROMQL_COUNT:
		*v = promql_value_unknown;
		v->low = 0;
		break;
	case PROMQL_ONE:
		*v = promql_value_unknown;
		bound(v, 1, 1);
		break;
	case PROMQL_ROUNDED: // to 1, or to the second argument of round()
		unit = limit[0].type == PROMQL_VALUE_ANY ? 1 : limit[0].low == limit[0].high ? limit[0].low : 0;
		if (unit > 0 && unit < INFINITY)
			bound(v, floor(x->low / unit) * unit, ceil(x->high / unit) * unit);
		else
			bound(v, -INFINITY, INFINITY);
		break;
	case PROMQL_CLAMP:
		clamp(v, limit[0].low, limit[1].high);
		break;
	case PROMQL_CLAMP_MIN:
		clamp(v, limit[0].low, INFINITY);
		break;
	case PROMQL_CLAMP_MAX:
		clamp(v, -INFINITY, limit[0].high);
		break;
	case PROMQL_MEAN:
	case PROMQL_SHARE:
		*v = promql_value_unknown;
		if (f->effect == PROMQL_SHARE)
			bound(v, 0, 1);
		v->nan = x->is_idle_zero ? *name : x->nan;
		break;
	case PROMQL_UNKNOWN:
	case PROMQL_EFFECT__COUNT:
		*v = promql_value_unknown;
		v->nan = x->nan;
		break;
	}
	v->type = f->result == 's' ? PROMQL_VALUE_SCALAR : PROMQL_VALUE_VECTOR;
	if (v->is_idle_empty && f->result == 's') { // scalar() of no samples is NaN
		v->is_idle_empty = false;
		v->nan = *name;
	}
}

static double product(double a, double b)
{
	return a == 0 || b == 0 ? 0 : a * b; // values are finite, and 0 times any is 0
}

static void multiply(const struct promql_value *a, double low, double high, struct promql_value *v)
{
	double p[] = {product(a->low, low), product(a->low, high), product(a->high, low), product(a->high, high)};
	v->low = fmin(fmin(p[0], p[1]), fmin(p[2], p[3]));
	v->high = fmax(fmax(p[0], p[1]), fmax(p[2], p[3]));
}

// A comparison without bool drops samples: those that are left fulfil it.
static void filter(const struct promql_operation *o, const struct promql_value *a, const struct promql_value *b,
                   struct promql_value *v)
{
	bool is_swapped = a->type == PROMQL_VALUE_SCALAR; // 0 < x keeps the values of x
	const struct promql_value *limit = is_swapped ? a : b;
	bool was_idle_zero = (is_swapped ? b : a)->is_idle_zero;
	bool is_above = o->sign == (is_swapped ? '<' : '>'), is_below = o->sign == (is_swapped ? '>' : '<');
	*v = is_swapped ? *b : *a;
	if (limit->type == PROMQL_VALUE_SCALAR && is_above && limit->low > v->low)
		v->low = fmin(limit->low, v->high);
	if (limit->type == PROMQL_VALUE_SCALAR && is_below && limit->high < v->high)
		v->high = fmax(limit->high, v->low);
	bool drops_zero = (is_above && limit->low >= 0 && !(o->is_equal && limit->low == 0)) ||
	                  (o->sign == '!' && limit->low == 0 && limit->high == 0) ||
	                  (o->sign == '=' && (limit->low > 0 || limit->high < 0));
	v->is_idle_empty |= was_idle_zero && drops_zero;
	if (drops_zero || o->sign == '!')
		v->is_idle_zero = false;
	v->nan.len = 0; // NaN fulfils no comparison
	if (o->sign == '!' && (is_swapped ? b : a)->nan.len)
		v->nan = (is_swapped ? b : a)->nan;
}

void promql_value_combine(const struct promql_operation *o, const struct promql_value *a, const struct promql_value *b,
                          struct promql_value *v)
{
	struct promql_value r = promql_value_unknown;
	bool is_divided = (o->sign == '/' || o->sign == '%') && b->is_idle_zero && b->low <= 0 && b->high >= 0;
	r.nan = a->nan.len ? a->nan : b->nan;
	r.is_idle_empty = a->is_idle_empty || b->is_idle_empty;
	if (o->rank == PROMQL_RANK_COMPARE && o->is_bool) {
		r = promql_value_unknown;
		bound(&r, 0, 1);
	} else if (o->rank == PROMQL_RANK_COMPARE) {
		filter(o, a, b, &r);
	} else if (o->rank == PROMQL_RANK_AND) {
		r = *a;
		r.is_idle_empty |= o->sign == 'u' ? b->is_idle_zero : b->is_idle_empty;
	} else if (o->rank == PROMQL_RANK_OR) {
		r.is_idle_empty = a->is_idle_empty && b->is_idle_empty;
		r.low = fmin(a->low, b->low);
		r.high = fmax(a->high, b->high);
		r.is_idle_zero = a->is_idle_zero || b->is_idle_zero;
	} else if (o->sign == '+' || o->sign == '-') {
		r.low = a->low + (o->sign == '+' ? b->low : -b->high);
		r.high = a->high + (o->sign == '+' ? b->high : -b->low);
		r.is_idle_zero = a->is_idle_zero && b->is_idle_zero;
	} else if (o->sign == '*') {
		multiply(a, b->low, b->high, &r);
		r.is_idle_zero = a->is_idle_zero || b->is_idle_zero;
	} else if (o->sign == '/') {
		if (b->low > 0 || b->high < 0)
			multiply(a, 1 / b->high, 1 / b->low, &r);
		else if (a->low >= 0 && b->low >= 0)
			r.low = 0;
		r.is_idle_zero = a->is_idle_zero && !is_divided;
	}
	if (is_divided && (b->type != PROMQL_VALUE_SCALAR || b->low < b->high))
		r.nan = o->token;
	if (r.is_idle_empty) {
		r.nan.len = 0;
		r.is_idle_zero = false;
	}
	if (isnan(r.low) || isnan(r.high)) {
		r.low = -INFINITY;
		r.high = INFINITY;
	}
	r.type = a->type == PROMQL_VALUE_SCALAR && b->type == PROMQL_VALUE_SCALAR ? PROMQL_VALUE_SCALAR
	         : a->type == PROMQL_VALUE_ANY || b->type == PROMQL_VALUE_ANY     ? PROMQL_VALUE_ANY
	                                                                          : PROMQL_VALUE_VECTOR;
	r.start = a->start;
	r.end = b->end;
	*v = r;
}
