// SPDX-License-Identifier: Apache-2.0
// The tokens of a formula. Private to formula*.c.
#ifndef GPUSCALE_POLICIES_ENGINE_FORMULA_TOKEN_H
#define GPUSCALE_POLICIES_ENGINE_FORMULA_TOKEN_H

#include <stddef.h>

enum formula_token_kind { TOKEN_END, TOKEN_NUMERAL, TOKEN_WORD, TOKEN_QUOTED, TOKEN_SYMBOL };

struct formula_token {
	enum formula_token_kind kind;
	size_t offset, len; // range of its bytes; TOKEN_QUOTED: with its backquotes
	const char *fault;  // constant: why the bytes are not a valid token; NULL
};

// Returns the first token at or after text[at]; TOKEN_END, at len, when only spaces follow.
struct formula_token formula_token_at(const char *text, size_t len, size_t at);

#endif
