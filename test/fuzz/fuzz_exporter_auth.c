// SPDX-License-Identifier: Apache-2.0
// Sends an Authorization header from several addresses. A client is accepted only with the password of the file; a
// header of another kind costs no check; and whatever the other addresses have sent, a new address is accepted with the
// password. The first byte selects how many addresses send the header how often.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/page/web.h"

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
	buf_put(&header, data + (size > 0), size - (size > 0));
	const char *text = buf_str(&header);
	int peers = size > 0 ? data[0] % 4 : 0, times = size > 0 ? data[0] / 4 : 0;
	enum web_auth_result r = web_auth_check(a, text, "192.0.2.0", 1000);
	assert(r == WEB_AUTH_GOOD || r == WEB_AUTH_BAD);
	if (r == WEB_AUTH_GOOD)
		assert(strlen(text) >= 6 + sizeof good - 1 &&
		       strcmp(text + strlen(text) - (sizeof good - 1), good) == 0);
	// Again: right and wrong passwords are now cached.
	assert(web_auth_check(a, text, "192.0.2.0", 1001) == r);
	assert(web_auth_check(a, NULL, "192.0.2.0", 1002) == WEB_AUTH_BAD);
	for (int i = 0; i < times; i++) { // a different text each time, so that none is cached
		char peer[32];
		snprintf(peer, sizeof peer, "192.0.2.%d", 1 + i % (peers + 1));
		buf_putc(&header, 'A');
		web_auth_check(a, buf_str(&header), peer, 1002);
	}
	assert(web_auth_check(a, "Basic dTpzZWNyZXQ=", "192.0.2.99", 1002) == WEB_AUTH_GOOD);
	buf_done(&header);
	web_auth_free(a);
	return 0;
}
