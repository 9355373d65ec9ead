// SPDX-License-Identifier: Apache-2.0
// Runs promtool, Prometheus's own tool, on a test of rules that exists only in memory.
#ifndef GPUSCALE_CLI_POLICY_PROMTOOL_H
#define GPUSCALE_CLI_POLICY_PROMTOOL_H

struct buf;
struct err;

// Runs `promtool test rules` on the test file `test` and waits. Appends all that promtool prints to `out`, whatever its
// exit status: it fails when an expectation does. Returns 0, or -1 and *e: ERR_UNSUPPORTED when promtool is not
// installed, ERR_IO, ERR_LIMIT when the output exceeds the ceiling of `out`.
int promtool_test_rules(const struct buf *test, struct buf *out, struct err *e);

#endif
