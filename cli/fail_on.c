// SPDX-License-Identifier: Apache-2.0
#include "cli/fail_on.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

static const char *const metrics[] = {"late", "p95-wait", "gpu-hours", "cost", "changes", "at-max"};
static const char *const comparisons[] = {">", ">=", "<", "<="};
_Static_assert(sizeof metrics / sizeof *metrics == FAIL_METRIC__COUNT, "one name per metric");
_Static_assert(sizeof comparisons / sizeof *comparisons == FAIL_COMPARISON__COUNT, "one sign per comparison");

#define FORM "expected METRIC > NUMBER, such as 'late > 5%%' or 'p95-wait > 30s'"

static int parse_limit(const char *text, enum fail_metric metric, double *ret, struct err *e)
{
	size_t len = strlen(text);
	int64_t ms;
	if (len > 1 && text[len - 1] == '%' && (metric == FAIL_LATE || metric == FAIL_AT_MAX))
		len--;
	if (num_parse_f64(text, len, ret, NULL) == 0)
		return 0;
	if (metric == FAIL_P95_WAIT && num_parse_duration_ms(text, len, &ms, NULL) == 0) {
		*ret = (double)ms / 1000;
		return 0;
	}
	return err_set(e, ERR_USAGE, "\"%s\" is not a limit for %s: " FORM, text, metrics[metric]);
}

int fail_on_parse(const char *text, struct fail_on *ret, struct err *e)
{
	size_t len = strcspn(text, " <>=");
	const char *sign = text + len + strspn(text + len, " ");
	size_t sign_len = strspn(sign, "<>=");
	size_t metric = 0, comparison = 0;
	while (metric < FAIL_METRIC__COUNT &&
	       (strlen(metrics[metric]) != len || memcmp(metrics[metric], text, len) != 0))
		metric++;
	while (comparison < FAIL_COMPARISON__COUNT &&
	       (strlen(comparisons[comparison]) != sign_len || memcmp(comparisons[comparison], sign, sign_len) != 0))
		comparison++;
	if (metric == FAIL_METRIC__COUNT)
		return err_set(e, ERR_USAGE, "\"%s\": the metrics are late, p95-wait, gpu-hours, cost, changes, at-max",
		               text);
	if (comparison == FAIL_COMPARISON__COUNT)
		return err_set(e, ERR_USAGE, "\"%s\": " FORM, text);
	*ret = (struct fail_on){text, (enum fail_metric)metric, (enum fail_comparison)comparison, 0};
	const char *limit = sign + sign_len;
	return parse_limit(limit + strspn(limit, " "), ret->metric, &ret->limit, e);
}

bool fail_on_is_met(const struct fail_on *f, double value)
{
	if (isnan(value))
		return false;
	switch (f->comparison) {
	case FAIL_ABOVE:
		return value > f->limit;
	case FAIL_AT_LEAST:
		return value >= f->limit;
	case FAIL_BELOW:
		return value < f->limit;
	case FAIL_AT_MOST:
	case FAIL_COMPARISON__COUNT:
		break;
	}
	return value <= f->limit;
}
