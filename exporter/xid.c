// SPDX-License-Identifier: Apache-2.0
#include "exporter/xid.h"

#include <pthread.h>

#include "base/base.h"
#include "exporter/device.h"

struct xid_gpu {
	char uuid[DEVICE_UUID_BYTES];
	int32_t last;
	size_t n;
	struct xid_count counts[XID_CODES_MAX + 1]; // the last slot may contain XID_CODE_OTHER
};

struct xid_store {
	pthread_mutex_t lock;
	size_t n;
	uint64_t overflows;
	struct xid_gpu gpus[XID_GPUS_MAX];
};

// Codes that common alerting rules treat as a broken GPU, link or bus.
static const int32_t codes_from_zero[] = {48, 63, 64, 74, 79, 94, 95, 119};

struct xid_store *xid_store_new(struct err *e)
{
	struct xid_store *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void xid_store_free(struct xid_store *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct xid_gpu *find_locked(struct xid_store *s, const char *uuid)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->gpus[i].uuid, uuid) == 0)
			return &s->gpus[i];
	return NULL;
}

static struct xid_gpu *find_or_add_locked(struct xid_store *s, const char *uuid)
{
	struct xid_gpu *g = find_locked(s, uuid);
	if (g || s->n == XID_GPUS_MAX)
		return g;
	g = &s->gpus[s->n++];
	snprintf(g->uuid, sizeof g->uuid, "%s", uuid);
	for (size_t i = 0; i < sizeof codes_from_zero / sizeof codes_from_zero[0]; i++)
		g->counts[g->n++].code = codes_from_zero[i];
	return g;
}

void xid_store_add_gpu(struct xid_store *s, const char *uuid)
{
	pthread_mutex_lock(&s->lock);
	find_or_add_locked(s, uuid);
	pthread_mutex_unlock(&s->lock);
}

static struct xid_count *slot_of(struct xid_gpu *g, int32_t code)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->counts[i].code == code)
			return &g->counts[i];
	if (g->n < XID_CODES_MAX || (g->n == XID_CODES_MAX && code == XID_CODE_OTHER)) {
		struct xid_count *c = &g->counts[g->n++];
		c->code = code;
		return c;
	}
	return NULL;
}

void xid_store_count(struct xid_store *s, const char *uuid, int32_t code, int64_t wall_ms)
{
	pthread_mutex_lock(&s->lock);
	struct xid_gpu *g = find_or_add_locked(s, uuid);
	struct xid_count *c = g ? slot_of(g, code) : NULL;
	if (!c) {
		s->overflows++;
		c = g ? slot_of(g, XID_CODE_OTHER) : NULL;
	}
	if (c) {
		c->count++;
		c->last_wall_ms = wall_ms;
		g->last = code;
	}
	pthread_mutex_unlock(&s->lock);
}

int32_t xid_store_last(struct xid_store *s, const char *uuid)
{
	pthread_mutex_lock(&s->lock);
	const struct xid_gpu *g = find_locked(s, uuid);
	int32_t last = g ? g->last : 0;
	pthread_mutex_unlock(&s->lock);
	return last;
}

size_t xid_store_read(struct xid_store *s, const char *uuid, struct xid_count ret_counts[XID_CODES_MAX + 1])
{
	pthread_mutex_lock(&s->lock);
	const struct xid_gpu *g = find_locked(s, uuid);
	size_t n = g ? g->n : 0;
	if (n)
		memcpy(ret_counts, g->counts, n * sizeof *ret_counts);
	pthread_mutex_unlock(&s->lock);
	return n;
}

uint64_t xid_store_overflows(struct xid_store *s)
{
	pthread_mutex_lock(&s->lock);
	uint64_t n = s->overflows;
	pthread_mutex_unlock(&s->lock);
	return n;
}
