// SPDX-License-Identifier: Apache-2.0
// An Authorization header: who is let in sent the password of the file, whatever else the bytes were; what is no header
// of the kind costs no try.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/web_auth.h"
#include "exporter/web_config.h"

// The user "u" with the password "secret", at bcrypt's least cost.
static const struct web_user user = {.name = "u",
                                     .hash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char good[] = "dTpzZWNyZXQ="; // u:secret
	struct err e;
	struct buf header;
	struct web_auth *a = web_auth_new(&user, 1, &e);
	if (!a) // no libcrypt with bcrypt on this machine
		return 0;
	buf_init(&header, 1024 * 1024);
	buf_put(&header, data, size);
	const char *text = buf_str(&header);
	enum web_auth_result r = web_auth_check(a, text, 1000);
	assert(r == WEB_AUTH_GOOD || r == WEB_AUTH_BAD || r == WEB_AUTH_LATER);
	if (r == WEB_AUTH_GOOD)
		assert(strlen(text) >= 6 + sizeof good - 1 &&
		       strcmp(text + strlen(text) - (sizeof good - 1), good) == 0);
	// Once more: what was good is known, what was bad stays bad, or too much.
	enum web_auth_result again = web_auth_check(a, text, 1001);
	assert((again == WEB_AUTH_GOOD) == (r == WEB_AUTH_GOOD));
	assert(web_auth_check(a, NULL, 1002) == WEB_AUTH_BAD);
	buf_done(&header);
	web_auth_free(a);
	return 0;
}
