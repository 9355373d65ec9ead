// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/shape_read.h"

#include <event2/event.h>

#include "base/err.h"
#include "k8s/capacity/resource_names.h"
#include "k8s/capacity/shape_fetch.h"

struct wait {
	struct event_base *loop;
	struct target_shape *result;
	bool is_done;
};

static void on_fetched(void *arg, const struct target_shape *shape)
{
	struct wait *w = arg;
	*w->result = *shape;
	w->is_done = true;
	event_base_loopbreak(w->loop);
}

int shape_read(struct k8s_client *client, struct event_base *loop, const struct scale_ref *ref,
               struct resource_names *names, struct target_shape *ret, struct err *e)
{
	struct wait w = {.loop = loop, .result = ret};
	*ret = (struct target_shape){.has_shape = false};
	struct shape_fetch *f = shape_fetch_start(client, ref, names, on_fetched, &w, e);
	if (!f)
		return -1;
	while (!w.is_done) {
		if (event_base_dispatch(loop) != 0) {
			shape_fetch_abandon(f);
			return err_set(e, ERR_INTERNAL, "the event loop exited before the reply");
		}
	}
	*e = ret->error;
	return e->kind == ERR_NONE ? 0 : -1;
}

int32_t shape_read_gpus(struct k8s_client *client, struct event_base *loop, const struct scale_ref *ref, struct err *e)
{
	struct target_shape shape;
	struct resource_names names;
	int32_t n = 0;
	if (resource_names_init(&names) < 0) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return 0;
	}
	if (shape_read(client, loop, ref, &names, &shape, e) == 0) {
		n = target_shape_gpus(&shape, &names);
		if (n == 0)
			err_set(e, ERR_INPUT, "the pod template requests no GPUs");
	}
	target_shape_done(&shape);
	resource_names_done(&names);
	return n;
}
