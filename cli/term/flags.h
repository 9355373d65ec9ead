// SPDX-License-Identifier: Apache-2.0
// The table of flags that several commands have: one name, letter, argument and text for each. A command takes rows
// into its own options; `group` orders the help. Flags with a state of their own are argp children: prometheus_argp,
// kube_argp, namespace_argp, policy_scope_argp.
#ifndef GPUSCALE_CLI_TERM_FLAGS_H
#define GPUSCALE_CLI_TERM_FLAGS_H

// The keys of the rows without a letter; those of a command's own flags are below.
enum { KEY_FAIL_ON = 0x2000, KEY_PRICE, KEY_PRICES, KEY_GPU_MODEL, KEY_GPUS, KEY_SINCE };

// clang-format off
#define FLAG_OUTPUT(formats, group)   {"output",   'o', "FORMAT",   0, formats, group}
#define FLAG_FILES(what, group)       {"filename", 'f', "FILE|DIR", 0, what " (repeatable)", group}
#define FLAG_WATCH(what, group)       {"watch",    'w', 0,          0, what, group}
#define FLAG_FAIL_ON(metrics, group)  {"fail-on", KEY_FAIL_ON, "CONDITION", 0, "exit with 3 when CONDITION holds (repeatable): " metrics, group}
#define FLAG_PRICE(group)             {"price", KEY_PRICE, "X", 0, "price of one GPU-hour", group}
#define FLAG_PRICES(group)            {"prices", KEY_PRICES, "FILE", 0, "a PriceBook (default: the shipped prices)", group}
#define FLAG_GPU_MODEL(group)         {"gpu-model", KEY_GPU_MODEL, "MODEL", 0, "use the price of this model in the price book, as in H100-SXM", group}
#define FLAG_GPUS(what, group)        {"gpus-per-replica", KEY_GPUS, "N", 0, "GPUs of one replica (default: " what ")", group}
#define FLAG_SINCE(otherwise, group)  {"since", KEY_SINCE, "DURATION", 0, "length of the period (default " otherwise ")", group}
// clang-format on

// What -o takes, for FLAG_OUTPUT; the sets of cli/term/output.h.
#define OUTPUTS_LIST_HELP   "table, wide, json, yaml or name (default table)"
#define OUTPUTS_REPORT_HELP "table, wide, json or yaml (default table)"

#endif
