// SPDX-License-Identifier: Apache-2.0
// Sums and losses of the parts that a trial of tune has played.
#include "replay/tune_search.h"

#include <math.h>

#define LATE_LEAST 0.001 // of an objective of 0 %, so that the loss is finite

double tune_late_percent(const struct tune_score *s)
{
	return s->requests > 0 ? 100 * s->late / s->requests : 0;
}

double tune_loss(const struct tune_score *s, double late_ratio)
{
	double late = tune_late_percent(s) / 100;
	double above = late > late_ratio ? fmax(late, LATE_LEAST) / fmax(late_ratio, LATE_LEAST) : 1;
	return s->replica_s * fmax(above, 1);
}

static void add(struct tune_score *sum, const struct tune_score *s)
{
	sum->replica_s += s->replica_s;
	sum->requests += s->requests;
	sum->late += s->late;
	sum->changes += s->changes;
}

struct tune_score tune_score_sum(const struct tune_score parts[TUNE_PARTS], size_t from, size_t to)
{
	struct tune_score sum = {0};
	for (size_t i = from; i < to; i++)
		add(&sum, &parts[i]);
	return sum;
}

double tune_score_loss(const struct tune_score parts[TUNE_PARTS], size_t n, double late_ratio)
{
	double loss = 0;
	for (size_t i = 0; i < n; i++)
		loss += tune_loss(&parts[i], late_ratio);
	return loss;
}
