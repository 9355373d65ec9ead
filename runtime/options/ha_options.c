// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/ha_options.h"

#include <event2/util.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/print.h"
#include "k8s/client/k8s_config.h"
#include "runtime/options/flag_table.h"
#include "runtime/shard/shards.h"

#define HA_LEASE_NAME "gpuscale"
#define HOSTNAME_MAX  200

void ha_options_init(struct ha_options *o)
{
	*o = (struct ha_options){.timing = {.duration_ms = 15000, .renew_deadline_ms = 10000, .retry_period_ms = 2000},
	                         .n_shards = 1};
}

static void set_leader_elect(void *options, char *arg, struct argp_state *state)
{
	static const char *const truths[] = {"true", "false", NULL};
	struct ha_options *o = options;
	o->leader_elect = !arg || option_choice("--leader-elect", arg, truths, state) == 0 ? HA_ON : HA_OFF;
}

static void check(void *options, struct argp_state *state)
{
	const struct ha_options *o = options;
	struct err e;
	if (lease_timing_check(&o->timing, &e) < 0)
		print_usage(state, "%s", e.msg);
	if (o->n_shards > 1 && o->leader_elect == HA_OFF)
		print_usage(state, "--shards needs the election that --leader-elect=false switches off");
}

#define HIDDEN (5 | FLAG_HIDDEN)
// clang-format off
#define FLAGS_OF struct ha_options
const struct flag_set ha_flags = {.check = check, .flags = (const struct flag[]){
	FLAG_HEADING(5, "High availability (more flags: gpuscale help high-availability):"),
	FLAG_TAKE(5 | FLAG_OPTIONAL, 0, "leader-elect", "true|false", set_leader_elect, "only the process that holds the Lease acts (default: true in a cluster with policies from the API server, and with --shards; else false)"),
	FLAG_DURATION(HIDDEN, 0, "lease-duration", timing.duration_ms, 1, 0, "how long a lease is valid without renewal (default 15s)"),
	FLAG_DURATION(HIDDEN, 0, "renew-deadline", timing.renew_deadline_ms, 1, 0, "stop acting when renewal has failed for this long (default 10s)"),
	FLAG_DURATION(HIDDEN, 0, "retry-period", timing.retry_period_ms, 1, 0, "time between two renewals, and two tries (default 2s)"),
	FLAG_TEXT(HIDDEN, 0, "lease-name", "NAME", lease_name, "the leases are NAME-0, NAME-1 .. (default " HA_LEASE_NAME ")"),
	FLAG_TEXT(HIDDEN, 0, "lease-namespace", "NAMESPACE", lease_namespace, "namespace of the leases (default: the pod's, else the context's)"),
	FLAG_TEXT(HIDDEN, 0, "identity", "NAME", identity, "identity of this process in the lease; must be unique (default: HOSTNAME_UUID)"),
	FLAG_I32(5, 0, "shards", "N", n_shards, 1, SHARDS_MAX, "spread the policies over N leases, so that N processes share them (default 1)"),
	FLAG_END}};
// clang-format on

bool ha_options_is_on(const struct ha_options *o, bool is_default)
{
	if (o->leader_elect == HA_DEFAULT)
		return is_default || o->n_shards > 1;
	return o->leader_elect == HA_ON;
}

// As in client-go: the host's name and a random number, so that a restarted process has a new identity.
static void make_identity(char out[LEASE_IDENTITY_BYTES])
{
	char host[HOSTNAME_MAX + 1] = "";
	unsigned char r[16];
	if (gethostname(host, HOSTNAME_MAX) < 0 || !host[0])
		snprintf(host, sizeof host, "unknown");
	evutil_secure_rng_get_bytes(r, sizeof r);
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40); // RFC 9562, section 5.4
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	snprintf(out, LEASE_IDENTITY_BYTES, "%s_%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
	         host, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
	         r[15]);
}

int ha_options_apply(struct ha_options *o, const struct k8s_config *config, struct shards_options *ret_shards,
                     struct err *e)
{
	if (o->identity && (!o->identity[0] || strlen(o->identity) >= LEASE_IDENTITY_BYTES))
		return err_set(e, ERR_USAGE, "--identity must have 1 to %d bytes", LEASE_IDENTITY_BYTES - 1);
	if (!o->identity) {
		make_identity(o->own_identity);
		o->identity = o->own_identity;
	}
	ret_shards->config = config;
	ret_shards->namespace_name = o->lease_namespace ? o->lease_namespace : config->namespace_name;
	ret_shards->lease_name = o->lease_name ? o->lease_name : HA_LEASE_NAME;
	ret_shards->identity = o->identity;
	ret_shards->timing = o->timing;
	ret_shards->n_shards = o->n_shards;
	return 0;
}
