// SPDX-License-Identifier: Apache-2.0
// The flags that several commands have: one name, letter, argument and text for each. A command names the member of its
// options; `group` orders the help. Flags with options of their own are sets: prometheus_flags, kube_flags,
// namespace_flags, policy_scope_flags.
#ifndef GPUSCALE_CLI_TERM_FLAGS_H
#define GPUSCALE_CLI_TERM_FLAGS_H

#include "cli/term/fail_on.h"
#include "cli/term/output.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"

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

#endif
