// SPDX-License-Identifier: Apache-2.0
// gpuscale spread: the allocator of variants as a line filter, so that anyone can test it.
#include <stddef.h>

#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/line_filter.h"
#include "policies/test/spread_line.h"
#include "runtime/options/flag_table.h"

// clang-format off
static const struct flag_set command = {
	.args = "",
	.about = "Run the allocator of variants as a filter: reads a decision in units of capacity and the variants that may "
	         "serve it from one line of standard input, and writes the replicas of each variant in one line of standard "
	         "output, both JSON. Writes nothing else."
	         "\vFormat of a line: {\"units\": 120, \"variants\": [{\"name\": \"h100\", \"capacity\": 30, \"price\": 4, "
	         "\"current\": 2, \"ready\": 2, \"min\": 0, \"max\": 8, \"fit\": 6, \"startupSeconds\": 240}], \"switchCost\": "
	         "0.5}. Only units, name and capacity are required. capacity is what one replica serves, price what it costs "
	         "per hour, fit for how many further replicas the cluster has room, switchCost what each replica costs that "
	         "is added to a variant. By default price, current, min and switchCost are 0, and max and fit have no limit. "
	         "ready and startupSeconds are accepted and do not change the result.\n\nFormat of the answer: {\"variants\": "
	         "[{\"name\": \"h100\", \"replicas\": 4, \"reason\": \"Cheapest\"}], \"units\": 120, \"cost\": 17}. cost is the "
	         "least sum of price x replicas + switchCost x added replicas at which the variants serve the units; when "
	         "they cannot, each variant gets as many replicas as it may. The answer to an invalid line is {\"error\": "
	         "\"...\"}.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	.surplus = "; the variants are read from standard input",
	.flags = (const struct flag[]){FLAG_END}};
// clang-format on

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	unsigned long long *n_lines = context;
	return spread_line_answer(line, len, ++*n_lines, out, e);
}

int cmd_spread(int argc, char **argv)
{
	unsigned long long n_lines = 0;
	args_parse(&command, argc, argv, NULL);
	const struct line_filter filter = {"gpuscale spread", SPREAD_LINE_BYTES_MAX, &n_lines, answer, NULL, NULL};
	return line_filter_run(&filter);
}
