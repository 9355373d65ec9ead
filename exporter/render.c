// SPDX-License-Identifier: Apache-2.0
#include "exporter/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "exporter/csv_counters.h"
#include "exporter/xid.h"

// `from` is where this device's labels begin in b: all but the first one are led by a comma.
static void put_label(struct buf *b, size_t from, const char *name, const char *value)
{
	if (!value[0])
		return;
	if (b->len > from)
		buf_putc(b, ',');
	buf_puts(b, name);
	buf_puts(b, "=\"");
	exposition_label_value(b, value);
	buf_putc(b, '"');
}

// The labels of one device, without braces. Every family of a round repeats them, so they are written once.
static void put_labels(struct buf *b, const struct render_options *o, const struct device *d,
                       const struct device_owner *owner)
{
	size_t from = b->len;
	char index[16];
	snprintf(index, sizeof index, "%" PRId32, d->index);
	put_label(b, from, "gpu", index);
	put_label(b, from, "UUID", d->uuid);
	put_label(b, from, "pci_bus_id", d->pci_bus_id);
	put_label(b, from, "device", d->node);
	put_label(b, from, "modelName", d->model);
	put_label(b, from, "GPU_I_PROFILE", d->mig_profile);
	put_label(b, from, "GPU_I_ID", d->mig_id);
	put_label(b, from, o->hostname_label, o->hostname);
	if (!o->counters || o->counters->driver_version)
		put_label(b, from, "DCGM_FI_DRIVER_VERSION", o->driver_version);
	put_label(b, from, "container", owner->container);
	put_label(b, from, "namespace", owner->namespace_);
	put_label(b, from, "pod", owner->pod);
}

// Labels of the families that are ours: what names the GPU and never changes. Who holds it is left out, so that a
// counter goes on when the owner changes; modelName, because promtool asks for snake_case.
static void put_own_labels(struct buf *b, const struct render_options *o, const struct device *d)
{
	size_t from = b->len;
	char index[16];
	snprintf(index, sizeof index, "%" PRId32, d->index);
	put_label(b, from, "gpu", index);
	put_label(b, from, "UUID", d->uuid);
	put_label(b, from, "pci_bus_id", d->pci_bus_id);
	put_label(b, from, "device", d->node);
	put_label(b, from, "GPU_I_PROFILE", d->mig_profile);
	put_label(b, from, "GPU_I_ID", d->mig_id);
	put_label(b, from, o->hostname_label, o->hostname);
}

static bool any_has(const struct device_sample *samples, size_t n, enum field f)
{
	for (size_t i = 0; i < n; i++)
		if (sample_has(&samples[i], f))
			return true;
	return false;
}

static void put_xid(struct buf *out, const struct render_options *o, const struct device *d, const struct xid_count *c,
                    bool stamp)
{
	char code[16] = "other";
	if (c->code != XID_CODE_OTHER)
		snprintf(code, sizeof code, "%" PRId32, c->code);
	buf_printf(out, "gpuscale_gpu_xid_%s{", stamp ? "last_timestamp_seconds" : "errors_total");
	put_own_labels(out, o, d);
	buf_printf(out, ",xid=\"%s\"} ", code);
	if (stamp)
		buf_printf(out, "%" PRId64 ".%03" PRId64 "\n", c->last_wall_ms / 1000, c->last_wall_ms % 1000);
	else
		buf_printf(out, "%" PRIu64 "\n", c->count);
}

static void put_xids(struct buf *out, const struct render_options *o, const struct device *devices, size_t n,
                     struct xid_store *xids)
{
	struct xid_count counts[XID_CODES_MAX + 1];
	// XIDs belong to the GPU: an instance after it, with the GPU's UUID, has none of its own.
	// One pass per family: an exposition may not mix two.
	for (int stamp = 0; stamp < 2; stamp++) {
		bool opened = false;
		for (size_t i = 0; i < n; i++) {
			if (i > 0 && strcmp(devices[i].uuid, devices[i - 1].uuid) == 0)
				continue;
			size_t n_counts = xid_store_read(xids, devices[i].uuid, counts, XID_CODES_MAX + 1);
			for (size_t k = 0; k < n_counts; k++) {
				if (stamp && counts[k].last_wall_ms == 0)
					continue;
				if (!opened && stamp)
					exposition_family(out, "gpuscale_gpu_xid_last_timestamp_seconds",
					                  "When the code was last seen (Unix time).", METRIC_GAUGE);
				else if (!opened)
					exposition_family(out, "gpuscale_gpu_xid_errors_total",
					                  "XID errors since the exporter started, per code.",
					                  METRIC_COUNTER);
				opened = true;
				put_xid(out, o, &devices[i], &counts[k], stamp);
			}
		}
	}
}

// The samples of one family; labels of device i: text[start[i] .. start[i + 1]).
static void put_family(struct buf *out, const struct family *fam, enum field f, const char *text, const size_t *start,
                       const struct device_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!sample_has(&samples[i], f))
			continue;
		buf_puts(out, fam->name);
		buf_putc(out, '{');
		buf_put(out, text + start[i], start[i + 1] - start[i]);
		if (fam->kind == FIELD_INT)
			buf_printf(out, "} %" PRId64 "\n", samples[i].value[f].i);
		else
			buf_printf(out, "} %f\n", samples[i].value[f].f);
	}
}

// Families that are ours: a counters file does not choose them.
static void put_own_families(struct buf *out, const struct render_options *o, const struct device *devices,
                             const struct device_sample *samples, size_t n)
{
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		const struct family *fam = family_of(f);
		if (fam->dcgm_id || !any_has(samples, n, f))
			continue;
		exposition_family(out, fam->name, fam->help, fam->type);
		for (size_t i = 0; i < n; i++) {
			if (!sample_has(&samples[i], f))
				continue;
			buf_printf(out, "%s{", fam->name);
			put_own_labels(out, o, &devices[i]);
			buf_printf(out, "} %" PRId64 "\n", samples[i].value[f].i);
		}
	}
}

void render_samples(struct buf *out, struct buf *labels, const struct render_options *options,
                    const struct device *devices, const struct device_sample *samples, size_t n, struct xid_store *xids)
{
	size_t start[DEVICES_MAX + 1] = {0};
	assert(n <= DEVICES_MAX);
	buf_reset(labels);
	for (size_t i = 0; i < n; i++) {
		start[i] = labels->len;
		put_labels(labels, options, &devices[i], &samples[i].owner);
		start[i + 1] = labels->len;
	}
	const struct counters *c = options->counters;
	for (size_t i = 0; i < (c ? c->n : FIELD__COUNT); i++) {
		enum field f = c ? c->rows[i].field : (enum field)i;
		const struct family *fam = family_of(f);
		if (!fam->dcgm_id || !any_has(samples, n, f))
			continue;
		exposition_family(out, fam->name, c ? c->rows[i].help : fam->help, c ? c->rows[i].type : fam->type);
		put_family(out, fam, f, buf_str(labels), start, samples, n);
	}
	put_own_families(out, options, devices, samples, n);
	put_xids(out, options, devices, n, xids);
	if (labels->failed)
		out->failed = true;
}
