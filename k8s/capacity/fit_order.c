// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/fit_order.h"

void fit_order_init(struct fit_order *o)
{
	*o = (struct fit_order){.now = {.from = -1, .to = -1}};
}

void fit_order_write(struct fit_order *order, int32_t from, int32_t to, int64_t now_ms)
{
	struct fit_writes *o = &order->now;
	// Of the replicas requested until now, those of earlier writes; the others were added by another client.
	int32_t top = o->to < from ? o->to : from;
	int32_t own = top > o->from && now_ms - o->at_ms < FIT_ORDER_MS ? top - o->from : 0;
	order->before = *o;
	o->from = from - own;
	o->to = to;
	o->is_unacked = true;
	if (own == 0)
		o->at_ms = now_ms;
}

void fit_order_end(struct fit_order *o)
{
	o->now.is_unacked = false;
}

void fit_order_cancel(struct fit_order *o)
{
	o->now = o->before;
}

// Returns how many of the ordered replicas are missing.
static int64_t count_missing(const struct fit_writes *o, int32_t spec, int32_t status)
{
	if (status < 0 || o->to < 0)
		return 0; // it is unknown which replicas exist
	// Replicas that another client has removed since are not coming.
	int32_t most = !o->is_unacked && spec < o->to ? spec : o->to;
	int64_t n = (int64_t)most - (status > o->from ? status : o->from);
	return n > 0 ? n : 0;
}

int64_t fit_order_count(struct fit_order *order, int32_t spec, int32_t status, int64_t now_ms)
{
	struct fit_writes *o = &order->now;
	int64_t n = count_missing(o, spec, status);
	// After an order that stayed without pods, only one that gets all of them, or time, restores the confidence.
	bool is_complete = o->to > o->from && status >= o->to;
	if (is_complete)
		o->from = o->to;
	if (is_complete || (o->since_ms > 0 && now_ms - o->since_ms >= FIT_ORDER_MS + FIT_ORDER_REST_MS))
		o->since_ms = 0;
	if (n > 0 && o->since_ms == 0)
		o->since_ms = now_ms > 0 ? now_ms : 1;
	bool is_recent = now_ms - o->at_ms < FIT_ORDER_MS;
	if (n > 0 && is_recent && now_ms - o->since_ms < FIT_ORDER_MS)
		return n;
	if (!o->is_unacked || !is_recent)
		o->from = o->to = -1; // over
	return 0;
}
