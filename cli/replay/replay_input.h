// SPDX-License-Identifier: Apache-2.0
// The input of the commands that replay demand: which policy, which recording (a file, or queries of Prometheus), and
// the world they are replayed in. The options of both sets of flags are a struct replay_args.
#ifndef GPUSCALE_CLI_REPLAY_REPLAY_INPUT_H
#define GPUSCALE_CLI_REPLAY_REPLAY_INPUT_H

#include "base/buf.h"
#include "policies/load/file_set.h"
#include "replay/backtest.h"
#include "replay/recording.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"

struct policy;

struct replay_args {
	struct path_options files; // -f
	const char *policy;        // -p; NULL: the only one
	const char *data;          // --data; NULL: prometheus
	const char *target;        // --target: NAME or NAMESPACE/NAME of one target of a fleet; NULL: not given
	struct prometheus_options prometheus;
	const char *demand;                  // --demand; NULL: none
	int64_t since_ms, until_ms, step_ms; // of prometheus; 0: not given
	struct backtest_config config;
	struct policy_learnt learnt; // config.learnt points at it
};
// Sets the defaults; an objective that no flag sets stays NaN until replay_config_complete().
void replay_args_init(struct replay_args *a);
extern const struct flag_set replay_input_flags; // the policy and the recording; sets demand_column and per_replica
extern const struct flag_set replay_world_flags; // simulated signals, start-up, capacity, objective

struct replay_input {
	struct file_set set;
	const struct policy *policy; // of the set
	struct recording recording;
	const char *file; // names the recording in messages
	struct buf notes; // what is missing in it, one line each; a report shows them
};
// Loads the policy and reads the recording; for a closed loop, sets a->config.learnt from the status in the policy
// file, and notes what is not usable in it. Shows a progress bar while queries run. Completes a->config as
// replay_config_complete(), where --demand names the column of demand first. Prints errors after "gpuscale COMMAND: "
// on standard error and returns the exit code. The caller calls replay_input_done() in any case.
int replay_input_read(struct replay_args *a, const char *command, struct replay_input *ret);
// Fills in what *c leaves open: the objective is that of the policy, or 1 % and 10 s; that of the policy names the
// signals that are simulated, and the column of demand.
void replay_config_complete(struct backtest_config *c, const struct policy *p, const struct recording *r);
void replay_input_done(struct replay_input *in);

#endif
