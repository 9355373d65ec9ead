// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the kubelet's reply becomes a map of pods on devices, whichever way a device plugin names them,
// and bytes that are no such reply are refused. Live calls: test/integration/run-exporter-pods.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "exporter/device.h"
#include "exporter/kubelet/kubelet_pods.h"
#include "exporter/kubelet/pod_resources.h"
#include "test/support/manual_clock.h"
#include "test/support/pod_message.h"

static const struct device gpu = {.uuid = "GPU-aa", .pci_bus_id = "00000000:C1:00.0", .node = "nvidia1"};
static const struct device instance = {
        .uuid = "GPU-aa", .pci_bus_id = "00000000:C1:00.0", .node = "nvidia1", .mig_id = "3", .mig_uuid = "MIG-bb"};
#define LONG_UUID "GPU-00000000-0000-0000-0000-000000000001"
static const struct device whole = {.uuid = LONG_UUID, .node = "nvidia2"};
static const struct device card = {.pci_bus_id = "0000:03:00.0", .node = "card0"};

static void every_way_to_name_a_device_is_understood(void **state)
{
	(void)state;
	static const struct {
		const char *resource, *id;
		const struct device *device;
		size_t n;
		int32_t replica;
	} cases[] = {
	        {"nvidia.com/gpu", "GPU-aa", &gpu, 1, -1},
	        {"nvidia.com/gpu", "gpu-AA", &gpu, 1, -1},
	        {"nvidia.com/gpu", "GPU-ab", &gpu, 0, 0},
	        {"nvidia.com/gpu", "GPU-aa::7", &gpu, 1, 7},
	        {"nvidia.com/gpu.shared", "GPU-aa::0", &gpu, 1, 0},
	        {"nvidia.com/gpu", "GPU-aa::x", &gpu, 0, 0},
	        {"nvidia.com/gpu", LONG_UUID, &whole, 1, -1},
	        {"nvidia.com/gpu", LONG_UUID "-3", &whole, 1, 3}, // HAMi
	        {"nvidia.com/gpu", LONG_UUID "-12", &whole, 1, 12},
	        {"nvidia.com/gpu", LONG_UUID "-x", &whole, 0, 0},
	        {"nvidia.com/gpu", LONG_UUID "3", &whole, 0, 0},
	        {"nvidia.com/gpu", LONG_UUID "-3-1", &whole, 0, 0},
	        {"nvidia.com/gpu", "GPU-00000000-0000-0000-0000-000000000002-3", &whole, 0, 0},
	        {"nvidia.com/gpu", "nvidia1", &gpu, 1, -1},
	        {"nvidia.com/gpu", "nvidia1/vgpu2", &gpu, 1, 2},
	        {"nvidia.com/gpu", "nvidia11", &gpu, 0, 0},
	        {"nvidia.com/gpu", "nvidia1/gi3", &gpu, 0, 0},
	        {"nvidia.com/gpu", "nvidia1/gi3", &instance, 1, -1},
	        {"nvidia.com/gpu", "nvidia1/gi3/vgpu4", &instance, 1, 4},
	        {"nvidia.com/gpu", "nvidia1/gi33", &instance, 0, 0},
	        {"nvidia.com/mig-1g.10gb", "MIG-bb", &instance, 1, -1},
	        {"nvidia.com/mig-1g.10gb.shared", "MIG-bb::2", &instance, 1, 2},
	        {"nvidia.com/mig-1g.5gb", "MIG-GPU-aa/3/0", &instance, 1, -1},
	        {"nvidia.com/mig-1g.5gb", "MIG-GPU-aa/4/0", &instance, 0, 0},
	        {"nvidia.com/mig-1g.10gb", "MIG-bb", &gpu, 0, 0}, // who holds a part does not hold the GPU
	        {"nvidia.com/gpu", "GPU-aa", &instance, 0, 0},
	        {"amd.com/gpu", "0000:c1:00.0", &gpu, 1, -1},
	        {"amd.com/gpu", "0000:c1:00.1", &gpu, 0, 0},
	        {"amd.com/gpu", "0000:03:00.0", &card, 1, -1},
	        {"gpu.intel.com/i915", "card0-2", &card, 1, 2},
	        {"gpu.intel.com/xe", "card0", &card, 1, -1},
	        {"gpu.intel.com/i915", "card1-0", &card, 0, 0},
	        {"example.com/nic", "GPU-aa", &gpu, 0, 0},
	        {"nvidia.com/gpumem", "GPU-aa", &gpu, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct pod_message_holder h = {"ns", "p", "c", cases[i].resource, {cases[i].id}};
		struct pod_share shares[POD_SHARERS_MAX];
		struct err e = {.kind = ERR_NONE};
		struct pod_map *m = pod_message_map(&h, 1, &e);
		assert_non_null(m);
		if (pod_map_find(m, cases[i].device, 1, 0, shares) != cases[i].n)
			fail_msg("%s of %s: want %zu", cases[i].id, cases[i].resource, cases[i].n);
		if (cases[i].n > 0) {
			assert_int_equal(shares[0].replica, cases[i].replica);
			assert_string_equal(shares[0].namespace_, "ns");
			assert_string_equal(shares[0].pod, "p");
			assert_string_equal(shares[0].container, "c");
		}
		pod_map_free(m);
	}
}

static void pod_stands_once_however_much_it_holds(void **state)
{
	(void)state;
	static const struct pod_message_holder holders[] = {
	        {"z", "p", "c", "nvidia.com/gpu", {"GPU-aa::9"}},
	        {"a", "q", "c2", "nvidia.com/gpu", {"GPU-aa::8", "GPU-aa::3", "GPU-xx"}},
	        {"a", "q", "c1", "nvidia.com/gpu", {"GPU-aa::5"}},
	        {"a", "b", "c", "nvidia.com/gpu", {"GPU-aa::2", "GPU-aa::1"}},
	};
	struct pod_share s[POD_SHARERS_MAX];
	struct err e;
	struct pod_map *m = pod_message_map(holders, 4, &e);
	assert_non_null(m);
	assert_int_equal(pod_map_entries(m), 7);
	assert_int_equal(pod_map_find(m, &gpu, 1, 0, s), 3);
	assert_string_equal(s[0].pod, "b");
	assert_string_equal(s[0].container, "c");
	assert_int_equal(s[0].replica, 1);
	assert_string_equal(s[1].pod, "q");
	assert_string_equal(s[1].container, ""); // two containers: none is named
	assert_int_equal(s[1].replica, 3);
	assert_string_equal(s[2].namespace_, "z");
	pod_map_free(m);
}

// The pods on `gpu`, as "p,q,".
static void pods_are(const struct pod_map *m, const char *want)
{
	struct pod_share shares[POD_SHARERS_MAX];
	char got[64] = "";
	size_t n = pod_map_find(m, &gpu, 1, 0, shares);
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s,", shares[i].pod);
	assert_string_equal(got, want);
}

static void finished_pod_gives_way_to_the_next_one(void **state)
{
	(void)state;
	static const struct pod_message_holder p = {"ns", "p", "c", "nvidia.com/gpu", {"GPU-aa"}},
	                                       a = {"ns", "a", "c", "nvidia.com/gpu", {"GPU-aa", "GPU-ab"}},
	                                       z = {"ns", "z", "c", "nvidia.com/gpu", {"GPU-aa"}},
	                                       slice = {"ns", "s", "c", "nvidia.com/gpu", {"GPU-aa::1"}},
	                                       other = {"ns", "o", "c", "nvidia.com/gpu.shared", {"GPU-aa"}};
	const struct {
		struct pod_message_holder holders[4];
		size_t n;
		const char *want;
	} steps[] = {
	        {{p}, 1, "p,"},
	        {{p, a}, 2, "a,"}, // p has finished
	        {{p, a}, 2, "a,"},
	        {{p, a, z}, 3, "z,"},
	        {{p, slice, z}, 3, "s,z,"}, // replicas, and other resources, share
	        {{other, p, z}, 3, "o,z,"},
	        {{p}, 1, "p,"},
	};
	struct pod_map *last = NULL;
	struct err e = {.kind = ERR_NONE};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct pod_map *m = pod_message_map(steps[i].holders, steps[i].n, &e);
		assert_non_null(m);
		pod_map_follow(m, last);
		pods_are(m, steps[i].want);
		pod_map_free(last);
		last = m;
	}
	pod_map_free(last);
	// At the start, nothing shows which one is younger.
	last = pod_message_map((const struct pod_message_holder[]){p, z}, 2, &e);
	assert_non_null(last);
	pod_map_follow(last, NULL);
	pods_are(last, "p,z,");
	pod_map_free(last);
}

static void more_sharers_than_the_ceiling_are_counted(void **state)
{
	(void)state;
	struct pod_message_holder *h = calloc(POD_SHARERS_MAX + 5, sizeof *h);
	char(*names)[16] = calloc(POD_SHARERS_MAX + 5, sizeof *names);
	struct pod_share s[POD_SHARERS_MAX];
	struct err e;
	assert_true(h && names);
	for (int i = 0; i < POD_SHARERS_MAX + 5; i++) {
		snprintf(names[i], sizeof names[i], "p%03d", i);
		h[i] = (struct pod_message_holder){"ns", names[i], "c", "nvidia.com/gpu", {"GPU-aa::1", "GPU-aa::2"}};
	}
	struct pod_map *m = pod_message_map(h, POD_SHARERS_MAX + 5, &e);
	assert_non_null(m);
	assert_int_equal(pod_map_find(m, &gpu, 1, 0, s), POD_SHARERS_MAX + 5);
	assert_string_equal(s[POD_SHARERS_MAX - 1].pod, "p063");
	pod_map_free(m);
	free(h);
	free(names);
}

static void refused(const void *data, size_t len, enum err_kind kind)
{
	struct err e = {.kind = ERR_NONE};
	assert_null(pod_map_parse(data, len, NULL, &e));
	assert_int_equal(e.kind, kind);
}

static void invalid_reply_is_refused(void **state)
{
	(void)state;
	refused("\x0a", 1, ERR_PROTOCOL);                                              // a field without a length
	refused("\x0a\x05xx", 4, ERR_PROTOCOL);                                        // bytes past the end
	refused("\x0b", 1, ERR_PROTOCOL);                                              // a group
	refused("\x02\x00", 2, ERR_PROTOCOL);                                          // field 0
	refused("\x0a\x02\x1a\x05", 4, ERR_PROTOCOL);                                  // inside a pod
	refused("\x0a\x04\x1a\x02\x12\x05", 6, ERR_PROTOCOL);                          // inside a container
	refused("\x0a\x06\x1a\x04\x12\x02\x12\x05", 8, ERR_PROTOCOL);                  // inside devices
	refused("\x0a\x06\x1a\x04\x2a\x02\x22\x05", 8, ERR_PROTOCOL);                  // inside a claim
	refused("\x0a\x08\x1a\x06\x2a\x04\x22\x02\x0a\x05", 10, ERR_PROTOCOL);         // inside its resource
	refused("\x0a\x0a\x1a\x08\x2a\x06\x22\x04\x0a\x02\x0a\x05", 12, ERR_PROTOCOL); // inside its CDI device
	refused("\x0a\x03\x0a\x01\x00", 5, ERR_PROTOCOL);                              // a name with a NUL
	refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, ERR_PROTOCOL); // a number without end
	refused("\x09zzz", 4, ERR_PROTOCOL);
	refused("\x0a\x04\x0a\x02\xc3(", 6, ERR_PROTOCOL); // a name that is not UTF-8
	refused("\x0a\x18\x1a\x16\x12\x14\x0a\x0envidia.com/gpu\x12\x02\xff\xfe", 26, ERR_PROTOCOL); // an id
	refused("\x0a\x18\x1a\x16\x12\x14\x0a\x0envidia.com/gpu\x12\x02G\0", 26, ERR_PROTOCOL);
	struct err e;
	struct pod_map *m = pod_map_parse("", 0, NULL, &e);
	assert_non_null(m);
	assert_int_equal(pod_map_entries(m), 0);
	pod_map_free(m);
}

static void names_ids_and_entries_have_ceilings(void **state)
{
	(void)state;
	char name[POD_NAME_BYTES_MAX + 2], id[POD_DEVICE_BYTES_MAX + 2];
	struct err e = {.kind = ERR_NONE};
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	memset(id, 'i', sizeof id - 1);
	id[sizeof id - 1] = '\0';
	const struct pod_message_holder long_name = {"ns", name, "c", "nvidia.com/gpu", {"GPU-aa"}};
	const struct pod_message_holder long_id = {"ns", "p", "c", "nvidia.com/gpu", {id}};
	assert_null(pod_message_map(&long_name, 1, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_null(pod_message_map(&long_id, 1, &e));
	assert_int_equal(e.kind, ERR_LIMIT);

	const struct pod_message_holder four = {"ns", "p", "c", "nvidia.com/gpu", {"a", "b", "c", "d"}};
	struct buf message;
	buf_init(&message, POD_MESSAGE_BYTES_MAX);
	for (int i = 0; i < POD_MAP_ENTRIES_MAX / 4; i++)
		pod_message_put_pod(&message, &four);
	struct pod_map *m = pod_map_parse(message.data, message.len, NULL, &e);
	assert_non_null(m);
	assert_int_equal(pod_map_entries(m), POD_MAP_ENTRIES_MAX);
	pod_map_free(m);
	pod_message_put_pod(&message, &four);
	assert_null(pod_map_parse(message.data, message.len, NULL, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	buf_done(&message);
}

static void other_resource_names_count_when_given(void **state)
{
	(void)state;
	const struct pod_message_holder h = {"ns", "p", "c", "example.com/gpu-slice", {"GPU-aa::1"}};
	const struct pod_map_options extra = {.extra = {.names = {"example.com/x", "example.com/gpu-slice"}, .n = 2}};
	struct buf message;
	struct err e;
	buf_init(&message, POD_MESSAGE_BYTES_MAX);
	pod_message_put_pod(&message, &h);
	struct pod_map *without = pod_map_parse(message.data, message.len, NULL, &e);
	struct pod_map *with = pod_map_parse(message.data, message.len, &extra, &e);
	assert_true(without && with);
	assert_int_equal(pod_map_entries(without), 0);
	assert_int_equal(pod_map_entries(with), 1);
	pod_map_free(without);
	pod_map_free(with);
	buf_done(&message);
}

// ---- claims of dynamic resource allocation ----

// ClaimResource as Kubernetes 1.31 and later send it; before, driver, pool and device are missing (NULL).
struct claimed {
	const char *cdi[3];
	const char *driver, *pool, *device, *share;
};

// Fields of DynamicResource and ClaimResource: the .proto of Kubernetes 1.27 (class_name = 1), 1.31 (class_name is
// gone, driver, pool and device) and 1.34 (share_id). Only the reply of 1.36 is recorded; the others are built from
// these.
static void put_claim(struct buf *out, const char *class_name, const char *namespace_, const struct claimed *c)
{
	struct buf name, resource, claim, container, pod;
	buf_init(&name, POD_MESSAGE_BYTES_MAX);
	buf_init(&resource, POD_MESSAGE_BYTES_MAX);
	buf_init(&claim, POD_MESSAGE_BYTES_MAX);
	buf_init(&container, POD_MESSAGE_BYTES_MAX);
	buf_init(&pod, POD_MESSAGE_BYTES_MAX);
	const char *const texts[] = {c->driver, c->pool, c->device, c->share};
	for (size_t i = 0; i < 4; i++)
		if (texts[i])
			pod_message_put_text(&resource, (uint32_t)i + 2, texts[i]);
	for (size_t i = 0; i < 3 && c->cdi[i]; i++) {
		name.len = 0;
		pod_message_put_text(&name, 1, c->cdi[i]);
		pod_message_put_field(&resource, 1, name.data, name.len);
	}
	pod_message_put_field(&claim, 4, resource.data, resource.len);
	if (class_name)
		pod_message_put_text(&claim, 1, class_name);
	pod_message_put_text(&claim, 2, "claim");
	pod_message_put_text(&claim, 3, namespace_);
	pod_message_put_text(&container, 1, "c");
	pod_message_put_field(&container, 5, claim.data, claim.len);
	pod_message_put_text(&pod, 1, "p");
	pod_message_put_text(&pod, 2, namespace_);
	pod_message_put_field(&pod, 3, container.data, container.len);
	pod_message_put_field(out, 1, pod.data, pod.len);
	buf_done(&name);
	buf_done(&resource);
	buf_done(&claim);
	buf_done(&container);
	buf_done(&pod);
}

// The GPU without MIG, two of whose instances share a profile, an AMD card.
static const struct device node[] = {
        {.uuid = "GPU-aa", .pci_bus_id = "00000000:C1:00.0", .node = "nvidia1"},
        {.uuid = "GPU-bb", .pci_bus_id = "00000000:C2:00.0", .node = "nvidia2"},
        {.uuid = "GPU-bb", .node = "nvidia2", .mig_id = "3", .mig_uuid = "MIG-3", .mig_profile = "1g.10gb"},
        {.uuid = "GPU-bb", .node = "nvidia2", .mig_id = "4", .mig_uuid = "MIG-4", .mig_profile = "1g.10gb"},
        {.uuid = "GPU-bb", .node = "nvidia2", .mig_id = "5", .mig_uuid = "MIG-5", .mig_profile = "1g.10gb+me"},
        {.uuid = "GPU-bb", .node = "nvidia2", .mig_id = "6", .mig_uuid = "MIG-6", .mig_profile = "2g.20gb"},
        {.pci_bus_id = "0000:03:00.0", .node = "card0"},
};
enum { NODE_DEVICES = sizeof node / sizeof node[0], NONE = 99 };

static void claims_of_every_version_are_understood(void **state)
{
	(void)state;
	static const struct {
		const char *class_name;
		struct claimed claimed;
		size_t holds; // index in node, NONE
	} cases[] = {
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-1", NULL}, 0},
	        {NULL, {{"k8s.gpu.nvidia.com/claim=x-gpu-1"}, "gpu.nvidia.com", "n", "gpu-1", "share"}, 0}, // 1.34
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-11", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-1x", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "", NULL}, NONE},
	        {NULL, {{NULL}, "nic.example.com", "n", "gpu-1", NULL}, NONE},
	        {NULL, {{NULL}, "compute-domain.nvidia.com", "n", "channel-1", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-2-mig-2g20gb-14-4", NULL}, 5},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-2-mig-1g10gb-me-20-6", NULL}, 4},
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-2-mig-1g10gb-19-0", NULL}, NONE}, // two have the profile
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-1-mig-2g20gb-14-4", NULL}, NONE}, // of another GPU
	        {NULL, {{NULL}, "gpu.nvidia.com", "n", "gpu-2-mig-2g20gb", NULL}, NONE},
	        {NULL, {{"x/gpu=GPU-zz", "x/gpu=MIG-5", "x/gpu=GPU-aa"}, "gpu.nvidia.com", "n", "gpu-1", NULL}, 0},
	        {NULL, {{"nvidia.com/gpu=MIG-4"}, "gpu.nvidia.com", "n", "gpu-2-mig-1g10gb-19-0", NULL}, 3},
	        {NULL, {{"a.b/c=all", "a.b/gpu=GPU-AA"}, "gpu.example.com", "n", "board-7", NULL}, 0},
	        {NULL, {{NULL}, "gpu.amd.com", "n", "gpu-0-128", NULL}, 6},
	        {NULL, {{NULL}, "gpu.amd.com", "n", "gpu-1-129", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.intel.com", "n", "0000-03-00-0-0x56c0", NULL}, 6},
	        {NULL, {{NULL}, "gpu.intel.com", "n", "0000-03-00-1-0x56c0", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.intel.com", "n", "0000-03-00-00x56c0", NULL}, NONE},
	        {NULL, {{NULL}, "gpu.intel.com", "n", "0000-03", NULL}, NONE},
	        {"gpu.nvidia.com", {{"nvidia.com/gpu=GPU-aa"}, NULL, NULL, NULL, NULL}, 0}, // 1.27 to 1.30
	        {"gpu.nvidia.com", {{"k8s.gpu.nvidia.com/claim=5a0b"}, NULL, NULL, NULL, NULL}, NONE},
	        {"gpu.nvidia.com", {{"GPU-aa"}, NULL, NULL, NULL, NULL}, NONE}, // not a CDI name
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct pod_share shares[POD_SHARERS_MAX];
		struct err e = {.kind = ERR_NONE};
		struct buf message;
		buf_init(&message, POD_MESSAGE_BYTES_MAX);
		put_claim(&message, cases[i].class_name, "ns", &cases[i].claimed);
		struct pod_map *m = pod_map_parse(message.data, message.len, NULL, &e);
		assert_non_null(m);
		for (size_t at = 0; at < NODE_DEVICES; at++) {
			size_t n = pod_map_find(m, node, NODE_DEVICES, at, shares);
			if (n != (at == cases[i].holds))
				fail_msg("case %zu: device %zu has %zu pods", i, at, n);
			if (n == 0)
				continue;
			assert_string_equal(shares[0].pod, "p");
			assert_string_equal(shares[0].container, "c");
			assert_int_equal(shares[0].replica, -1);
		}
		pod_map_free(m);
		buf_done(&message);
	}
}

static void names_of_devices_count_in_claims_only(void **state)
{
	(void)state;
	static const struct pod_message_holder h = {"ns", "p", "c", "nvidia.com/gpu", {"gpu-1"}};
	struct pod_share shares[POD_SHARERS_MAX];
	struct err e;
	struct pod_map *m = pod_message_map(&h, 1, &e);
	assert_int_equal(pod_map_find(m, node, NODE_DEVICES, 0, shares), 0);
	pod_map_free(m);
}

static void options_add_drivers_and_exclude_administrative_access(void **state)
{
	(void)state;
	const struct pod_map_options options = {.extra = {{"gpu.example.com"}, 1},
	                                        .admin_namespaces = {{"x", "monitoring"}, 2}};
	const struct claimed claimed = {{NULL}, "gpu.example.com", "n", "gpu-1", NULL};
	static const struct {
		const char *namespace_;
		bool has_options;
		size_t n;
	} cases[] = {{"ml", true, 1}, {"ml", false, 0}, {"monitoring", true, 0}};
	for (size_t i = 0; i < 3; i++) {
		struct err e;
		struct buf message;
		buf_init(&message, POD_MESSAGE_BYTES_MAX);
		put_claim(&message, NULL, cases[i].namespace_, &claimed);
		struct pod_map *m =
		        pod_map_parse(message.data, message.len, cases[i].has_options ? &options : NULL, &e);
		assert_int_equal(pod_map_entries(m), cases[i].n);
		pod_map_free(m);
		buf_done(&message);
	}
}

// The kubelet of Kubernetes 1.36.3 and the example DRA driver 0.4.0 with four devices: a claim of a pod's own, one that
// two pods share, one for an extended resource, and one with administrative access to all devices.
static void recorded_reply_is_understood(void **state)
{
	(void)state;
	static const struct {
		const char *pods[POD_SHARERS_MAX];
		size_t n;
	} wanted[] = {{{"own"}, 1}, {{"share1", "share2"}, 2}, {{"ext"}, 1}, {{NULL}, 0}};
	const struct pod_map_options options = {.admin_namespaces = {{"admin"}, 1}};
	char bytes[4096], self[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0'; // the reply lies next to this program
	assert_true(snprintf(path, sizeof path, "%s/kubelet-1.36-claims", self) < PATH_MAX);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t len = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	struct device gpus[4] = {{.node = "nvidia0"}, {.node = "nvidia1"}, {.node = "nvidia2"}, {.node = "nvidia3"}};
	struct pod_share shares[POD_SHARERS_MAX];
	struct err e;
	struct pod_map *m = pod_map_parse(bytes, len, &options, &e), *all = pod_map_parse(bytes, len, NULL, &e);
	assert_true(m && all);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pod_map_find(m, gpus, 4, i, shares), wanted[i].n);
		for (size_t k = 0; k < wanted[i].n; k++) {
			assert_string_equal(shares[k].pod, wanted[i].pods[k]);
			assert_string_equal(shares[k].container, "trainer");
			assert_string_equal(shares[k].namespace_, "default");
		}
		assert_int_equal(pod_map_find(all, gpus, 4, i, shares), wanted[i].n + 1);
		assert_string_equal(shares[0].pod, "monitor"); // of namespace admin
	}
	pod_map_free(m);
	pod_map_free(all);
}

// ---- live: one answer of a peer, and time that is moved by hand ----

struct peer {
	struct event_base *loop;
	struct evconnlistener *listener;
	const struct buf *reply; // sent to each client; empty: the connection is closed
	int fd;                  // of the last one, kept open; -1: none
};

static void on_peer(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct peer *peer = arg;
	(void)l, (void)sa, (void)len;
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = fd;
	if (peer->reply->len) {
		assert_int_equal(write(fd, peer->reply->data, peer->reply->len), (ssize_t)peer->reply->len);
	} else {
		close(fd);
		peer->fd = -1;
	}
}

static void put_frame(struct buf *b, unsigned char type, unsigned char flags, unsigned char stream, const void *data,
                      size_t len)
{
	const unsigned char head[] = {0, (unsigned char)(len >> 8), (unsigned char)len, type, flags, 0, 0, 0, stream};
	buf_put(b, head, sizeof head);
	buf_put(b, data, len);
}

// Runs the loop until one more question has ended.
static void ask(struct kubelet_pods *p, struct event_base *loop, struct kubelet_pods_status *st)
{
	kubelet_pods_get_status(p, st);
	uint64_t before = st->polls;
	for (int i = 0; i < 60000 && st->polls == before; i++) {
		const struct timespec ms = {.tv_nsec = 1000000};
		event_base_loop(loop, EVLOOP_NONBLOCK);
		nanosleep(&ms, NULL);
		kubelet_pods_get_status(p, st);
	}
	assert_true(st->polls > before);
}

static bool is_held(struct kubelet_pods *p)
{
	struct pod_share shares[POD_SHARERS_MAX];
	const struct pod_map *m = kubelet_pods_acquire(p);
	size_t n = m ? pod_map_find(m, &gpu, 1, 0, shares) : 0;
	kubelet_pods_release(p, n);
	return n == 1;
}

static void last_map_is_believed_until_it_is_too_old(void **state)
{
	(void)state;
	static const struct pod_message_holder h = {"ns", "p", "c", "nvidia.com/gpu", {"GPU-aa"}};
	char path[] = "/tmp/gpuscale-pods-XXXXXX";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct buf message, reply, none;
	struct clock clock;
	struct kubelet_pods_status st;
	struct err e;
	assert_non_null(mkdtemp(path));
	snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", path);
	buf_init(&message, POD_MESSAGE_BYTES_MAX);
	buf_init(&reply, POD_MESSAGE_BYTES_MAX);
	buf_init(&none, 1);
	pod_message_put_pod(&message, &h);
	assert_true(message.len < 256);
	put_frame(&reply, 4, 0, 0, NULL, 0);
	put_frame(&reply, 1, 4, 1, "\x88", 1); // :status 200
	const unsigned char prefix[] = {0, 0, 0, 0, (unsigned char)message.len};
	put_frame(&reply, 0, 0, 1, prefix, sizeof prefix);
	put_frame(&reply, 0, 0, 1, message.data, message.len);
	static const char trailers[] = "\0\13grpc-status\0010";
	put_frame(&reply, 1, 5, 1, trailers, sizeof trailers - 1);

	struct peer peer = {.loop = event_base_new(), .reply = &reply, .fd = -1};
	peer.listener = evconnlistener_new_bind(peer.loop, on_peer, &peer, LEV_OPT_CLOSE_ON_FREE, -1,
	                                        (struct sockaddr *)&address, sizeof address);
	assert_non_null(peer.listener);
	clock_init_manual(&clock, 0);
	const struct kubelet_pods_options o = {.loop = peer.loop,
	                                       .clock = &clock,
	                                       .socket = address.sun_path,
	                                       .interval_ms = 20,
	                                       .timeout_ms = 60000,
	                                       .stale_ms = 60000};
	struct kubelet_pods *p = kubelet_pods_new(&o, &e);
	assert_non_null(p);
	kubelet_pods_get_status(p, &st);
	assert_false(st.has_map);
	assert_int_equal(st.age_ms, -1);
	assert_false(is_held(p));

	ask(p, peer.loop, &st);
	assert_true(st.has_map && st.last_ok && !st.stale);
	assert_int_equal(st.entries, 1);
	assert_true(is_held(p));
	kubelet_pods_get_status(p, &st);
	assert_int_equal(st.dropped, 1); // as passed to kubelet_pods_release

	peer.reply = &none; // no replies from here on
	ask(p, peer.loop, &st);
	assert_true(st.errors > 0 && !st.last_ok && !st.stale);
	clock_advance_ms(&clock, 60000);
	kubelet_pods_get_status(p, &st);
	assert_int_equal(st.age_ms, 60000);
	assert_true(is_held(p));
	clock_advance_ms(&clock, 1);
	kubelet_pods_get_status(p, &st);
	assert_true(st.stale);
	assert_false(is_held(p));

	peer.reply = &reply;
	ask(p, peer.loop, &st);
	if (!st.last_ok) // the request in flight
		ask(p, peer.loop, &st);
	assert_true(st.last_ok && !st.stale && st.age_ms == 0);
	assert_true(is_held(p));
	kubelet_pods_free(p);
	if (peer.fd >= 0)
		close(peer.fd);
	evconnlistener_free(peer.listener);
	event_base_free(peer.loop);
	unlink(address.sun_path);
	rmdir(path);
	buf_done(&message);
	buf_done(&reply);
}

static void path_that_fits_no_socket_is_refused(void **state)
{
	(void)state;
	char path[200];
	struct clock clock;
	struct err e = {.kind = ERR_NONE};
	struct event_base *loop = event_base_new();
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	clock_init_manual(&clock, 0);
	const struct kubelet_pods_options o = {.loop = loop, .clock = &clock, .socket = path};
	assert_null(kubelet_pods_new(&o, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	event_base_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_way_to_name_a_device_is_understood),
	        cmocka_unit_test(pod_stands_once_however_much_it_holds),
	        cmocka_unit_test(finished_pod_gives_way_to_the_next_one),
	        cmocka_unit_test(more_sharers_than_the_ceiling_are_counted),
	        cmocka_unit_test(invalid_reply_is_refused),
	        cmocka_unit_test(names_ids_and_entries_have_ceilings),
	        cmocka_unit_test(other_resource_names_count_when_given),
	        cmocka_unit_test(claims_of_every_version_are_understood),
	        cmocka_unit_test(names_of_devices_count_in_claims_only),
	        cmocka_unit_test(options_add_drivers_and_exclude_administrative_access),
	        cmocka_unit_test(recorded_reply_is_understood),
	        cmocka_unit_test(last_map_is_believed_until_it_is_too_old),
	        cmocka_unit_test(path_that_fits_no_socket_is_refused),
	};
	signal(SIGPIPE, SIG_IGN); // as every program that uses sockets here
	return cmocka_run_group_tests(tests, NULL, NULL);
}
