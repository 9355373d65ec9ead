// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/shape_read.h"

#include "base/err.h"
#include "k8s/capacity/resource_names.h"
#include "k8s/capacity/shape_fetch.h"
#include "runtime/connections.h"

struct wait {
	struct target_shape *result;
	bool is_done;
};

static void on_fetched(void *arg, const struct target_shape *shape)
{
	struct wait *w = arg;
	*w->result = *shape;
	w->is_done = true;
}

int shape_read(struct connections *c, const struct scale_ref *ref, struct resource_names *names,
               struct target_shape *ret, struct err *e)
{
	struct wait w = {.result = ret};
	*ret = (struct target_shape){.has_shape = false};
	struct shape_fetch *f = shape_fetch_start(c->k8s, ref, names, on_fetched, &w, e);
	if (!f)
		return -1;
	int rc = connections_wait(c, &w.is_done, &ret->error, e);
	if (!w.is_done)
		shape_fetch_abandon(f);
	return rc;
}

int32_t shape_read_gpus(struct connections *c, const struct scale_ref *ref, struct err *e)
{
	struct target_shape shape;
	struct resource_names names;
	int32_t n = 0;
	if (resource_names_init(&names) < 0) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return 0;
	}
	if (shape_read(c, ref, &names, &shape, e) == 0) {
		n = target_shape_gpus(&shape, &names);
		if (n == 0)
			err_set(e, ERR_INPUT, "the pod template requests no GPUs");
	}
	target_shape_done(&shape);
	resource_names_done(&names);
	return n;
}
