// SPDX-License-Identifier: Apache-2.0
// Read before every file by `make tidy` alone: tells the analyzer, which sees one file at a time, that setting an error
// returns -1. Without it every checked result looks uninitialized.
#ifndef GPUSCALE_SCRIPTS_TIDY_H
#define GPUSCALE_SCRIPTS_TIDY_H

#include "base/err.h"

#define err_set(...)      (err_set(__VA_ARGS__), -1)
#define err_set_code(...) (err_set_code(__VA_ARGS__), -1)
#define err_wrap(...)     (err_wrap(__VA_ARGS__), -1)

#endif
