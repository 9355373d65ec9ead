// SPDX-License-Identifier: Apache-2.0
// Errors that the query API reports in the body of a reply: `errorType` and `error`. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_API_ERROR_H
#define GPUSCALE_PROMQL_PROMQL_API_ERROR_H

struct err;

// Fills *e with the error that the reply reports, and returns -1. `type` is its errorType, which decides the kind
// (promql_decoder_feed lists them), `text` its error, the server's words, which go into the message cut and on one
// line. Both may be "", when the reply has no such member.
int promql_api_error_set(struct err *e, const char *type, const char *text);

#endif
