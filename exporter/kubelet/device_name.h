// SPDX-License-Identifier: Apache-2.0
// The names by which the kubelet reports a device: those of device plugins and those of DRA drivers. No I/O.
#ifndef GPUSCALE_EXPORTER_KUBELET_DEVICE_NAME_H
#define GPUSCALE_EXPORTER_KUBELET_DEVICE_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct device;

// Returns whether `name` is devices[at]. `devices` are all `n` devices of the node, because the name of a claimed MIG
// instance may fit several of them, and is then none of them. `is_claimed`: the name comes from a claim, so that it may
// also be one that a DRA driver publishes (pod_resources.h lists both kinds).
bool device_name_is(const char *name, bool is_claimed, const struct device *devices, size_t n, size_t at);

#endif
