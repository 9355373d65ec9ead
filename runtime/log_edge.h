// SPDX-License-Identifier: Apache-2.0
// Logs a condition when it starts and when it ends, instead of at every check.
#ifndef GPUSCALE_RUNTIME_LOG_EDGE_H
#define GPUSCALE_RUNTIME_LOG_EDGE_H

#include <stdbool.h>

enum log_edge { LOG_EDGE_NONE, LOG_EDGE_STARTED, LOG_EDGE_ENDED };

// Stores is_true in *condition and returns how it changed. Zero *condition before the first check.
static inline enum log_edge log_edge(bool *condition, bool is_true)
{
	if (*condition == is_true)
		return LOG_EDGE_NONE;
	*condition = is_true;
	return is_true ? LOG_EDGE_STARTED : LOG_EDGE_ENDED;
}

#endif
