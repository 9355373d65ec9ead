// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/replica_shape.h"

#include <openssl/sha.h>

#include "base/base.h"
#include "k8s/capacity/pod_requests.h"
#include "k8s/client/accelerators.h"

const char *uncounted_rule_name(int bit)
{
	static const char *const names[UNCOUNTED_RULES] = {"podAffinity or podAntiAffinity",
	                                                   "topologySpreadConstraints", "persistentVolumeClaim",
	                                                   "hostPort", "constraints of resource claims"};
	return names[bit];
}

static bool has_member(struct json_span list, const char *key, const char *value)
{
	struct json_span_iter it = {.rest = list};
	while (json_span_next(&it)) {
		struct json_span member = json_span_get(it.value, key);
		if (member.text && (!value || json_span_is(member, value)))
			return true;
	}
	return false;
}

static int uncounted_rules(struct json_span spec)
{
	static const char *const required = "requiredDuringSchedulingIgnoredDuringExecution";
	struct json_span affinity = json_span_get(spec, "affinity");
	int rules = 0;
	if (json_span_count(json_span_get(json_span_get(affinity, "podAffinity"), required)) ||
	    json_span_count(json_span_get(json_span_get(affinity, "podAntiAffinity"), required)))
		rules |= UNCOUNTED_POD_AFFINITY;
	if (has_member(json_span_get(spec, "topologySpreadConstraints"), "whenUnsatisfiable", "DoNotSchedule"))
		rules |= UNCOUNTED_TOPOLOGY;
	if (has_member(json_span_get(spec, "volumes"), "persistentVolumeClaim", NULL))
		rules |= UNCOUNTED_VOLUMES;
	struct json_span_iter it = {.rest = json_span_get(spec, "containers")};
	while (json_span_next(&it)) {
		if (has_member(json_span_get(it.value, "ports"), "hostPort", NULL))
			rules |= UNCOUNTED_HOST_PORTS;
	}
	return rules;
}

// Returns NULL for an absent name, or when memory is exhausted.
static const char *copy_name(struct replica_shape *shape, struct json_span name)
{
	char text[RESOURCE_NAME_BYTES];
	int len = json_span_text(name, text, sizeof text);
	return len > 0 ? arena_strndup(&shape->arena, text, (size_t)len) : NULL;
}

static int read_claims(struct replica_shape *shape, struct json_span claims, struct err *e)
{
	struct json_span_iter it = {.rest = claims};
	while (json_span_next(&it)) {
		if (shape->n_claims == REPLICA_CLAIMS_MAX)
			return err_set(e, ERR_LIMIT, "resourceClaims: more than %d", REPLICA_CLAIMS_MAX);
		struct replica_claim *c = &shape->claims[shape->n_claims];
		c->template_name = copy_name(shape, json_span_get(it.value, "resourceClaimTemplateName"));
		c->claim_name = copy_name(shape, json_span_get(it.value, "resourceClaimName"));
		if (!c->template_name == !c->claim_name)
			return err_set(
			        e, ERR_INPUT,
			        "resourceClaims: expected either resourceClaimTemplateName or resourceClaimName");
		shape->n_claims++;
	}
	return 0;
}

static int read_requests(struct replica_shape *shape, enum resource_use use, struct json_span json, struct err *e)
{
	struct pod_spec spec;
	pod_spec_read(json, &spec);
	int faults = pod_requests_read(shape->names, use, &spec, &shape->requests);
	resource_names_hold(shape->names, shape->requests.items, shape->requests.n);
	if (faults & RESOURCE_FAULT_TOO_MANY)
		return err_set(
		        e, ERR_LIMIT,
		        "resources: more than %d of one pod, or %d of the cluster that no node or DeviceClass offers",
		        RESOURCES_MAX, RESOURCE_NAMES_NEEDED_MAX);
	if (faults)
		return err_set(e, ERR_INPUT, "resources: expected quantities between 0 and 2^53 (devices: %d)",
		               RESOURCE_DEVICES_MAX);
	return read_claims(shape, spec.claims, e);
}

static void read_print(struct json_span spec, unsigned char ret_print[REPLICA_PRINT_BYTES])
{
	static const char *const keys[] = {"nodeName", "nodeSelector", "affinity", "tolerations"};
	_Static_assert(REPLICA_PRINT_BYTES == SHA256_DIGEST_LENGTH, "the size of the digest");
	unsigned char parts[sizeof keys / sizeof keys[0]][SHA256_DIGEST_LENGTH] = {{0}};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		struct json_span part = json_span_get(spec, keys[i]);
		if (part.text)
			SHA256((const unsigned char *)part.text, part.len, parts[i]);
	}
	SHA256(parts[0], sizeof parts, ret_print);
}

int replica_shape_read(struct replica_shape *shape, struct resource_names *names, enum resource_use use,
                       struct json_span pod_spec, struct err *e)
{
	*shape = (struct replica_shape){.names = names};
	arena_init(&shape->arena, REPLICA_SHAPE_BYTES_MAX);
	if (json_span_kind(pod_spec) != '{')
		return err_set(e, ERR_INPUT, "expected the spec of a pod");
	if (pod_spec.len > REPLICA_SPEC_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the spec of the pod has %zu bytes, the ceiling is %zu", pod_spec.len,
		               REPLICA_SPEC_BYTES_MAX);
	if (read_requests(shape, use, pod_spec, e) < 0)
		return -1;
	shape->uncounted = uncounted_rules(pod_spec);
	read_print(pod_spec, shape->rule_print);
	return node_rule_read(&shape->arena, pod_spec, &shape->rule, e);
}

static int add_selectors(struct replica_shape *shape, int id, struct json_span selectors, struct err *e)
{
	struct json_span_iter it = {.rest = selectors};
	while (json_span_next(&it)) {
		struct json_span expression = json_span_get(json_span_get(it.value, "cel"), "expression");
		if (shape->n_selectors == REPLICA_SELECTORS_MAX)
			return err_set(e, ERR_LIMIT, "selectors: more than %d", REPLICA_SELECTORS_MAX);
		char *text = arena_alloc(&shape->arena, expression.len + 1);
		if (!text || json_span_text(expression, text, expression.len + 1) <= 0)
			return err_set(e, ERR_INPUT, "selectors: expected cel.expression of at most %zu bytes",
			               REPLICA_SHAPE_BYTES_MAX);
		shape->selectors[shape->n_selectors].id = id;
		shape->selectors[shape->n_selectors++].expression = text;
	}
	return 0;
}

static int add_request(struct replica_shape *shape, struct resource_names *names, struct json_span request,
                       struct err *e)
{
	struct json_span exactly = json_span_get(request, "exactly"), mode = json_span_get(exactly, "allocationMode"),
	                 selectors = json_span_get(exactly, "selectors");
	char class_name[RESOURCE_NAME_BYTES / 2], name[RESOURCE_NAME_BYTES];
	int64_t devices = 1;
	if (json_span_kind(json_span_get(request, "firstAvailable")) == '[')
		return err_set(e, ERR_UNSUPPORTED, "a request with firstAvailable is not counted");
	if (json_span_kind(json_span_get(exactly, "adminAccess")) == 't')
		return 0; // uses no device
	if (mode.text && !json_span_is(mode, "") && !json_span_is(mode, "ExactCount"))
		return err_set(e, ERR_UNSUPPORTED,
		               "a request with an allocationMode other than ExactCount is not counted");
	if (json_span_kind(json_span_get(exactly, "capacity")) == '{')
		return err_set(e, ERR_UNSUPPORTED, "a request for a part of a device is not counted");
	if (json_span_text(json_span_get(exactly, "deviceClassName"), class_name, sizeof class_name) <= 0)
		return err_set(e, ERR_INPUT, "expected the name of a DeviceClass in exactly.deviceClassName");
	struct json_span given = json_span_get(exactly, "count");
	if (given.text && !json_span_i64(given, 1, RESOURCE_DEVICES_MAX, &devices))
		return err_set(e, ERR_INPUT, "count: expected a number from 1 to %d", RESOURCE_DEVICES_MAX);
	snprintf(name, sizeof name, RESOURCE_DEVICE_CLASS_PREFIX "%s", class_name);
	int id = resource_names_add(names, name, RESOURCE_NEEDED);
	if (id < 0)
		return err_set(e, ERR_LIMIT,
		               "the cluster has more than %d resources that no node or DeviceClass offers",
		               RESOURCE_NAMES_NEEDED_MAX);
	bool is_known = resource_vector_has(&shape->requests, id);
	if (is_known && (selectors.text || shape->n_selectors))
		return err_set(e, ERR_UNSUPPORTED, "several requests of DeviceClass %s with selectors are not counted",
		               class_name);
	if (resource_vector_set(&shape->requests, id, resource_vector_get(&shape->requests, id) + devices) < 0)
		return err_set(e, ERR_LIMIT, "a pod requests more than %d resources", RESOURCES_MAX);
	if (!is_known)
		resource_names_hold(names, &shape->requests.items[shape->requests.n - 1], 1);
	return add_selectors(shape, id, selectors, e);
}

int replica_shape_add_claim(struct replica_shape *shape, struct resource_names *names, struct json_span claim_template,
                            struct err *e)
{
	static const char *const path[] = {"spec", "spec", "devices", NULL};
	struct json_span devices = json_span_path(claim_template, path);
	struct json_span_iter it = {.rest = json_span_get(devices, "requests")};
	if (json_span_count(json_span_get(devices, "constraints")))
		shape->uncounted |= UNCOUNTED_CONSTRAINTS;
	while (json_span_next(&it)) {
		if (add_request(shape, names, it.value, e) < 0)
			return -1;
	}
	return 0;
}

void replica_shape_done(struct replica_shape *shape)
{
	if (shape->names)
		resource_names_release(shape->names, shape->requests.items, shape->requests.n);
	shape->names = NULL;
	arena_done(&shape->arena);
}

int32_t replica_shape_gpus(const struct replica_shape *shape, const struct resource_names *names)
{
	int64_t n = 0;
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		const char *name = names->names[a->id];
		if (resource_is_whole_gpu(name))
			n += a->amount;
		// HAMi: with nvidia.com/gpumem or nvidia.com/gpucores, an nvidia.com/gpu is a part of a GPU.
		else if (a->amount > 0 && (resource_is_accelerator(name) || strncmp(name, "nvidia.com/gpu", 14) == 0 ||
		                           resource_device_class(name)))
			return 0;
	}
	return n <= RESOURCE_DEVICES_MAX ? (int32_t)n : 0;
}
