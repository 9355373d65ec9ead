// SPDX-License-Identifier: Apache-2.0
// One round of samples as an ExportMetricsServiceRequest of OTLP 1.x in JSON (opentelemetry-proto: metrics.proto,
// "OTLP/HTTP"). Metrics have the names, units and attributes of exporter/naming.h. Every point has hw.id: the UUID of
// the GPU or MIG instance, or, for a temperature, the UUID and the location of the sensor, with the UUID in hw.parent.
#ifndef GPUSCALE_EXPORTER_OTLP_OTLP_ENCODE_H
#define GPUSCALE_EXPORTER_OTLP_OTLP_ENCODE_H

struct buf;
struct health_policy;
struct pod_share;
struct sampler_round;
struct xid_store;

struct otlp_encode_options {
	const char *hostname;               // resource attribute host.name; "" leaves it out
	const struct pod_share *sidecar_of; // resource attributes k8s.*; NULL: none
	const struct health_policy *health; // rules of hw.status
	struct xid_store *xids;
};

// Appends the request to `out`; out->failed is set above the limit of `out`.
void otlp_encode(const struct otlp_encode_options *o, const struct sampler_round *round, struct buf *out);

#endif
