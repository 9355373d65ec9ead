// SPDX-License-Identifier: Apache-2.0
// DeviceTaintRules: taints of devices that an administrator or another program sets, next to those of the driver.
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "k8s/capacity/capacity_private.h"

static void taint_rule_clear(struct taint_rule *r)
{
	free(r->driver);
	free(r->pool);
	free(r->device);
	r->driver = r->pool = r->device = NULL;
	r->is_active = false;
}

void capacity_remove_taint_rule(struct capacity *c, const char *name)
{
	c->generation++;
	struct taint_rule *r;
	HASH_FIND_STR(c->taint_rules, name, r);
	if (!r)
		return;
	taint_rule_clear(r);
	HASH_DELETE(hh, c->taint_rules, r);
	free(r);
}

static char *copy_text(struct json_span s)
{
	char text[256];
	return json_span_text(s, text, sizeof text) > 0 ? must_alloc(strdup(text)) : NULL;
}

void capacity_set_taint_rule(struct capacity *c, const char *name, const char *json, size_t len)
{
	c->generation++;
	struct json_span spec = json_span_get((struct json_span){json, len}, "spec"),
	                 selector = json_span_get(spec, "deviceSelector");
	struct taint_rule *r;
	HASH_FIND_STR(c->taint_rules, name, r);
	if (!r) {
		size_t size = strlen(name) + 1;
		r = must_alloc(calloc(1, sizeof *r + size));
		memcpy(r->name, name, size);
		HASH_ADD_STR(c->taint_rules, name, r);
	}
	taint_rule_clear(r);
	// A rule without a selector selects nothing, and one with an empty selector everything.
	r->is_active = json_span_kind(selector) == '{' &&
	               !json_span_is(json_span_get(json_span_get(spec, "taint"), "effect"), "None");
	r->driver = copy_text(json_span_get(selector, "driver"));
	r->pool = copy_text(json_span_get(selector, "pool"));
	r->device = copy_text(json_span_get(selector, "device"));
}

static bool is_any_or(const char *wanted, const char *text)
{
	return !wanted || strcmp(wanted, text) == 0;
}

bool device_is_tainted(const struct capacity *c, const struct device_slice *s, const struct slice_device *d)
{
	const struct taint_rule *r;
	for (r = c->taint_rules; r && !d->is_tainted; r = r->hh.next) {
		if (r->is_active && is_any_or(r->driver, s->pool->driver) && is_any_or(r->pool, s->pool->name) &&
		    is_any_or(r->device, d->name->value))
			return true;
	}
	return d->is_tainted;
}

void device_taint_rules_done(struct capacity *c)
{
	struct taint_rule *r, *next_rule;
	HASH_ITER(hh, c->taint_rules, r, next_rule)
	{
		taint_rule_clear(r);
		HASH_DELETE(hh, c->taint_rules, r);
		free(r);
	}
}
