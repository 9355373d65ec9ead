// SPDX-License-Identifier: Apache-2.0
#include "exporter/sysfs/backend_sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/process/log.h"

#define RESCAN_MS 10000
#define CARDS_MAX 128 // highest cardN probed

struct sysfs {
	struct backend base;
	struct backend_ops ops; // with the name of the vendor
	const struct sysfs_vendor *vendor;
	const char *root;
	struct log *log;
	char driver_version[64];
	bool has_times;
	int64_t rescan_at_ms;
	size_t n;
	struct device devices[DEVICES_MAX];
	struct sysfs_card cards[DEVICES_MAX];
};

static struct sysfs *sysfs_of(struct backend *b)
{
	return (struct sysfs *)b;
}

static bool is_our_driver(const struct sysfs_vendor *v, const char *driver)
{
	for (size_t i = 0; i < SYSFS_DRIVERS_MAX && v->drivers[i]; i++)
		if (strcmp(v->drivers[i], driver) == 0)
			return true;
	return false;
}

// Fills `c` and `d` for cardN. False if there is no such card or it belongs to another vendor.
static bool probe(const struct sysfs *m, int number, struct sysfs_card *c, struct device *d)
{
	char uevent[SYSFS_TEXT_BYTES], text[SYSFS_TEXT_BYTES], id[32] = "";
	*c = (struct sysfs_card){.energy_ms = 0};
	*d = (struct device){.index = 0};
	if (snprintf(c->card, sizeof c->card, "%s/class/drm/card%d", m->root, number) >= (int)sizeof c->card ||
	    snprintf(c->device, sizeof c->device, "%s/device", c->card) >= (int)sizeof c->device)
		return false;
	if (!sysfs_read_text(c->device, "uevent", uevent) ||
	    !sysfs_find_key(uevent, "DRIVER", c->driver, sizeof c->driver) || !is_our_driver(m->vendor, c->driver))
		return false;
	char hwmon[SYSFS_PATH_BYTES];
	if (snprintf(hwmon, sizeof hwmon, "%s/hwmon", c->device) >= (int)sizeof hwmon ||
	    !sysfs_find_dir(hwmon, "hwmon", SYSFS_HWMON_MAX, c->hwmon))
		c->hwmon[0] = '\0';
	snprintf(d->node, sizeof d->node, "card%d", number);
	if (!sysfs_find_key(uevent, "PCI_SLOT_NAME", d->pci_bus_id, sizeof d->pci_bus_id))
		d->pci_bus_id[0] = '\0';
	sysfs_find_key(uevent, "PCI_ID", id, sizeof id);
	if (sysfs_read_text(c->device, "unique_id", text))
		snprintf(d->uuid, sizeof d->uuid, "GPU-%.64s", text);
	else
		snprintf(d->uuid, sizeof d->uuid, "PCI-%s", d->pci_bus_id[0] ? d->pci_bus_id : d->node);
	if (sysfs_read_text(c->device, "product_name", text))
		snprintf(d->model, sizeof d->model, "%.80s", text);
	else
		snprintf(d->model, sizeof d->model, "%s GPU %s", m->vendor->maker, id);
	return true;
}

// Lists the cards; known cards keep their counters.
static void scan(struct sysfs *m)
{
	struct sysfs_card c;
	struct device d;
	size_t n = 0;
	bool changed = false;
	for (int number = 0; number < CARDS_MAX && n < DEVICES_MAX; number++) {
		if (!probe(m, number, &c, &d))
			continue;
		d.index = (int32_t)n;
		// The UUID identifies a card across rounds; if several cards have the same id (0, or partitions of
		// one board), the slot does.
		for (size_t i = 0; i < n; i++)
			if (strcmp(m->devices[i].uuid, d.uuid) == 0)
				snprintf(d.uuid, sizeof d.uuid, "PCI-%s-%s", d.pci_bus_id, d.node);
		if (n < m->n && device_is_same(&m->devices[n], &d) && strcmp(m->cards[n].hwmon, c.hwmon) == 0) {
			n++;
			continue;
		}
		changed = true;
		m->devices[n] = d;
		m->cards[n++] = c;
	}
	if (m->has_times && (changed || n != m->n))
		LOG(m->log, LOG_INFO, "GPUs changed", LOG_I("before", (int64_t)m->n), LOG_I("now", (int64_t)n));
	m->n = n;
}

static int sysfs_open(struct backend *b, struct err *e)
{
	struct sysfs *m = sysfs_of(b);
	char dir[SYSFS_PATH_BYTES], text[SYSFS_TEXT_BYTES];
	m->n = 0;
	m->has_times = false;
	scan(m);
	if (m->n == 0)
		return err_set(e, ERR_NOT_FOUND, "found no GPU of the driver %s%s%s under %s/class/drm",
		               m->vendor->drivers[0], m->vendor->drivers[1] ? " or " : "",
		               m->vendor->drivers[1] ? m->vendor->drivers[1] : "", m->root);
	// Drivers in the kernel tree seldom have their own version.
	snprintf(dir, sizeof dir, "%s/module/%s", m->root, m->cards[0].driver);
	m->driver_version[0] = '\0';
	if (sysfs_read_text(dir, "version", text))
		snprintf(m->driver_version, sizeof m->driver_version, "%.60s", text);
	return 0;
}

static const struct device *sysfs_devices(struct backend *b, size_t *ret_n)
{
	*ret_n = sysfs_of(b)->n;
	return sysfs_of(b)->devices;
}

static const char *sysfs_driver_version(struct backend *b)
{
	return sysfs_of(b)->driver_version;
}

static int sysfs_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                        struct err *e)
{
	struct sysfs *m = sysfs_of(b);
	if (!m->has_times || mono_ms >= m->rescan_at_ms) {
		if (m->has_times)
			scan(m);
		m->has_times = true;
		m->rescan_at_ms = mono_ms + RESCAN_MS;
	}
	if (m->n == 0)
		return err_set(e, ERR_NOT_FOUND, "every GPU of the driver %s is gone", m->vendor->drivers[0]);
	for (size_t i = 0; i < m->n; i++) {
		samples[i] = (struct device_sample){.lost = false};
		m->vendor->read(&m->cards[i], mono_ms, &samples[i]);
		sample_check(&samples[i]); // a card without a plausible value is lost
		samples[i].lost = sample_count(&samples[i]) == 0;
	}
	return 0;
}

static void sysfs_close(struct backend *b)
{
	sysfs_of(b)->n = 0; // nothing is kept open
}

static void sysfs_destroy(struct backend *b)
{
	free(b);
}

static struct backend *sysfs_new(const struct sysfs_vendor *vendor, const struct backend_config *config, struct err *e)
{
	struct sysfs *m = alloc_zeroed(sizeof *m, e);
	if (!m)
		return NULL;
	m->ops = (struct backend_ops){.name = vendor->name,
	                              .first_rounds = 2, // power and utilization may be rates
	                              .open = sysfs_open,
	                              .devices = sysfs_devices,
	                              .driver_version = sysfs_driver_version,
	                              .sample = sysfs_sample,
	                              .close = sysfs_close,
	                              .destroy = sysfs_destroy};
	m->base.ops = &m->ops;
	m->vendor = vendor;
	m->root = config->sysfs_root;
	m->log = config->log;
	return &m->base;
}

struct backend *backend_amdgpu_new(const struct backend_config *config, struct err *e)
{
	return sysfs_new(&amdgpu_vendor, config, e);
}

struct backend *backend_intel_new(const struct backend_config *config, struct err *e)
{
	return sysfs_new(&intel_vendor, config, e);
}
