// SPDX-License-Identifier: Apache-2.0
#include "promql/functions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

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
