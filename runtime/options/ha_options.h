// SPDX-License-Identifier: Apache-2.0
// The flags of high availability: leader election, its times, shards.
#ifndef GPUSCALE_RUNTIME_OPTIONS_HA_OPTIONS_H
#define GPUSCALE_RUNTIME_OPTIONS_HA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/lease/lease_rules.h"

struct err;
struct flag_set;
struct k8s_config;
struct shards_options;

struct ha_options {
	enum { HA_DEFAULT, HA_ON, HA_OFF } leader_elect;
	struct lease_timing timing;
	const char *lease_name, *lease_namespace, *identity; // NULL: the default
	int32_t n_shards;
	char own_identity[LEASE_IDENTITY_BYTES]; // HOSTNAME_UUID, generated when none is given
};
// Its options are a struct ha_options that ha_options_init() has filled.
extern const struct flag_set ha_flags;
void ha_options_init(struct ha_options *o);

// Returns whether leader election is on: by --leader-elect, else is_default (policies come from the API server, and
// this process runs in a cluster).
bool ha_options_is_on(const struct ha_options *o, bool is_default);
// Fills the values of the flags into *ret_shards (timing, names, identity, n_shards); the caller fills the rest.
// config: of the API server; its namespace is the default of --lease-namespace. Strings belong to o and config.
// Generates the identity if none is given.
int ha_options_apply(struct ha_options *o, const struct k8s_config *config, struct shards_options *ret_shards,
                     struct err *e);

#endif
