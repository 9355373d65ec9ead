// SPDX-License-Identifier: Apache-2.0
// The web-config file: what is accepted keeps its promises.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/page/web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct web_config c;
	struct buf errors;
	struct err e = {.kind = ERR_NONE};
	buf_init(&errors, 64 * 1024);
	if (web_config_parse(&c, "d/f", (const char *)data, size, &errors, &e) == 0) {
		assert(!c.tls.tls_cert_file == !c.tls.tls_key_file);
		assert(c.tls.tls_cert_file || !c.tls.tls_client_ca_file);
		for (size_t i = 0; i < c.n_users; i++)
			assert(c.users[i].name[0] && strlen(c.users[i].hash) == WEB_CONFIG_HASH_BYTES);
		assert(c.rate_interval_ms >= 0 && c.rate_burst >= 1);
		web_config_done(&c);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	buf_done(&errors);
	return 0;
}
