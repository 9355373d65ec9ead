// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/render_page.h"

#include <inttypes.h>

#include "base/base.h"
#include "exporter/apiserver/pod_metadata.h"
#include "exporter/health_policy.h"
#include "exporter/hpc_jobs.h"
#include "exporter/kubelet/kubelet_pods.h"
#include "exporter/xid.h"

// `from` is the offset of the first label of this device in `b`; the other labels are preceded by a comma.
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

// Offsets of the label blocks: one block per device, or per pod on a device. Every family repeats them.
_Static_assert(RENDER_PAGE_BLOCKS_MAX >= DEVICES_MAX, "every device has a series");
struct blocks {
	size_t start[RENDER_PAGE_BLOCKS_MAX + 1];
	size_t device[RENDER_PAGE_BLOCKS_MAX];
	size_t n;
	size_t dropped;
};

// Appends the labels that identify the device and the host. An empty `model` omits the label, like every empty value.
// gpuscale's own families have only these, which never change: pods are omitted so that a counter continues when the
// pod changes; modelName is omitted because promtool requires snake_case.
static void put_identity(struct buf *b, const struct render_page *r, const struct device *d, const char *model)
{
	size_t from = b->len;
	char index[16];
	snprintf(index, sizeof index, "%" PRId32, d->index);
	put_label(b, from, "gpu", index);
	put_label(b, from, "UUID", d->uuid);
	put_label(b, from, "pci_bus_id", d->pci_bus_id);
	put_label(b, from, "device", d->node);
	put_label(b, from, "modelName", model);
	put_label(b, from, "GPU_I_PROFILE", d->mig_profile);
	put_label(b, from, "GPU_I_ID", d->mig_id);
	put_label(b, from, r->options.hostname_label, r->options.hostname);
}

// Appends the labels of one device, without braces. Every family of a round repeats them, so they are rendered once.
static void put_labels(struct buf *b, const struct render_page *r, const struct device *d,
                       const struct pod_share *owner, const char *job)
{
	size_t from = b->len;
	const struct pod_known *known = NULL; // while the metadata is held
	if (r->options.metadata && owner->pod[0])
		known = pod_metadata_find(r->options.metadata, owner->namespace_, owner->pod);
	put_identity(b, r, d, d->model);
	if (r->options.counters->driver_version)
		put_label(b, from,
		          r->options.names == NAMING_LEGACY ? "DCGM_FI_DRIVER_VERSION"
		                                            : "DCGM_FI_SYSTEM_DRIVER_VERSION",
		          r->driver_version);
	for (size_t i = 0; known && i < r->options.labels->n; i++)
		put_label(b, from, r->options.labels->names[i], known->labels[i]);
	put_label(b, from, "container", owner->container);
	put_label(b, from, "hpc_job", job);
	put_label(b, from, "namespace", owner->namespace_);
	put_label(b, from, "pod", owner->pod);
	if (known && r->options.pod_uid)
		put_label(b, from, "pod_uid", known->uid);
	if (owner->replica >= 0) {
		char replica[16];
		snprintf(replica, sizeof replica, "%" PRId32, owner->replica);
		put_label(b, from, "vgpu", replica);
	}
}

// Adds one block for each job on the GPU, as dcgm-exporter does, or one without a job.
static void add_blocks(struct blocks *bl, struct buf *labels, const struct render_page *r, const struct device *devices,
                       size_t i, const struct pod_share *owner)
{
	size_t n = r->options.jobs ? hpc_jobs_count(r->options.jobs, i) : 0;
	for (size_t k = 0; k == 0 || k < n; k++) {
		if (bl->n == RENDER_PAGE_BLOCKS_MAX) {
			bl->dropped++;
			continue;
		}
		bl->device[bl->n] = i;
		bl->start[bl->n++] = labels->len;
		put_labels(labels, r, &devices[i], owner, n ? hpc_jobs_id(r->options.jobs, i, k) : "");
		bl->start[bl->n] = labels->len;
	}
}

// Finds the pods that use devices[at]: the owner in the sample (from the mock), else the pods that the kubelet
// reports. Returns the number of filled shares[]; 0 if no pod uses the device.
static size_t find_pods(const struct pod_map *map, const struct device *devices, size_t n_devices, size_t at,
                        const struct pod_share *owner, struct pod_share shares[POD_SHARERS_MAX], size_t *dropped)
{
	if (owner->pod && (owner->pod[0] || owner->namespace_[0] || owner->container[0])) {
		shares[0] = *owner;
		return 1;
	}
	size_t n = map ? pod_map_find(map, devices, n_devices, at, shares) : 0;
	if (n <= POD_SHARERS_MAX)
		return n;
	*dropped += n - POD_SHARERS_MAX;
	return POD_SHARERS_MAX;
}

static void put_pod_share(struct buf *out, const struct render_page *r, const struct device *d,
                          const struct pod_share *share, size_t n)
{
	if (out->len == 0)
		exposition_family(
		        out, "gpuscale_gpu_pod_share",
		        "Share of the GPU that counts for the pod: 1 divided by the number of pods that hold it.",
		        METRIC_GAUGE);
	buf_puts(out, "gpuscale_gpu_pod_share{");
	size_t from = out->len;
	put_identity(out, r, d, "");
	put_label(out, from, "namespace", share->namespace_);
	put_label(out, from, "pod", share->pod);
	buf_printf(out, "} %.9g\n", 1 / (double)n);
}

// Renders the label blocks, and gpuscale_gpu_pod_share into `shares_text`, while the map and the metadata are held.
static void make_blocks(struct blocks *bl, struct buf *labels, struct buf *shares_text, const struct render_page *r,
                        const struct device *devices, const struct device_sample *samples, size_t n)
{
	static const struct pod_share no_pod = {"", "", "", -1};
	const struct pod_map *map = r->options.pods ? kubelet_pods_acquire(r->options.pods) : NULL;
	if (r->options.metadata)
		pod_metadata_acquire(r->options.metadata);
	bl->n = bl->dropped = bl->start[0] = 0;
	for (size_t i = 0; i < n; i++) {
		struct pod_share shares[POD_SHARERS_MAX];
		size_t n_pods = find_pods(map, devices, n, i, &samples[i].owner, shares, &bl->dropped);
		if (n_pods == 0)
			add_blocks(bl, labels, r, devices, i, r->options.sidecar_of ? r->options.sidecar_of : &no_pod);
		for (size_t k = 0; k < n_pods; k++) {
			add_blocks(bl, labels, r, devices, i, &shares[k]);
			if (r->options.pods)
				put_pod_share(shares_text, r, &devices[i], &shares[k], n_pods);
		}
	}
	if (r->options.metadata)
		pod_metadata_release(r->options.metadata);
	if (r->options.pods)
		kubelet_pods_release(r->options.pods, bl->dropped);
}

// Counters and times are two families.
static void put_xids(struct buf *out, const struct render_page *r, const struct sampler_round *round, bool is_time)
{
	const char *name = is_time ? "gpuscale_gpu_xid_last_timestamp_seconds" : "gpuscale_gpu_xid_errors_total";
	struct xid_count counts[XID_CODES_MAX + 1];
	bool opened = false;
	for (size_t i = 0; i < round->n; i++) {
		if (device_is_instance(round->devices, i))
			continue; // XIDs belong to the GPU; its instances have none
		size_t n = xid_store_read(r->options.xids, round->devices[i].uuid, counts);
		for (size_t k = 0; k < n; k++) {
			const struct xid_count *c = &counts[k];
			char code[16] = "other";
			if (is_time && c->last_wall_ms == 0)
				continue;
			if (!opened)
				exposition_family(out, name,
				                  is_time ? "Time of the last error with this code (Unix time)."
				                          : "XID errors since the exporter started, per code.",
				                  is_time ? METRIC_GAUGE : METRIC_COUNTER);
			opened = true;
			if (c->code != XID_CODE_OTHER)
				snprintf(code, sizeof code, "%" PRId32, c->code);
			buf_printf(out, "%s{", name);
			put_identity(out, r, &round->devices[i], "");
			buf_printf(out, ",xid=\"%s\"} ", code);
			if (is_time)
				buf_printf(out, "%" PRId64 ".%03" PRId64 "\n", c->last_wall_ms / 1000,
				           c->last_wall_ms % 1000);
			else
				buf_printf(out, "%" PRIu64 "\n", c->count);
		}
	}
}

// One series per GPU, whose labels are the worst finding. MIG instances share the health of their GPU.
static void put_health(struct buf *out, const struct render_page *r, const struct sampler_round *round)
{
	bool opened = false;
	for (size_t i = 0; i < round->n; i++) {
		struct xid_count counts[XID_CODES_MAX + 1];
		struct health_verdict v;
		if (device_is_instance(round->devices, i))
			continue;
		size_t n = xid_store_read(r->options.xids, round->devices[i].uuid, counts);
		health_verdict_of(r->options.health, &round->samples[i], counts, n, round->wall_ms, &v);
		if (!opened)
			exposition_family(out, "gpuscale_gpu_health",
			                  "1 if the GPU is healthy, 0 if it needs the action of its worst finding.",
			                  METRIC_GAUGE);
		opened = true;
		buf_puts(out, "gpuscale_gpu_health{");
		put_identity(out, r, &round->devices[i], "");
		buf_printf(out, ",action=\"%s\",reason=\"%s\"} %d\n",
		           v.action == HEALTH_IGNORE ? "none" : health_action_name(v.action), v.reason,
		           v.action < HEALTH_PROBLEM);
	}
}

static void put_value(struct buf *out, enum field f, double factor, const struct device_sample *s)
{
	if (family_of(f)->kind == FIELD_INT && factor == 1)
		buf_printf(out, "} %" PRId64 "\n", s->value[f].i);
	else if (family_of(f)->kind == FIELD_INT && factor > 1)
		buf_printf(out, "} %.0f\n", (double)s->value[f].i * factor);
	else
		buf_printf(out, "} %f\n", sample_get(s, f) * factor);
}

// Appends the name and the labels of a sample, without the closing brace. Returns the offset of the labels.
static size_t begin_sample(struct buf *out, const struct render_page *r, const char *name, const struct blocks *bl,
                           size_t k)
{
	buf_puts(out, name);
	buf_putc(out, '{');
	buf_put(out, buf_str(&r->labels) + bl->start[k], bl->start[k + 1] - bl->start[k]);
	return out->len - (bl->start[k + 1] - bl->start[k]);
}

// Appends the samples of one field, one for each label block of a device that has a value.
static void put_field(struct buf *out, const struct render_page *r, const struct naming_family *nf, enum field f,
                      const struct blocks *bl, const struct device_sample *samples)
{
	for (size_t k = 0; k < bl->n; k++) {
		const struct device_sample *s = &samples[bl->device[k]];
		if (!sample_has(s, f))
			continue;
		size_t from = begin_sample(out, r, nf->name, bl, k);
		for (size_t a = 0; nf->otel && a < OTEL_ATTRIBUTES_MAX && nf->otel->attributes[a].key; a++)
			put_label(out, from, nf->otel->attributes[a].label, nf->otel->attributes[a].value);
		put_value(out, f, nf->factor, s);
	}
}

// Two fields with one name, such as the utilization of the GPU and of its encoder, are one family.
static bool share_name(const struct naming_family *nf, enum field g)
{
	const struct otel_metric *m = nf->otel ? naming_otel_of(g) : NULL;
	return m && strcmp(m->name, nf->otel->name) == 0;
}

static void put_families(struct buf *out, const struct render_page *r, const struct sampler_round *round,
                         const struct blocks *blocks)
{
	const struct csv_counters *c = r->options.counters;
	bool done[FIELD__COUNT] = {false};
	for (size_t i = 0; i < c->n; i++) {
		enum field f = c->rows[i].field;
		char help[NAMING_HELP_BYTES];
		if (done[f] || !family_of(f)->dcgm_id || !samples_have(round->samples, round->n, f))
			continue;
		struct naming_family nf = naming_family_of(r->options.names, f);
		const char *said = c->rows[i].help;
		bool as_legacy = r->options.names == NAMING_LEGACY;
		if (!as_legacy)
			naming_write_help(help, sizeof help, &nf, f, said);
		exposition_family(out, nf.name, as_legacy ? said : help, as_legacy ? c->rows[i].type : nf.type);
		for (size_t k = i; k < c->n; k++) {
			enum field g = c->rows[k].field;
			if (g != f && !share_name(&nf, g))
				continue;
			struct naming_family other = naming_family_of(r->options.names, g);
			put_field(out, r, &other, g, blocks, round->samples);
			done[g] = true;
		}
	}
}

// Appends gpuscale's own families, which a counters file does not select.
static void put_own_families(struct buf *out, const struct render_page *r, const struct device *devices,
                             const struct device_sample *samples, size_t n)
{
	if (n)
		exposition_family(out, "gpuscale_gpu_up", "1 if the GPU or MIG instance responds, 0 if it is lost.",
		                  METRIC_GAUGE);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, "gpuscale_gpu_up{");
		put_identity(out, r, &devices[i], "");
		buf_printf(out, "} %d\n", !samples[i].lost);
	}
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		const struct family *fam = family_of(f);
		if (fam->dcgm_id || !samples_have(samples, n, f))
			continue;
		exposition_family(out, fam->name, fam->help, fam->type);
		for (size_t i = 0; i < n; i++) {
			if (!sample_has(&samples[i], f))
				continue;
			buf_printf(out, "%s{", fam->name);
			put_identity(out, r, &devices[i], "");
			buf_printf(out, "} %" PRId64 "\n", samples[i].value[f].i);
		}
	}
}

// ---- windows ----

// Renders gpuscale_gpu_<name>_window_min, _max and _avg: the minimum, maximum and mean of a family over the window,
// with the labels and the unit of the family, so that the two can be compared without `on`.

#define NAME_BYTES 96
#define HELP_BYTES 192

static const struct {
	const char *suffix, *help;
	size_t offset; // in struct window
	bool is_mean;
} statistics[] = {{"min", "Least", offsetof(struct window, min), false},
                  {"max", "Greatest", offsetof(struct window, max), false},
                  {"avg", "Mean", offsetof(struct window, avg), true}};

static bool is_chosen(const struct csv_counters *c, enum field f)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->rows[i].field == f)
			return true;
	return false;
}

static void put_family(struct buf *out, const struct render_page *r, enum field f, size_t statistic,
                       const struct blocks *blocks, const struct device_history *history)
{
	const struct family *fam = family_of(f);
	char name[NAME_BYTES], help[HELP_BYTES], span[NUM_TEXT_BYTES];
	bool opened = false;
	snprintf(name, sizeof name, "gpuscale_gpu_%s_window_%s", fam->window, statistics[statistic].suffix);
	num_format_duration_ms(span, device_history_window_ms(history));
	snprintf(help, sizeof help, "%s %s over the last %s (%s).", statistics[statistic].help, fam->name, span,
	         fam->unit);
	for (size_t k = 0; k < blocks->n; k++) {
		struct window w;
		if (!device_history_window(history, blocks->device[k], f, &w))
			continue;
		if (!opened)
			exposition_family(out, name, help, METRIC_GAUGE);
		opened = true;
		const double *v = (const double *)(const void *)((const char *)&w + statistics[statistic].offset);
		begin_sample(out, r, name, blocks, k);
		// The format of the family; a mean of integers is not an integer.
		if (fam->kind == FIELD_INT && !statistics[statistic].is_mean)
			buf_printf(out, "} %.0f\n", *v);
		else
			buf_printf(out, "} %f\n", *v);
	}
}

// Appends the windows of every family that has a value and that the counters file selects.
static void put_windows(struct buf *out, const struct render_page *r, const struct blocks *blocks,
                        const struct device_history *history)
{
	for (enum field f = 0; f < FIELD__COUNT && device_history_window_ms(history) > 0; f++)
		if (family_of(f)->window && is_chosen(r->options.counters, f))
			for (size_t k = 0; k < sizeof statistics / sizeof statistics[0]; k++)
				put_family(out, r, f, k, blocks, history);
}

void render_page_init(struct render_page *r, const struct render_page_options *options)
{
	*r = (struct render_page){.options = *options, .driver_version = ""};
	if (!options->counters) {
		csv_counters_init_builtin(&r->builtin);
		r->options.counters = &r->builtin;
	}
	buf_init(&r->labels, RENDER_PAGE_BYTES_MAX);
}

void render_page_done(struct render_page *r)
{
	buf_done(&r->labels);
	csv_counters_done(&r->builtin);
}

void render_page_round(void *render_page, const struct sampler_round *round, struct buf *out)
{
	struct render_page *r = render_page;
	struct buf *labels = &r->labels;
	struct blocks blocks;
	struct buf shares;
	assert(round->n <= DEVICES_MAX);
	r->driver_version = round->driver_version;
	buf_reset(labels);
	buf_init(&shares, RENDER_PAGE_BYTES_MAX);
	if (r->options.jobs)
		hpc_jobs_refresh(r->options.jobs, round->devices, round->n, round->wall_ms);
	make_blocks(&blocks, labels, &shares, r, round->devices, round->samples, round->n);
	put_families(out, r, round, &blocks);
	if (round->history)
		put_windows(out, r, &blocks, round->history);
	put_own_families(out, r, round->devices, round->samples, round->n);
	put_xids(out, r, round, false);
	put_xids(out, r, round, true);
	if (r->options.health)
		put_health(out, r, round);
	buf_put(out, buf_str(&shares), shares.len);
	if (labels->failed || shares.failed)
		out->failed = true;
	buf_done(&shares);
}
