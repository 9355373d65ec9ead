// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscalers and ScaledObjects as a server may send them: the first byte says which.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "k8s/scaler_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scaler_object o;
	if (size == 0)
		return 0;
	enum scaler_kind kind = data[0] % 2 ? SCALER_HPA : SCALER_SCALED_OBJECT;
	if (scaler_decode(kind, (const char *)data + 1, size - 1, &o)) {
		assert(o.namespace_name[0] && o.name[0]);
		assert(strlen(o.target_name) < sizeof o.target_name && strlen(o.target_kind) < sizeof o.target_kind);
		assert(!o.has_target || (o.target_name[0] && o.target_kind[0]));
		assert(kind == SCALER_HPA || !o.scaled_object[0]);
	}
	return 0;
}
