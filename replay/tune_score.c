// SPDX-License-Identifier: Apache-2.0
// Sums and losses of the parts that a trial of tune has played.
#include "replay/tune_search.h"

#include <math.h>

#define ERRORS     2     // standard errors that the bound of the lateness adds
#define LATE_LEAST 0.001 // least lateness, so that the loss is finite for an objective of 0 %

double tune_late_percent(const struct tune_score *s)
{
	return s->requests > 0 ? 100 * s->late / s->requests : 0;
}

// The variance of the ratio of two sums over n blocks: n / (n - 1) times the squared residuals, over the squared sum.
double tune_late_bound_percent(const struct tune_score *s)
{
	if (!(s->requests > 0) || s->n_blocks < 2)
		return tune_late_percent(s);
	double r = s->late / s->requests, n = s->n_blocks;
	double residuals = s->late_late - 2 * r * s->late_requests + r * r * s->requests_requests;
	return 100 * fmin(1, r + ERRORS * sqrt(n / (n - 1) * fmax(0, residuals)) / s->requests);
}

static double loss_at(double replica_s, double late, double late_ratio)
{
	double above = late > late_ratio ? fmax(late, LATE_LEAST) / fmax(late_ratio, LATE_LEAST) : 1;
	return replica_s * fmax(above, 1);
}

double tune_loss(const struct tune_score *s, double late_ratio)
{
	return loss_at(s->replica_s, tune_late_percent(s) / 100, late_ratio);
}

static void add(struct tune_score *sum, const struct tune_score *s)
{
	sum->replica_s += s->replica_s;
	sum->requests += s->requests;
	sum->late += s->late;
	sum->changes += s->changes;
	sum->n_blocks += s->n_blocks;
	sum->late_late += s->late_late;
	sum->late_requests += s->late_requests;
	sum->requests_requests += s->requests_requests;
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
	const struct tune_score sum = tune_score_sum(parts, 0, n);
	return fmax(loss, loss_at(sum.replica_s, tune_late_bound_percent(&sum) / 100, late_ratio));
}
