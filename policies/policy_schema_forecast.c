// SPDX-License-Identifier: Apache-2.0
// spec.forecast and spec.panic of a GPUAutoscaler.
#include <string.h>

#include "policies/forecast.h"
#include "policies/policy.h"
#include "policies/policy_schema_private.h"

static const char *const models[] = {
        [FORECAST_LINEAR] = "Linear", [FORECAST_HOLT_WINTERS] = "HoltWinters", [FORECAST_MODEL__COUNT] = NULL};
_Static_assert(COUNT_OF(models) == FORECAST_MODEL__COUNT + 1, "one name per model");

static const char *const uses[] = {
        [FORECAST_SCALE_UP_ONLY] = "ScaleUpOnly", [FORECAST_BOTH] = "Both", [FORECAST_USE__COUNT] = NULL};
_Static_assert(COUNT_OF(uses) == FORECAST_USE__COUNT + 1, "one name per use");

static const struct schema_field fields[] = {
        {.name = "signal",
         .type = SCHEMA_STRING,
         .doc = "Name of the signal to look ahead on. Its load is forecast: a value per replica counts times the ready "
                "replicas.",
         FIELD(struct policy_forecast, signal),
         .required = true,
         .min = 1,
         .max = 63},
        {.name = "model",
         .type = SCHEMA_ENUM,
         .doc = "HoltWinters: level, trend and a season that adds to them, for load that comes back with the time of "
                "day or week. Linear: a straight line through the last `window`.",
         FIELD(struct policy_forecast, model),
         .default_text = "HoltWinters",
         .enum_names = models},
        {.name = "season",
         .type = SCHEMA_DURATION_MS,
         .doc = "HoltWinters: length of what repeats itself, as 24h or 1w. It is cut into at most 288 slots. Nothing "
                "is "
                "forecast until two seasons were seen.",
         FIELD_SET(struct policy_forecast, season_ms, season_set),
         .min = SECOND_MS,
         .max = 28 * DAY_MS},
        {.name = "window",
         .type = SCHEMA_DURATION_MS,
         .doc = "Linear: how far back the line looks. It is cut into at most 64 slots. Nothing is forecast until it is "
                "full.",
         FIELD_SET(struct policy_forecast, window_ms, window_set),
         .default_text = "10m",
         .min = SECOND_MS,
         .max = 7 * DAY_MS},
        {.name = "horizon",
         .type = SCHEMA_STRING,
         .doc = "How far ahead: a duration, or Startup for the time a replica takes to start (given by startup.seconds "
                "or learnt).",
         FIELD(struct policy_forecast, horizon_text),
         .default_text = "Startup",
         .min = 1,
         .max = 63},
        {.name = "use",
         .type = SCHEMA_ENUM,
         .doc = "ScaleUpOnly: the larger of what the signal asks for now and then. Both: the forecast takes the place "
                "of the signal, which must have fresh data all the same.",
         FIELD(struct policy_forecast, use),
         .default_text = "ScaleUpOnly",
         .enum_names = uses},
        {.name = "band",
         .type = SCHEMA_QUANTITY,
         .doc = "How many standard deviations of its error are added to the forecast: with 0 the load is above it half "
                "of the time, with \"1.3\" one time in ten, with 2 one time in forty.",
         FIELD(struct policy_forecast, band),
         .default_text = "0",
         .min = 0,
         .max = 10},
        {.name = "alpha",
         .type = SCHEMA_QUANTITY,
         .doc = "HoltWinters: weight of the newest slot in the level.",
         FIELD(struct policy_forecast, alpha),
         .default_text = "0.3",
         .min = 0,
         .max = 1},
        {.name = "beta",
         .type = SCHEMA_QUANTITY,
         .doc = "HoltWinters: weight of the newest change of the level in the trend.",
         FIELD(struct policy_forecast, beta),
         .default_text = "0.01",
         .min = 0,
         .max = 1},
        {.name = "gamma",
         .type = SCHEMA_QUANTITY,
         .doc = "HoltWinters: weight of the newest season.",
         FIELD(struct policy_forecast, gamma),
         .default_text = "0.2",
         .min = 0,
         .max = 1},
};

static size_t check_fields(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_forecast *f = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (f->model == FORECAST_HOLT_WINTERS && !f->season_set)
		fault_add(&l, "season", -1, "required with model HoltWinters, but missing: add it, as in 24h");
	if (f->model == FORECAST_LINEAR && f->season_set)
		fault_add(&l, "season", -1, "has no meaning with model Linear: remove it, or use HoltWinters");
	if (f->model == FORECAST_HOLT_WINTERS && f->window_set)
		fault_add(&l, "window", -1, "has no meaning with model HoltWinters: remove it, or use Linear");
	return l.n;
}

static const struct schema_rule forecast_rules[] = {
        {"self.model == 'HoltWinters' ? has(self.season) && !has(self.window) : !has(self.season)",
         "model HoltWinters needs a season and takes no window, model Linear takes no season"},
};

const struct schema policy_schema_forecast = {
        .name = "GPUAutoscaler.spec.forecast",
        .doc = "Scale ahead of the load: what its signal would ask for when replicas ordered now are ready.",
        .struct_size = sizeof(struct policy_forecast),
        .fields = fields,
        .n_fields = COUNT_OF(fields),
        .validate = check_fields,
        .rules = forecast_rules,
        .n_rules = COUNT_OF(forecast_rules),
};

// ---- panic ----

static const struct schema_field panic_fields[] = {
        {.name = "signal",
         .type = SCHEMA_STRING,
         .doc = "Name of the signal whose bursts count. It needs a window with aggregate Avg: the stable window.",
         FIELD(struct policy_panic, signal),
         .required = true,
         .min = 1,
         .max = 63},
        {.name = "window",
         .type = SCHEMA_STRING,
         .doc = "The panic window: the last part of the signal's window, as a share of it (10%) or a duration. At "
                "least "
                "one interval.",
         FIELD(struct policy_panic, window_text),
         .default_text = "10%",
         .min = 1,
         .max = 63},
        {.name = "threshold",
         .type = SCHEMA_QUANTITY,
         .doc = "Panic begins when the panic window asks for this many times the ready replicas, and ends one stable "
                "window after it last did.",
         FIELD(struct policy_panic, threshold),
         .default_text = "2",
         .min = 1.1,
         .max = 10},
};

const struct schema policy_schema_panic = {
        .name = "GPUAutoscaler.spec.panic",
        .doc = "Go by a short window in a burst, and take nothing away until it has passed (Knative's panic mode).",
        .struct_size = sizeof(struct policy_panic),
        .fields = panic_fields,
        .n_fields = COUNT_OF(panic_fields),
};

// ---- between them and the rest ----

static size_t signal_named(const struct policy *p, const char *name)
{
	size_t i = 0;
	while (i < p->n_signals && strcmp(p->signals[i].name, name) != 0)
		i++;
	return i;
}

void policy_schema_check_panic(const struct policy *p, struct fault_list *l)
{
	if (!p->panic.set)
		return;
	size_t i = signal_named(p, p->panic.signal);
	if (i == p->n_signals)
		fault_add(l, "panic.signal", -1, "must be the name of one of the signals");
	else if (!p->signals[i].window.set || p->signals[i].window.aggregate != WINDOW_AVG)
		fault_add(l, "panic.signal", -1,
		          "has no window with aggregate Avg, the stable window: add it, as in window: {duration: 60s}");
}

void policy_schema_check_forecast(const struct policy *p, struct fault_list *l)
{
	const struct policy_forecast *f = &p->forecast;
	if (!f->set)
		return;
	size_t i = signal_named(p, f->signal);
	if (i == p->n_signals)
		fault_add(l, "forecast.signal", -1, "must be the name of one of the signals");
	else if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
		fault_add(l, "forecast.signal", -1,
		          "has a target of type Pods, which cannot be forecast: use a total with type AverageValue");
	if (f->model == FORECAST_HOLT_WINTERS && f->season_ms / p->interval_ms < FORECAST_SLOTS_MIN)
		fault_add(l, "forecast.season", -1, "must hold at least 4 intervals: lengthen it or shorten interval");
	if (f->model == FORECAST_LINEAR && f->window_ms / p->interval_ms < FORECAST_SLOTS_MIN)
		fault_add(l, "forecast.window", -1, "must hold at least 4 intervals: lengthen it or shorten interval");
}
