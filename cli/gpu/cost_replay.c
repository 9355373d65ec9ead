// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/cost_replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/gpu/cost_fetch.h"
#include "cli/replay/replay_fetch.h"
#include "cli/replay/replay_input.h"
#include "cli/replay/replay_objective.h"
#include "replay/recording.h"

#define STEP_MS       15000
#define LONG_STEP_MS  60000
#define LONG_PERIOD_S (100 * INT64_C(86400)) // with the short step, a longer period has too many rows

static const struct backtest_row *find_row(const struct backtest *b, enum backtest_kind kind)
{
	for (size_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].kind == kind && (kind != BACKTEST_PEER || b->rows[i].is_best))
			return &b->rows[i];
	return NULL;
}

static int replay(const struct policy *policy, const struct recording *recording, struct cost_hpa *ret,
                  struct buf *notes, struct err *e)
{
	struct backtest_config config = {.hpa_only = true, .per_replica = 1};
	struct backtest *b = malloc(sizeof *b);
	if (!b)
		return err_set(e, ERR_INTERNAL, "out of memory");
	replay_objective_clear(&config);
	replay_objective_complete(&config, policy);
	replay_choose_demand(&config, policy, recording);
	int rc = backtest_run(&config, policy, recording, "Prometheus", b, e);
	const struct backtest_row *ran = rc == 0 ? find_row(b, BACKTEST_ACTUAL) : NULL;
	const struct backtest_row *hpa = rc == 0 ? find_row(b, BACKTEST_PEER) : NULL;
	if (rc == 0 && !ran)
		rc = err_set(e, ERR_NOT_FOUND, "the source has no record of the replicas in the period");
	if (rc == 0) {
		ret->more_s = hpa->score.replica_s - ran->score.replica_s;
		ret->late_percent = score_late_percent(&hpa->score);
		memcpy(ret->name, hpa->name, sizeof ret->name);
		if (b->recorded_share < 1)
			print_to(notes,
			         "replicas are recorded for %.3g%% of the time: the comparison with the HPA covers "
			         "only these\n",
			         100 * b->recorded_share);
	}
	backtest_done(b);
	free(b);
	return rc;
}

int cost_replay_hpa(const struct prometheus_options *prometheus, const struct policy *policy,
                    const struct cost_period *period, struct cost_hpa *ret, struct buf *notes, struct err *e)
{
	int64_t since_s = period->end_s - period->start_s;
	const struct replay_fetch fetch = {.prometheus = prometheus,
	                                   .policy = policy,
	                                   .since_ms = since_s * 1000,
	                                   .until_ms = period->end_s * 1000,
	                                   .step_ms = since_s > LONG_PERIOD_S ? LONG_STEP_MS : STEP_MS};
	struct recording *recording = calloc(1, sizeof *recording);
	if (!recording)
		return err_set(e, ERR_INTERNAL, "out of memory");
	int rc = replay_fetch(&fetch, recording, notes, e);
	if (rc == 0)
		rc = replay(policy, recording, ret, notes, e);
	recording_done(recording);
	free(recording);
	return rc;
}
