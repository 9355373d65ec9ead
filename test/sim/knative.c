// SPDX-License-Identifier: Apache-2.0
#include "test/sim/knative.h"

#include <math.h>

#define RATE_DOWN       2.0
#define PANIC_THRESHOLD 2.0

void knative_init(struct knative *k, double step_s, double target)
{
	*k = (struct knative){.step_s = step_s, .target = target, .panic_since_s = -1};
}

int32_t knative_decide(struct knative *k, double now_s, double demand, int32_t ready)
{
	k->demand[k->n++ % KNATIVE_STEPS] = demand;
	size_t steps = (size_t)fmin(ceil(KNATIVE_STABLE_S / k->step_s), fmin((double)k->n, KNATIVE_STEPS));
	double sum = 0;
	for (size_t i = 0; i < steps; i++)
		sum += k->demand[(k->n - 1 - i) % KNATIVE_STEPS];
	double base = fmax(1, ready), least = floor(base / RATE_DOWN);
	double panic = ceil(demand / k->target), stable = fmax(ceil(sum / (double)steps / k->target), least);
	if (panic / base >= PANIC_THRESHOLD) {
		k->panic_since_s = now_s;
	} else if (k->panic_since_s >= 0 && now_s - k->panic_since_s > KNATIVE_STABLE_S) {
		k->panic_since_s = -1;
		k->panic_most = 0;
	}
	double want = stable;
	if (k->panic_since_s >= 0) {
		want = fmax(fmax(stable, fmax(panic, least)), k->panic_most);
		k->panic_most = (int32_t)want;
	}
	return (int32_t)fmax(1, want);
}
