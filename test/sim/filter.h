// SPDX-License-Identifier: Apache-2.0
// `gpuscale step` as a child behind two pipes.
#ifndef GPUSCALE_TEST_SIM_FILTER_H
#define GPUSCALE_TEST_SIM_FILTER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct err;
struct world_view;

struct filter {
	pid_t pid;
	FILE *to, *from;
	const char *signals; // names of those to send, "demand,backlog"
};

// Starts `gpuscale step -f policy`. Only the named signals are sent: step refuses one that the policy does not have.
int filter_open(struct filter *f, const char *gpuscale, const char *policy, const char *signals, struct err *e);
// One observation out, one decision back: the replicas that are wanted. ERR_PROTOCOL names what came instead.
int filter_ask(struct filter *f, double time_s, int32_t replicas, int32_t ready, const struct world_view *view,
               int32_t *ret_replicas, struct err *e);
// Ends the child by closing its input; -1 and *e when it did not end well.
int filter_close(struct filter *f, struct err *e);

#endif
