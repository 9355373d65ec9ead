// SPDX-License-Identifier: Apache-2.0
// The flags that several commands have: one name, letter, argument and text for each. A command names the member of its
// options; `group` orders the help. Flags with options of their own are sets: prometheus_flags, kube_flags,
// namespace_flags, policy_scope_flags.
#ifndef GPUSCALE_CLI_TERM_FLAGS_H
#define GPUSCALE_CLI_TERM_FLAGS_H

#include "cli/term/output.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"

struct arena;
struct err;
struct price_book;

#define GPUS_PER_REPLICA_MAX 1024

// clang-format off
// set: the formats of the command, as in cli/term/output.h
#define FLAG_OUTPUT(group, member, set, formats) FLAG_CHOICE(group, 'o', "output", "FORMAT", member, output_format_names, set, formats)
#define FLAG_FILES(group, arg, member, what)     FLAG_CALL(group, 'f', "filename", arg, member, path_options_add, what " (repeatable)")
#define FLAG_POLICY(group, member)               FLAG_TEXT(group, 'p', "policy", "NAMESPACE/NAME", member, "name of the policy, when the files have several")
#define FLAG_WATCH(group, member, what)          FLAG_SWITCH(group, 'w', "watch", member, what)
#define FLAG_FAIL_ON(group, member, metrics)     FLAG_CALL(group, 0, "fail-on", "CONDITION", member, fail_on_add, "exit with 3 when CONDITION holds (repeatable): " metrics)
#define FLAG_PRICE(group, member)                FLAG_F64(group, 0, "price", "X", member, 0, 1e9, "price of one GPU-hour")
#define FLAG_PRICES(group, member)               FLAG_TEXT(group, 0, "prices", "FILE", member, "a PriceBook (default: the shipped prices)")
#define FLAG_GPU_MODEL(group, member)            FLAG_TEXT(group, 0, "gpu-model", "MODEL", member, "use the price of this model in the price book, as in H100-SXM")
#define FLAG_GPUS(group, member)                 FLAG_F64(group, 0, "gpus-per-replica", "N", member, 0.001, GPUS_PER_REPLICA_MAX, "GPUs of one replica (default: 1)")
#define FLAG_SINCE(group, member, min, max, otherwise) FLAG_DURATION(group, 0, "since", member, min, max, "length of the period (default " otherwise ")")
// clang-format on

// What -o takes, for FLAG_OUTPUT; the sets of cli/term/output.h.
#define OUTPUTS_LIST_HELP   "table, wide, json, yaml or name (default table)"
#define OUTPUTS_REPORT_HELP "table, wide, json or yaml (default table)"

struct file_set;
// Loads the policies of the files; prints their errors, as those of `command`. Returns 0, or -1 when the files cannot
// be read; then file_set_done() is not necessary.
int path_options_load(const struct path_options *files, const char *command, struct file_set *ret_set);

// ---- conditions of --fail-on: "late > 5%", "p95-wait > 30s", "warnings" ----
// Each command has a table of its metrics.

#define FAIL_ON_MAX 16

enum fail_unit {
	FAIL_NUMBER,
	FAIL_PERCENT, // a % may follow the number
	FAIL_SECONDS, // may be a duration, such as 30s
	FAIL_COUNT,   // of findings; without a comparison, the condition is that there are any
};

struct fail_metric {
	const char *name;
	enum fail_unit unit;
};

enum fail_comparison { FAIL_ABOVE, FAIL_AT_LEAST, FAIL_BELOW, FAIL_AT_MOST, FAIL_COMPARISON__COUNT };

struct fail_on {
	const char *text; // as written; not owned
	size_t metric;    // its row in the table
	enum fail_comparison comparison;
	double limit; // in the unit of the metric
};

// The conditions of a command line.
struct fail_options {
	const struct fail_metric *metrics; // of the command
	size_t n_metrics;
	struct fail_on items[FAIL_ON_MAX];
	size_t n;
};
// The default of a command with the array `table` of metrics.
#define FAIL_OPTIONS(table)                                                                                            \
	{                                                                                                              \
		.metrics = (table), .n_metrics = sizeof(table) / sizeof *(table)                                       \
	}
// A flag_take_fn: appends the argument of one --fail-on to a struct fail_options; exits with a usage error when it is
// not a condition.
void fail_on_add(void *options, char *text, struct argp_state *state);
// Reports each condition that `values`, one per metric, meet, as "WHO: --fail-on ..". Returns EXIT_CHANGES when one is
// met, else EXIT_OK.
int fail_on_check(const struct fail_options *o, const char *who, const double *values);

// Parses METRIC, a comparison (> >= < <=) and a number, with optional blanks between them. `metrics` are the n rows of
// the command. Returns 0, or -1 and *e (ERR_USAGE). `text` must outlive the result.
int fail_on_parse(const char *text, const struct fail_metric *metrics, size_t n, struct fail_on *ret, struct err *e);
// Returns whether `value` meets the condition, so that the command fails. An unknown value (NaN) never does.
bool fail_on_is_met(const struct fail_on *f, double value);

// ---- --prices FILE and --gpu-model MODEL: the price of one GPU-hour from a price book ----

#define PRICE_OPTION_CURRENCY_BYTES 4
#define PRICE_OPTION_ARENA_MAX      ((size_t)16 * 1024 * 1024) // of a price book

struct price_option {
	const char *prices;                         // file; NULL: the shipped prices
	const char *model;                          // short name or modelName; NULL: the only one of the file
	char currency[PRICE_OPTION_CURRENCY_BYTES]; // of the price that was taken from a book; else ""
};

// Reads the price book of `path`, NULL: the shipped prices. Its strings live in `a`, which the caller has initialized.
// Returns -1 after printing the errors, as those of `command`.
int price_option_read(const char *path, struct arena *a, struct price_book *ret_book, const char *command);
// Returns the price that the flags name; `price`, which is that of --price or NaN, when neither is given. Exits with a
// usage error when --price is given too, and with EXIT_FAILED when the file is invalid or has no such model.
double price_option_get(struct price_option *o, double price, struct argp_state *state);

#endif
