// SPDX-License-Identifier: Apache-2.0
// k8s_status_to_err on any body: always an error of the status' kind, one clean line, bounded.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "k8s/client/k8s_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int status = size ? 300 + data[0] % 300 : 500;
	struct err e;
	k8s_status_to_err(status, (const char *)data, size, &e);
	assert(e.kind == err_kind_of_http_status(status) && e.code == status);
	assert(e.retry_after_ms >= 0 && e.retry_after_ms <= 3600 * 1000);
	size_t len = strnlen(e.msg, sizeof e.msg);
	assert(len > 0 && len < sizeof e.msg);
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)e.msg[i] >= 0x20 && e.msg[i] != 0x7F);
	return 0;
}
