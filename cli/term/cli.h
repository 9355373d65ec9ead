// SPDX-License-Identifier: Apache-2.0
// What the files of all commands share, so that each file lists only the headers of its own subject: the C library,
// texts, errors and documents, and the arguments, sources and output of a command. Files whose header it includes do
// not include it.
#ifndef GPUSCALE_CLI_TERM_CLI_H
#define GPUSCALE_CLI_TERM_CLI_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
#include "cli/term/prometheus_session.h"
#include "cli/term/table.h"
#include "policies/explain/explain.h"
#include "policies/price/price_book.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"

#endif
