// SPDX-License-Identifier: Apache-2.0
// The functions and aggregations of PromQL, as one table, and the properties of the values of an expression that are
// known without its data: the type, bounds, and whether it is 0 or not a number while there is no traffic.
#include <math.h>
#include <strings.h>

#include "base/base.h"
#include "promql/syntax.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define NAME_BYTES  64

// clang-format off
#define F(name, arguments, least, most, result, effect) {name, arguments, least, most, result, PROMQL_##effect, false, false, false}
#define A(name, arguments, effect)                      {name, arguments, sizeof(arguments) - 1, sizeof(arguments) - 1, 'v', PROMQL_##effect, true, false, false}
#define ANY                                             PROMQL_ARGUMENTS_ANY

// Prometheus: promql/parser/functions.go and parse.go, from 2.42 to 3.10, experimental ones included. xrate, xincrease
// and xdelta: Thanos, --query.enable-x-functions.
static const struct promql_function table[] = {
	F("abs",                          "v",     1, 1,   'v', TOTAL),
	F("absent",                       "v",     1, 1,   'v', ONE),
	F("absent_over_time",             "m",     1, 1,   'v', ONE),
	F("acos",                         "v",     1, 1,   'v', UNKNOWN),
	F("acosh",                        "v",     1, 1,   'v', UNKNOWN),
	F("asin",                         "v",     1, 1,   'v', UNKNOWN),
	F("asinh",                        "v",     1, 1,   'v', UNKNOWN),
	F("atan",                         "v",     1, 1,   'v', UNKNOWN),
	F("atanh",                        "v",     1, 1,   'v', UNKNOWN),
	A("avg",                          "v",                  SAME),
	F("avg_over_time",                "m",     1, 1,   'v', SAME),
	A("bottomk",                      "sv",                 SAME),
	F("ceil",                         "v",     1, 1,   'v', ROUNDED),
	F("changes",                      "m",     1, 1,   'v', COUNT),
	F("clamp",                        "vss",   3, 3,   'v', CLAMP),
	F("clamp_max",                    "vs",    2, 2,   'v', CLAMP_MAX),
	F("clamp_min",                    "vs",    2, 2,   'v', CLAMP_MIN),
	F("cos",                          "v",     1, 1,   'v', UNKNOWN),
	F("cosh",                         "v",     1, 1,   'v', UNKNOWN),
	A("count",                        "v",                  COUNT),
	F("count_over_time",              "m",     1, 1,   'v', COUNT),
	A("count_values",                 "tv",                 COUNT),
	F("day_of_month",                 "v",     0, 1,   'v', COUNT),
	F("day_of_week",                  "v",     0, 1,   'v', COUNT),
	F("day_of_year",                  "v",     0, 1,   'v', COUNT),
	F("days_in_month",                "v",     0, 1,   'v', COUNT),
	F("deg",                          "v",     1, 1,   'v', TOTAL),
	F("delta",                        "m",     1, 1,   'v', UNKNOWN),
	F("deriv",                        "m",     1, 1,   'v', UNKNOWN),
	F("double_exponential_smoothing", "mss",   3, 3,   'v', UNKNOWN),
	F("end",                          "",      0, 0,   's', UNKNOWN),
	F("exp",                          "v",     1, 1,   'v', COUNT),
	F("first_over_time",              "m",     1, 1,   'v', SAME),
	F("floor",                        "v",     1, 1,   'v', ROUNDED),
	A("group",                        "v",                  ONE),
	F("histogram_avg",                "v",     1, 1,   'v', MEAN),
	F("histogram_count",              "v",     1, 1,   'v', TOTAL),
	F("histogram_fraction",           "ssv",   3, 3,   'v', SHARE),
	F("histogram_quantile",           "sv",    2, 2,   'v', MEAN),
	F("histogram_quantiles",          "vtss",  3, 12,  'v', MEAN),
	F("histogram_stddev",             "v",     1, 1,   'v', MEAN),
	F("histogram_stdvar",             "v",     1, 1,   'v', MEAN),
	F("histogram_sum",                "v",     1, 1,   'v', TOTAL),
	F("holt_winters",                 "mss",   3, 3,   'v', UNKNOWN),
	F("hour",                         "v",     0, 1,   'v', COUNT),
	F("idelta",                       "m",     1, 1,   'v', UNKNOWN),
	F("increase",                     "m",     1, 1,   'v', RATE),
	{"info",                          "vv",    1, 2,   'v', PROMQL_SAME, false, true, false},
	F("integral",                     "ms",    1, 2,   'v', UNKNOWN),
	F("irate",                        "m",     1, 1,   'v', RATE),
	F("label_join",                   "vttt",  3, ANY, 'v', SAME),
	F("label_replace",                "vtttt", 5, 5,   'v', SAME),
	F("last_over_time",               "m",     1, 1,   'v', SAME),
	A("limit_ratio",                  "sv",                 SAME),
	A("limitk",                       "sv",                 SAME),
	F("ln",                           "v",     1, 1,   'v', UNKNOWN),
	F("log10",                        "v",     1, 1,   'v', UNKNOWN),
	F("log2",                         "v",     1, 1,   'v', UNKNOWN),
	F("mad_over_time",                "m",     1, 1,   'v', COUNT),
	A("max",                          "v",                  SAME),
	F("max_over_time",                "m",     1, 1,   'v', SAME),
	A("min",                          "v",                  SAME),
	F("min_over_time",                "m",     1, 1,   'v', SAME),
	F("minute",                       "v",     0, 1,   'v', COUNT),
	F("month",                        "v",     0, 1,   'v', COUNT),
	F("pi",                           "",      0, 0,   's', UNKNOWN),
	F("predict_linear",               "ms",    2, 2,   'v', UNKNOWN),
	F("present_over_time",            "m",     1, 1,   'v', ONE),
	A("quantile",                     "sv",                 SAME),
	F("quantile_over_time",           "sm",    2, 2,   'v', SAME),
	F("rad",                          "v",     1, 1,   'v', TOTAL),
	F("range",                        "",      0, 0,   's', UNKNOWN),
	F("rate",                         "m",     1, 1,   'v', RATE),
	F("resets",                       "m",     1, 1,   'v', COUNT),
	F("round",                        "vs",    1, 2,   'v', ROUNDED),
	F("scalar",                       "v",     1, 1,   's', SAME),
	F("sgn",                          "v",     1, 1,   'v', UNKNOWN),
	F("sin",                          "v",     1, 1,   'v', UNKNOWN),
	F("sinh",                         "v",     1, 1,   'v', UNKNOWN),
	F("sort",                         "v",     1, 1,   'v', SAME),
	F("sort_by_label",                "vt",    1, ANY, 'v', SAME),
	F("sort_by_label_desc",           "vt",    1, ANY, 'v', SAME),
	F("sort_desc",                    "v",     1, 1,   'v', SAME),
	F("sqrt",                         "v",     1, 1,   'v', TOTAL),
	F("start",                        "",      0, 0,   's', UNKNOWN),
	A("stddev",                       "v",                  COUNT),
	F("stddev_over_time",             "m",     1, 1,   'v', COUNT),
	A("stdvar",                       "v",                  COUNT),
	F("stdvar_over_time",             "m",     1, 1,   'v', COUNT),
	F("step",                         "",      0, 0,   's', UNKNOWN),
	A("sum",                          "v",                  TOTAL),
	F("sum_over_time",                "m",     1, 1,   'v', TOTAL),
	F("tan",                          "v",     1, 1,   'v', UNKNOWN),
	F("tanh",                         "v",     1, 1,   'v', UNKNOWN),
	F("time",                         "",      0, 0,   's', UNKNOWN),
	F("timestamp",                    "v",     1, 1,   'v', COUNT),
	A("topk",                         "sv",                 SAME),
	F("ts_of_first_over_time",        "m",     1, 1,   'v', COUNT),
	F("ts_of_last_over_time",         "m",     1, 1,   'v', COUNT),
	F("ts_of_max_over_time",          "m",     1, 1,   'v', COUNT),
	F("ts_of_min_over_time",          "m",     1, 1,   'v', COUNT),
	F("vector",                       "s",     1, 1,   'v', SAME),
	{"xdelta",                        "m",     1, 1,   'v', PROMQL_UNKNOWN, false, false, true},
	{"xincrease",                     "m",     1, 1,   'v', PROMQL_RATE, false, false, true},
	{"xrate",                         "m",     1, 1,   'v', PROMQL_RATE, false, false, true},
	F("year",                         "v",     0, 1,   'v', COUNT),
};
// clang-format on

const struct promql_function *promql_function_find(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(table) && len > 0; i++) {
		const struct promql_function *f = &table[i];
		if ((f->name[0] ^ name[0]) & ~0x20) // the usual case, cheaply
			continue;
		if (strlen(f->name) == len &&
		    (f->is_aggregation ? strncasecmp(name, f->name, len) : memcmp(name, f->name, len)) == 0)
			return f;
	}
	return NULL;
}

const char *promql_function_similar(const char *name, size_t len)
{
	const char *names[COUNT_OF(table)];
	char word[NAME_BYTES];
	size_t n = 0;
	if (len >= sizeof word)
		return NULL;
	snprintf(word, sizeof word, "%.*s", (int)len, name);
	for (size_t i = 0; i < COUNT_OF(table); i++)
		if (!table[i].is_thanos)
			names[n++] = table[i].name;
	return num_closest_name(word, names, n);
}

// ---- values ----

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

static void bound(struct promql_value *v, double low, double high)
{
	v->low = low;
	v->high = high;
	v->is_idle_zero = v->is_idle_zero && low <= 0 && high >= 0;
}

static void clamp(struct promql_value *v, double least, double most)
{
	bound(v, fmin(fmax(v->low, least), most), fmax(fmin(v->high, most), least));
}

static bool fits(const struct promql_value *v, enum promql_value_type type)
{
	return v->type == PROMQL_VALUE_ANY || v->type == type;
}

// Returns the type of argument i. f: with arguments.
static enum promql_value_type type_of_argument(const struct promql_function *f, size_t i)
{
	static const char letters[] = " svmt"; // in the order of the enum
	size_t last = strlen(f->arguments) - 1;
	return (enum promql_value_type)(strchr(letters, f->arguments[i < last ? i : last]) - letters);
}

void promql_arguments_add(struct promql_arguments *a, const struct promql_function *f, const struct promql_value *v)
{
	if (f && f->arguments[0] && a->expected == PROMQL_VALUE_ANY && !fits(v, type_of_argument(f, a->n))) {
		a->expected = type_of_argument(f, a->n);
		a->wrong = *v;
	}
	bool is_data = v->type == PROMQL_VALUE_VECTOR || v->type == PROMQL_VALUE_RANGE;
	if (a->n == 0 || (is_data && !a->has_data))
		a->data = *v;
	a->has_data |= is_data;
	if (a->n >= 1 && a->n <= 2)
		a->limit[a->n - 1] = *v;
	a->n++;
}

void promql_value_apply(const struct promql_function *f, const struct promql_token *name,
                        const struct promql_arguments *a, struct promql_value *v)
{
	const struct promql_value *x = &a->data, *limit = a->limit;
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
