// SPDX-License-Identifier: Apache-2.0
// k8s_exec_decode on any output: what it accepts is usable in a header, and nothing is left behind on refusal.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "k8s/client/k8s_exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct k8s_exec_result r;
	struct err e = {0};
	if (k8s_exec_decode("client.authentication.k8s.io/v1", (const char *)data, size, &r, &e) == 0) {
		assert(r.token || (r.cert_pem && r.key_pem));
		assert(!r.cert_pem == !r.key_pem);
		assert(!r.token || (r.token[0] && !strpbrk(r.token, "\r\n \t")));
		cJSON *tree = json_read((const char *)data, size, NULL);
		const cJSON *expiry = json_get(json_get(tree, "status"), "expirationTimestamp");
		if (cJSON_IsString(expiry) && expiry->valuestring[0]) // never taken for one that does not expire
			assert(r.expires_wall_ms != 0 || strncmp(expiry->valuestring, "19", 2) == 0);
		else
			assert(r.expires_wall_ms == 0 && (!expiry || !cJSON_IsNumber(expiry)));
		cJSON_Delete(tree);
	} else {
		assert(e.kind != ERR_NONE && !r.token && !r.cert_pem && !r.key_pem && r.expires_wall_ms == 0);
	}
	k8s_exec_result_done(&r);
	return 0;
}
