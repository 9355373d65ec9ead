// SPDX-License-Identifier: Apache-2.0
// Asks the sources what they make of the queries of a policy: do they parse, is there data, how many series.
#ifndef GPUSCALE_POLICYLINT_LINT_SOURCE_H
#define GPUSCALE_POLICYLINT_LINT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connections;
struct err;
struct lint_query;
struct policy_signal;
struct schema_errors;

// Asks once, waits for the answer (at most the source's timeout). A query that the server refuses is added to `errors`,
// at the place that it names; one without data, with data that cannot be used, or with several series where one is
// needed to `warnings`; any other to `notes` with what came. -1 and *e when the server could not be asked.
int lint_source_ask(struct connections *c, struct lint_query *q, struct schema_errors *errors,
                    struct schema_errors *warnings, struct schema_errors *notes, struct err *e);
// Whether the signal's query had data at time_ms. As above, but a refused query is no error here.
int lint_source_had_data(struct connections *c, const struct policy_signal *signal, int64_t time_ms, bool *ret_had,
                         struct err *e);
// Is there a source of the name that the signal gives? Else *e says so. Asks nobody.
bool lint_source_is_known(const struct connections *c, const struct policy_signal *signal, struct err *e);

#endif
