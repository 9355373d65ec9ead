// SPDX-License-Identifier: Apache-2.0
// The Knative autoscaler's rule on arriving work (its "rps" metric): a stable window of 60 s, a panic window of one
// step, panic at twice the ready replicas, never down in panic. Knative: pkg/autoscaler/scaling/autoscaler.go.
#ifndef GPUSCALE_TEST_SIM_KNATIVE_H
#define GPUSCALE_TEST_SIM_KNATIVE_H

#include <stddef.h>
#include <stdint.h>

#define KNATIVE_STABLE_S 60.0
#define KNATIVE_STEPS    64

struct knative {
	double step_s, target; // demand that one replica should have, in replicas' worth
	double demand[KNATIVE_STEPS];
	size_t n;
	double panic_since_s; // < 0: not in panic
	int32_t panic_most;
};

void knative_init(struct knative *k, double step_s, double target);
int32_t knative_decide(struct knative *k, double now_s, double demand, int32_t ready);

#endif
