// SPDX-License-Identifier: Apache-2.0
// gpuscale get NAME --targets: the targets of a fleet, as the API server has them, with what the status says about the
// worst.
#ifndef GPUSCALE_CLI_OBJECTS_FLEET_GET_H
#define GPUSCALE_CLI_OBJECTS_FLEET_GET_H

struct connections;
struct policy_view;

// Lists the objects that the policy selects, and prints them as a table. Prints errors, and returns the exit code.
int fleet_get(struct connections *session, const struct policy_view *policy);

#endif
