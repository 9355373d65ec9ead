// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_api_error.h"

#include <string.h>

#include "base/err.h"
#include "promql/promql_text.h"

// errorType of an error body -> kind. A type that is not here is a refusal.
// clang-format off
static const struct {
	const char *type;
	enum err_kind kind;
} kinds[] = {
	{"bad_data",          ERR_REJECTED},
	{"execution",         ERR_REJECTED},
	{"timeout",           ERR_TIMEOUT},
	{"canceled",          ERR_SERVER}, // the server gave up, not we
	{"internal",          ERR_SERVER},
	{"unavailable",       ERR_SERVER},
	{"not_found",         ERR_NOT_FOUND},
	{"too_many_requests", ERR_THROTTLED}, // Mimir
};
// clang-format on

int promql_api_error_set(struct err *e, const char *type, const char *text)
{
	enum err_kind kind = ERR_REJECTED;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].type, type) == 0)
			kind = kinds[i].kind;
	char type_line[PROMQL_NAME_BYTES], text_line[PROMQL_TEXT_BYTES];
	promql_text_show(type_line, sizeof type_line, type, strlen(type));
	promql_text_show(text_line, sizeof text_line, text, strlen(text));
	return err_set(e, kind, "query failed (%s): %s", type_line[0] ? type_line : "no errorType",
	               text_line[0] ? text_line : "the server gave no reason");
}
