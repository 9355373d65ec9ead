// SPDX-License-Identifier: Apache-2.0
// What a token endpoint answers, as any bytes: a credential is text for a header with a bounded lifetime, and an error
// never quotes the answer.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "promql/promql_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
	assert(text && text[0] && strlen(text) <= PROMQL_SECRET_BYTES_MAX);
	for (const char *p = text; *p; p++)
		assert(*p > 0x20 && *p < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int kind = PROMQL_IDENTITY_GOOGLE; kind < PROMQL_IDENTITY__COUNT; kind++) {
		struct identity_token t;
		struct err e = {0};
		int rc = identity_answer_read((enum promql_identity)kind, (const char *)data, size, 1767603600000, &t,
		                              &e);
		if (rc < 0) {
			assert(e.kind != ERR_NONE && e.msg[0] && !t.secret && !t.key_id && !t.session);
			continue;
		}
		check_text(t.secret);
		assert((kind == PROMQL_IDENTITY_AMAZON) == (t.key_id != NULL));
		assert(t.lifetime_ms >= IDENTITY_LIFETIME_MIN_MS && t.lifetime_ms <= IDENTITY_LIFETIME_MAX_MS);
		if (t.key_id) {
			check_text(t.key_id);
			check_text(t.session);
		}
		identity_token_done(&t);
	}
	return 0;
}
