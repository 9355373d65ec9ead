// SPDX-License-Identifier: Apache-2.0
// The HTTP endpoints of `gpuscale remediate`: /livez, /readyz, /healthz, /metrics.
#ifndef GPUSCALE_REMEDY_AGENT_REMEDY_PAGES_H
#define GPUSCALE_REMEDY_AGENT_REMEDY_PAGES_H

#include <stdint.h>

struct err;
struct event_base;
struct remedy_agent;
struct remedy_pages;

// Listens on `listen` at once. The agent must outlive the pages. Requests must name an IP address, localhost, this host
// or a Service. Returns NULL and *e on failure.
struct remedy_pages *remedy_pages_new(struct event_base *loop, const char *listen, struct remedy_agent *agent,
                                      struct err *e);
void remedy_pages_free(struct remedy_pages *p); // NULL is fine
// Returns the port on which the pages are served.
uint16_t remedy_pages_port(const struct remedy_pages *p);

#endif
