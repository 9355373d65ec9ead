// SPDX-License-Identifier: Apache-2.0
// Goal of this test: of a PartialObjectMetadataList each pod is read with its UID and the selected labels, in pieces of
// any size; every other reply is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/apiserver/pod_metadata.h"

#define TEXT_BYTES (1024 * 1024)

static int on_pod(void *arg, const struct metadata_list_item *pod, struct err *e)
{
	struct buf *out = arg;
	buf_printf(out, "%s/%s=%s[%s,%s] ", pod->namespace_, pod->name, pod->uid, pod->labels[0], pod->labels[1]);
	return strcmp(pod->name, "stop") == 0 ? err_set(e, ERR_REJECTED, "stopped") : 0;
}

// Decodes `text` in pieces of `piece` bytes, with the labels app and example.com/Team.
static int decode(const char *text, size_t piece, struct buf *out, struct err *e)
{
	struct pod_labels labels;
	struct metadata_list l;
	char list[] = "app,example.com/Team";
	size_t len = strlen(text);
	int rc = pod_labels_parse(&labels, list, e);
	assert_int_equal(rc, 0);
	err_clear(e);
	metadata_list_init(&l, &labels, on_pod, out);
	for (size_t at = 0; rc == 0 && at < len; at += piece)
		rc = metadata_list_feed(&l, text + at, piece < len - at ? piece : len - at, e);
	if (rc == 0)
		rc = json_scan_finish(&l.scan.json, e);
	watch_scan_done(&l.scan);
	return rc;
}

#define HEAD                                                                                                           \
	"{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/"                                        \
	"v1\",\"metadata\":{\"name\":\"x\"},\"items\":["
#define POD(text) "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"u-1\"" text "}}"

static void pods_are_read_in_pieces_of_any_size(void **state)
{
	(void)state;
	static const struct {
		const char *text, *pods;
	} rows[] = {
	        {HEAD "]}", ""},
	        {"{\"kind\":\"PartialObjectMetadataList\",\"items\":null}", ""},
	        {HEAD POD("") "]}", "ml/a=u-1[,] "},
	        {HEAD POD(",\"labels\":null") "," POD(",\"labels\":{}") "]}", "ml/a=u-1[,] ml/a=u-1[,] "},
	        // A label of one pod is not that of the next, and a key is compared as a whole.
	        {HEAD POD(",\"labels\":{\"app\":\"x\",\"apple\":\"y\",\"example.com/Team\":\"q\\\"\\u00e9\"}") "," POD(
	                 "") "]}",
	         "ml/a=u-1[x,q\"\xc3\xa9] ml/a=u-1[,] "},
	        // Names elsewhere are not those of the pod.
	        {HEAD
	         "{\"spec\":{\"name\":\"s\",\"labels\":{\"app\":\"s\"}},\"metadata\":{\"annotations\":{\"app\":\"n\","
	         "\"name\":\"n\"},\"ownerReferences\":[{\"name\":\"o\",\"uid\":\"o\"}],\"managedFields\":[{\"f:"
	         "labels\":"
	         "{\"app\":\"m\"}}],\"uid\":\"u\",\"name\":\"b\",\"namespace\":\"c\"},\"uid\":\"no\",\"labels\":{"
	         "\"app\":1}}]}",
	         "c/b=u[,] "},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t piece = 1; piece < 40; piece++) {
			struct buf out;
			struct err e;
			buf_init(&out, TEXT_BYTES);
			if (decode(rows[i].text, piece, &out, &e) < 0)
				fail_msg("row %zu: %s", i, e.msg);
			assert_string_equal(buf_str(&out), rows[i].pods);
			buf_done(&out);
		}
}

static void refuse(const char *text, enum err_kind kind, const char *part)
{
	struct buf out;
	struct err e;
	buf_init(&out, TEXT_BYTES);
	assert_int_equal(decode(text, 7, &out, &e), -1);
	if (e.kind != kind || !strstr(e.msg, part))
		fail_msg("%s\ngot: %s", text, e.msg);
	buf_done(&out);
}

static void other_reply_is_refused(void **state)
{
	(void)state;
	refuse("", ERR_PROTOCOL, "JSON");
	refuse("<html>", ERR_PROTOCOL, "JSON");
	refuse("[]", ERR_PROTOCOL, "expected a JSON object");
	refuse("{\"kind\":\"PartialObjectMetadataList\"}", ERR_PROTOCOL, "with items");
	refuse("{\"kind\":\"PartialObjectMetadataList\",\"items\":{}}", ERR_PROTOCOL, "with items");
	refuse("{\"kind\":\"Status\",\"items\":null}", ERR_PROTOCOL, "not a PartialObjectMetadataList");
	refuse(HEAD, ERR_PROTOCOL, "JSON");
	refuse(HEAD POD(""), ERR_PROTOCOL, "JSON");
	refuse(HEAD "7]}", ERR_PROTOCOL, "not an object");
	refuse(HEAD "[]]}", ERR_PROTOCOL, "not an object");
	refuse(HEAD "{}]}", ERR_PROTOCOL, "lacks its namespace");
	refuse(HEAD "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\"}}]}", ERR_PROTOCOL, "lacks its namespace");
	refuse(HEAD "{\"metadata\":{\"name\":7}}]}", ERR_PROTOCOL, "the name of a pod of the reply is not a string");
	refuse(HEAD POD(",\"labels\":{\"app\":7}") "]}", ERR_PROTOCOL, "a label of a pod of the reply is not a string");
	refuse(HEAD "{\"metadata\":{\"namespace\":\"n\",\"name\":\"stop\",\"uid\":\"u\"}}]}", ERR_REJECTED, "stopped");
}

// A list of whole pods, as a server without metadata-only replies sends it, is refused at its kind: the specs with
// their environment variables are not read.
static void list_of_whole_pods_is_refused_before_its_items(void **state)
{
	(void)state;
	refuse("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[", ERR_PROTOCOL,
	       "not a PartialObjectMetadataList");
	refuse("{\"items\":[", ERR_PROTOCOL, "not a PartialObjectMetadataList");
}

static void ceilings_hold(void **state)
{
	(void)state;
	struct buf text;
	char value[POD_NAME_BYTES_MAX + 2];
	memset(value, 'v', sizeof value);
	static const struct {
		const char *before, *after;
		int max;
	} rows[] = {
	        {HEAD POD(",\"labels\":{\"app\":\""), "\"}}}]}", POD_LABEL_VALUE_BYTES_MAX},
	        {HEAD "{\"metadata\":{\"namespace\":\"n\",\"uid\":\"u\",\"name\":\"", "\"}}]}", POD_NAME_BYTES_MAX},
	        {HEAD "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"", "\"}}]}", POD_UID_BYTES_MAX},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int more = 0; more < 2; more++) {
			struct buf out;
			struct err e;
			// The row with POD() has its closing brackets after the value.
			size_t before = strlen(rows[i].before) - (i == 0 ? 2 : 0);
			buf_init(&text, TEXT_BYTES);
			buf_init(&out, TEXT_BYTES);
			buf_printf(&text, "%.*s%.*s%s", (int)before, rows[i].before, rows[i].max + more, value,
			           rows[i].after);
			int rc = decode(buf_str(&text), 7, &out, &e);
			if (rc != -more || (more && e.kind != ERR_LIMIT))
				fail_msg("row %zu: %d %s", i, rc, e.msg);
			buf_done(&text);
			buf_done(&out);
		}
	for (int more = 0; more < 2; more++) {
		struct buf out;
		struct err e;
		buf_init(&text, TEXT_BYTES);
		buf_init(&out, TEXT_BYTES);
		buf_puts(&text, HEAD);
		for (int i = 0; i < METADATA_LIST_PODS_MAX + more; i++)
			buf_printf(&text, "%s" POD(""), i ? "," : "");
		buf_puts(&text, "]}");
		assert_false(text.failed);
		assert_int_equal(decode(buf_str(&text), 4096, &out, &e), -more);
		assert_int_equal(e.kind, more ? ERR_LIMIT : ERR_NONE);
		buf_done(&text);
		buf_done(&out);
	}
}

static void label_names_are_those_of_kube_state_metrics(void **state)
{
	(void)state;
	static const struct {
		const char *key, *name;
	} rows[] = {
	        {"app", "label_app"},
	        {"app.kubernetes.io/name", "label_app_kubernetes_io_name"},
	        {"example.com/teamName", "label_example_com_team_name"},
	        {"GPUType", "label_gputype"},
	        {"a1B-c_d", "label_a1_b_c_d"},
	        {"1", "label_1"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct pod_labels l;
		struct err e;
		char key[64];
		snprintf(key, sizeof key, "%s", rows[i].key);
		assert_int_equal(pod_labels_parse(&l, key, &e), 0);
		assert_int_equal(l.n, 1);
		assert_string_equal(l.names[0], rows[i].name);
	}
}

static void list_of_keys_is_checked(void **state)
{
	(void)state;
	struct pod_labels l;
	struct err e;
	char eight[] = ",a,b,,c,d,e,f,g,h,", nine[] = "a,b,c,d,e,f,g,h,i", twice[] = "a.b,c,a/b", quote[] = "a\"b";
	char longest[POD_LABEL_KEY_BYTES_MAX + 2];
	assert_int_equal(pod_labels_parse(&l, eight, &e), 0);
	assert_int_equal(l.n, POD_LABELS_MAX);
	assert_string_equal(l.keys[7], "h");
	assert_int_equal(pod_labels_parse(&l, nine, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(pod_labels_parse(&l, twice, &e), -1);
	assert_string_equal(e.msg, "\"a.b\" and \"a/b\" are both label_a_b");
	assert_int_equal(pod_labels_parse(&l, quote, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	for (size_t i = 0; i < sizeof longest; i++)
		longest[i] = i % 2 ? 'A' : 'a';
	longest[POD_LABEL_KEY_BYTES_MAX] = '\0';
	assert_int_equal(pod_labels_parse(&l, longest, &e), 0);
	assert_true(strlen(l.names[0]) < POD_LABEL_NAME_BYTES);
	longest[POD_LABEL_KEY_BYTES_MAX] = 'a';
	longest[POD_LABEL_KEY_BYTES_MAX + 1] = '\0';
	assert_int_equal(pod_labels_parse(&l, longest, &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pods_are_read_in_pieces_of_any_size),
	        cmocka_unit_test(other_reply_is_refused),
	        cmocka_unit_test(list_of_whole_pods_is_refused_before_its_items),
	        cmocka_unit_test(ceilings_hold),
	        cmocka_unit_test(label_names_are_those_of_kube_state_metrics),
	        cmocka_unit_test(list_of_keys_is_checked),
	};
	return cmocka_run_group_tests_name("exporter_metadata_list", tests, NULL, NULL);
}
