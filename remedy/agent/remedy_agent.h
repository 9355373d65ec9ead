// SPDX-License-Identifier: Apache-2.0
// The loop of `gpuscale remediate`: in each interval it reads the health of all GPUs and the nodes, asks the planner
// (remedy/plan), and carries out the actions. What the planner remembers of a node is the annotation of the node, and
// one PATCH writes it together with the taint, so no action is lost or repeated when the process dies.
#ifndef GPUSCALE_REMEDY_AGENT_REMEDY_AGENT_H
#define GPUSCALE_REMEDY_AGENT_REMEDY_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "remedy/plan/remedy_state.h"

struct connections;
struct err;
struct ha_options;
struct log;
struct remedy_agent;

struct remedy_agent_options {
	struct connections *connections; // with an API server; not owned, as all below
	struct ha_options *election;     // with a lease_name of its own; NULL: this process always acts
	struct remedy_limits limits;
	const char *node_label; // label of the series: the name of the node
	const char *matchers;   // matchers of the series to trust (promql/confine.h); NULL: all, which is for dry runs
	const char *const *namespaces; // NULL-terminated: evict their pods although they are protected; NULL: none
	int64_t interval_ms, heat_ms;  // heat_ms: as in struct health_feed_options
	const char *listen;  // address of /livez, /readyz, /healthz and /metrics; NULL or "": none. Requests must name
	                     // an IP address, localhost, this host or a Service
	bool acts;           // false: a dry run, which writes only Events
	bool cordons;        // cordon nodes instead of tainting them
	bool taints_devices; // taint single GPUs where dynamic resource allocation serves them
	struct log *log;
};

// Creates the agent, starts its watch and listens. Returns NULL and *e on failure.
struct remedy_agent *remedy_agent_new(const struct remedy_agent_options *options, struct err *e);
// Runs until SIGTERM or SIGINT; releases the lease.
void remedy_agent_run(struct remedy_agent *a);
// Ends the watch and the endpoints. Call before connections_cancel(); NULL is fine.
void remedy_agent_disconnect(struct remedy_agent *a);
// Call after connections_cancel(). NULL is fine.
void remedy_agent_free(struct remedy_agent *a);

#endif
