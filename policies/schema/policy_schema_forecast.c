// SPDX-License-Identifier: Apache-2.0
// spec.forecast and spec.panic of a GPUAutoscaler.
#include "policies/engine/policy.h"
#include "policies/schema/policy_schema_private.h"

ENUM_NAMES(models, FORECAST_MODEL__COUNT, [FORECAST_LINEAR] = "Linear", [FORECAST_HOLT_WINTERS] = "HoltWinters");

ENUM_NAMES(uses, FORECAST_USE__COUNT, [FORECAST_SCALE_UP_ONLY] = "ScaleUpOnly", [FORECAST_BOTH] = "Both");

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

// clang-format off
static const struct schema_field fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_forecast, signal),                    REQUIRED,               RANGE(1, 63),                       DOC("Name of the signal to look ahead on. Its load is forecast: a value per replica counts times the ready replicas.")},
	{ROW("model", ENUM),         FIELD(struct policy_forecast, model),                     DEFAULT("HoltWinters"), ONE_OF(models),                     DOC("HoltWinters: level, trend and a season that adds to them, for load that recurs with the time of day or week. Linear: a straight line through the last `window`.")},
	{ROW("season", DURATION_MS), FIELD_SET(struct policy_forecast, season_ms, season_set), OPTIONAL,               RANGE(SECOND_MS, 28 * DAY_MS),      DOC("HoltWinters: length of the season, such as 24h or 1w. It is divided into at most 288 slots. After two seasons the forecast is compared with the load for a quarter of a season, at most 6h, and starts if it was better than the last load and the load one season earlier.")},
	{ROW("window", DURATION_MS), FIELD_SET(struct policy_forecast, window_ms, window_set), DEFAULT("10m"),         RANGE(SECOND_MS, 7 * DAY_MS),       DOC("Linear: the period that the line is fitted to. It is divided into at most 64 slots. When the window is full, the forecast is compared with the load for another window, at most 1d, and starts if it was better than the last load.")},
	{ROW("horizon", STRING),     FIELD(struct policy_forecast, horizon_text),              DEFAULT("Startup"),     RANGE(1, 63),                       DOC("How far ahead: a duration, or Startup for the time a replica takes to start (given by startup.seconds or learnt).")},
	{ROW("use", ENUM),           FIELD(struct policy_forecast, use),                       DEFAULT("ScaleUpOnly"), ONE_OF(uses),                       DOC("ScaleUpOnly: the larger of what the signal asks for now and then. Both: the forecast replaces the proposal of the signal, which must still have recent data.")},
	{ROW("band", QUANTITY),      FIELD(struct policy_forecast, band),                      DEFAULT("0"),           RANGE(0, 10), TUNE(LINEAR, 0, 4),   DOC("How many standard deviations of its error are added to the forecast: with 0 the load is above it half of the time, with \"1.3\" one time in ten, with 2 one time in forty.")},
	{ROW("alpha", QUANTITY),     FIELD(struct policy_forecast, alpha),                     DEFAULT("0.3"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest slot in the level.")},
	{ROW("beta", QUANTITY),      FIELD(struct policy_forecast, beta),                      DEFAULT("0.01"),        RANGE(0, 1), TUNE(LOG, 0.001, 0.3), DOC("HoltWinters: weight of the newest change of the level in the trend.")},
	{ROW("gamma", QUANTITY),     FIELD(struct policy_forecast, gamma),                     DEFAULT("0.2"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest season.")},
};
static const struct schema_rule forecast_rules[] = {
	{"self.model == 'HoltWinters' ? has(self.season) && !has(self.window) : !has(self.season)", "model HoltWinters needs a season and takes no window, model Linear takes no season"},
};
const struct schema policy_schema_forecast = {SCHEMA("GPUAutoscaler.spec.forecast", struct policy_forecast, fields), VALIDATE(check_fields), RULES(forecast_rules), DOC("Scale ahead of the load: to what its signal would ask for when replicas requested now are ready.")};
// clang-format on

// ---- panic ----

// clang-format off
static const struct schema_field panic_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_panic, signal),      REQUIRED,       RANGE(1, 63),                         DOC("Name of the signal whose bursts count. It needs a window with aggregate Avg: the stable window.")},
	{ROW("window", STRING),      FIELD(struct policy_panic, window_text), DEFAULT("10%"), RANGE(1, 63),                         DOC("The panic window: the last part of the signal's window, as a share of it (10%) or a duration. At least one interval.")},
	{ROW("threshold", QUANTITY), FIELD(struct policy_panic, threshold),   DEFAULT("2"),   RANGE(1.1, 10), TUNE(LINEAR, 1.1, 5), DOC("A panic starts when the panic window asks for this many times the ready replicas, and ends one stable window after it last did.")},
};
const struct schema policy_schema_panic = {SCHEMA("GPUAutoscaler.spec.panic", struct policy_panic, panic_fields), DOC("Use a short window during a burst, and do not scale down until it has passed (Knative's panic mode).")};
// clang-format on
