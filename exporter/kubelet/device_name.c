// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/device_name.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "exporter/device.h"

// "00000000:04:00.0" and "0000:04:00.0" are equal: domains are compared as numbers, without leading zeros.
static bool same_pci(const char *a, const char *b)
{
	return strcasecmp(a + strspn(a, "0"), b + strspn(b, "0")) == 0;
}

// Names of MIG instances used by old drivers and by GKE.
static bool is_instance(const char *id, const struct device *d)
{
	char name[DEVICE_UUID_BYTES + 2 * DEVICE_NODE_BYTES];
	if (!strchr(id, '/')) // most ids contain no "/": avoid formatting a name to compare with, on a node with many
	                      // instances
		return false;
	snprintf(name, sizeof name, "%s/gi%s", d->node, d->mig_id);
	if (d->node[0] && strcasecmp(id, name) == 0)
		return true;
	int n = snprintf(name, sizeof name, "MIG-%s/%s/", d->uuid, d->mig_id);
	return strncasecmp(id, name, (size_t)n) == 0;
}

// Reads `prefix` and a number up to the next "-". Returns what follows; NULL: the text is different.
static const char *skip_number(const char *s, const char *prefix, int64_t *ret_number)
{
	size_t n = strlen(prefix);
	if (strncmp(s, prefix, n) != 0)
		return NULL;
	size_t len = strcspn(s + n, "-");
	return num_parse_i64(s + n, len, 0, INT32_MAX, ret_number, NULL) == 0 ? s + n + len : NULL;
}

// Reads the MIG profile, "1g10gb-me" for "1g.10gb+me". Returns what follows; NULL: the text is different.
static const char *skip_profile(const char *text, const char *profile)
{
	for (; *profile; profile++) {
		if (*profile == '.')
			continue;
		if (*text != (*profile == '+' ? '-' : *profile))
			return NULL;
		text++;
	}
	return text;
}

static bool is_node(const struct device *d, const char *prefix, int64_t number)
{
	char name[DEVICE_NODE_BYTES];
	snprintf(name, sizeof name, "%s%" PRId64, prefix, number);
	return strcmp(d->node, name) == 0;
}

// "gpu-MINOR-mig-PROFILE-PROFILEID-PLACEMENT" of NVIDIA's driver. The placement is not readable without privileges, so
// the name identifies an instance only if the GPU has one of that profile.
static bool is_claimed_instance(const char *name, const struct device *devices, size_t n, size_t at)
{
	const struct device *d = &devices[at];
	int64_t minor, profile_id, placement;
	const char *rest = skip_number(name, "gpu-", &minor);
	if (!d->mig_profile[0] || !rest || strncmp(rest, "-mig-", 5) != 0 || !is_node(d, "nvidia", minor))
		return false;
	rest = skip_profile(rest + 5, d->mig_profile);
	rest = rest ? skip_number(rest, "-", &profile_id) : NULL;
	rest = rest ? skip_number(rest, "-", &placement) : NULL;
	if (!rest || *rest)
		return false;
	for (size_t i = 0; i < n; i++)
		if (i != at && strcmp(devices[i].uuid, d->uuid) == 0 &&
		    strcmp(devices[i].mig_profile, d->mig_profile) == 0)
			return false;
	return true;
}

// "gpu-MINOR" of NVIDIA's driver, "gpu-CARD-RENDER" of AMD's, and "0000-03-00-0-0x56c0" of Intel's: a PCI address.
static bool is_claimed_device(const char *name, const struct device *d)
{
	int64_t number, render;
	const char *rest = skip_number(name, "gpu-", &number);
	if (rest && !*rest)
		return is_node(d, "nvidia", number);
	if (rest) {
		rest = skip_number(rest, "-", &render);
		return rest && !*rest && is_node(d, "card", number);
	}
	char pci[] = "0000:00:00.0";
	size_t len = sizeof pci - 1;
	if (!d->pci_bus_id[0] || strnlen(name, len) < len || (name[len] && name[len] != '-'))
		return false;
	for (size_t i = 0; pci[i]; i++)
		pci[i] = pci[i] == '0' ? name[i] : name[i] == '-' ? pci[i] : 'x';
	return same_pci(pci, d->pci_bus_id);
}

static bool is_plugin_device(const char *id, const struct device *d)
{
	if (d->mig_id[0])
		return (d->mig_uuid[0] && strcasecmp(id, d->mig_uuid) == 0) || is_instance(id, d);
	return (d->uuid[0] && strcasecmp(id, d->uuid) == 0) || (d->node[0] && strcmp(id, d->node) == 0) ||
	       (d->pci_bus_id[0] && strchr(id, ':') && same_pci(id, d->pci_bus_id));
}

bool device_name_is(const char *name, bool is_claimed, const struct device *devices, size_t n, size_t at)
{
	const struct device *d = &devices[at];
	if (is_plugin_device(name, d))
		return true;
	if (!is_claimed)
		return false;
	return d->mig_id[0] ? is_claimed_instance(name, devices, n, at) : is_claimed_device(name, d);
}
