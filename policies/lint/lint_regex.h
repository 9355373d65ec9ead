// SPDX-License-Identifier: Apache-2.0
// Regular expressions of matchers that every server refuses, because all of them use RE2.
#ifndef GPUSCALE_POLICIES_LINT_LINT_REGEX_H
#define GPUSCALE_POLICIES_LINT_LINT_REGEX_H

#include <stdbool.h>
#include <stddef.h>

// Checks brackets, repetitions and lookaround of the expression text[0..len), as it stands between the quotes of a
// query; text[len] is the closing quote. is_raw: the quotes are backquotes. Returns why a server refuses the
// expression, with the index of the character in *ret_at, or NULL: also where it would have to guess, as in a class
// with a '['. Source: github.com/google/re2, wiki page Syntax.
const char *lint_regex_fault(const char *text, size_t len, bool is_raw, size_t *ret_at);

#endif
