// SPDX-License-Identifier: Apache-2.0
// Goal: only complete parts of a list and of a stream count. A list without valid items is not an empty
// list, and an event that cannot be used is not gone past.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/cache/watch_private.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define A           "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"12\"}}"
#define META        "\"metadata\":{\"resourceVersion\":\"7\"}"

struct heard {
	int objects, deleted;
};

static void on_object(void *arg, const char *json, size_t len)
{
	((struct heard *)arg)->objects++;
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	((struct heard *)arg)->deleted++;
}

// Feeds the text. 0, or -1 and *e.
static int read_text(struct k8s_watch *w, struct heard *heard, enum watch_scan_mode mode, const char *text,
                     struct err *e)
{
	*heard = (struct heard){0};
	*e = (struct err){0};
	*w = (struct k8s_watch){.path = (char[]){"/p"},
	                        .version = "10",
	                        .callbacks = {.on_object = on_object, .on_deleted = on_deleted},
	                        .arg = heard};
	watch_scan_init(&w->scan, mode, K8S_WATCH_OBJECT_BYTES_MAX,
	                mode == WATCH_SCAN_LIST ? watch_on_list_part : watch_on_event_part, w);
	int rc = watch_scan_feed(&w->scan, text, strlen(text), e);
	if (rc == 0 && w->inner.kind != ERR_NONE) {
		*e = w->inner;
		rc = -1;
	}
	watch_scan_done(&w->scan);
	return rc;
}

static void list_is_whole_or_none(void **state)
{
	static const struct {
		const char *text;
		int objects; // -1: not a list
	} rows[] = {
	        {"{" META ",\"items\":[]}", 0},
	        {"{" META ",\"items\":null}", 0},
	        {"{\"items\":null ," META "}\n", 0},
	        {"{" META ",\"items\":[" A "," A "]}", 2},
	        {"{" META ",\"items\":[ {\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"}}} ]}", 1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"labels\":null,\"x\":\"\\u0000\\ud800\"}}]}", 1},
	        // no items
	        {"{" META "}", -1},
	        {"{\"kind\":\"Status\"," META "}", -1},
	        {"{" META ",\"Items\":[]}", -1},
	        {"{" META ",\"items\":{}}", -1},
	        {"{" META ",\"items\":{\"a\":" A "}}", -1},
	        {"{" META ",\"items\":\"\"}", -1},
	        {"{" META ",\"items\":0}", -1},
	        {"{" META ",\"items\":nul}", -1},
	        {"{" META ",\"items\":nulll}", -1},
	        {"{" META ",\"items\":false}", -1},
	        {"{" META ",\"items\":[],\"items\":[]}", -1},
	        // items that are none
	        {"{" META ",\"items\":[null]}", -1},
	        {"{" META ",\"items\":[" A ",null]}", -1},
	        {"{" META ",\"items\":[7]}", -1},
	        {"{" META ",\"items\":[\"a\"]}", -1},
	        {"{" META ",\"items\":[[]]}", -1},
	        {"{" META ",\"items\":[" A "" A "]}", -1},
	        {"{" META ",\"items\":[" A ",]}", -1},
	        {"{" META ",\"items\":[," A "]}", -1},
	        {"{" META ",\"items\":[{}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":\"a\"}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":[\"name\",\"a\"]}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"\"}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":7}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"labels\":[]}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":7}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":[\"ns\"]}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}]}", 1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":7}}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\"} \"spec\":{}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":}}]}", -1},
	        {"{" META ",\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":}]}", -1},
	        // what is around them
	        {"{\"metadata\":{},\"items\":[]}", -1},
	        {"{\"metadata\":null,\"items\":[]}", -1},
	        {"{\"metadata\":{\"resourceVersion\":7},\"items\":[]}", -1},
	        {"{\"metadata\":{\"resourceVersion\":\"7\" \"continue\":\"x\"},\"items\":[]}", -1},
	        {"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":7},\"items\":[]}", -1},
	        {"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":[\"x\"]},\"items\":[]}", -1},
	        {"{" META ",\"items\":[]}{", -1},
	        {"{" META ",\"items\":[]}{" META ",\"items\":[]}", -1},
	        {"{" META ",\"items\":[]", -1},
	        {"", -1},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct k8s_watch w;
		struct heard heard;
		struct err e;
		int rc = read_text(&w, &heard, WATCH_SCAN_LIST, rows[i].text, &e);
		if (rc == 0)
			rc = watch_check_page(&w, &e);
		free(w.page_next);
		if (rc != (rows[i].objects < 0 ? -1 : 0) || (rc == 0 && heard.objects != rows[i].objects) ||
		    (rc < 0 && e.kind != ERR_PROTOCOL))
			fail_msg("%s: %d, %d objects, %s", rows[i].text, rc, heard.objects, e.msg);
	}
}

static void event_is_used_or_not_skipped(void **state)
{
	static const struct {
		const char *text;
		int objects, deleted; // -1: not an event
	} rows[] = {
	        {"{\"type\":\"ADDED\",\"object\":" A "}", 1, 0},
	        {"{\"object\":" A ",\"type\":\"MODIFIED\"}\n", 1, 0},
	        {"{\"type\":\"DELETED\",\"object\":" A "}", 0, 1},
	        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}", 0, 0},
	        {"{}", -1, 0},
	        {"{\"type\":\"ADDED\"}", -1, 0},
	        {"{\"type\":\"DELETED\",\"object\":null}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":[" A "]}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":\"a\"}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":12}}}", -1, 0},
	        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"12\"},\"spec\":}}",
	         -1, 0},
	        {"{\"type\":\"CHANGED\",\"object\":" A "}", -1, 0},
	        {"{\"type\":7,\"object\":" A "}", -1, 0},
	        {"{\"type\":null,\"object\":" A "}", -1, 0},
	        {"{\"object\":" A "}", -1, 0},
	        {"{\"type\":\"ERROR\",\"object\":{\"code\":500}}", -1, 0},
	        {"{\"type\":\"ERROR\",\"object\":{\"code\":200}}", -1, 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct k8s_watch w;
		struct heard heard;
		struct err e;
		int rc = read_text(&w, &heard, WATCH_SCAN_EVENTS, rows[i].text, &e);
		bool is_used = rows[i].objects >= 0;
		if (rc != (is_used ? 0 : -1) || heard.objects != (is_used ? rows[i].objects : 0) ||
		    heard.deleted != rows[i].deleted || strcmp(w.version, is_used ? "12" : "10") != 0)
			fail_msg("%s: %d, %d and %d objects, version %s, %s", rows[i].text, rc, heard.objects,
			         heard.deleted, w.version, e.msg);
	}
}

// The API server accepts objects of up to 10,000 levels.
static void deep_object_does_not_hide_the_others(void **state)
{
	enum { LEVELS = 9990 };
	struct k8s_watch w;
	struct heard heard;
	struct err e;
	char *text = calloc(1, 4 * LEVELS + 512), *to;
	assert_non_null(text);
	to = text + snprintf(text, 256, "{%s,\"items\":[%s,{\"metadata\":{\"name\":\"deep\"},\"spec\":", META, A);
	for (int i = 0; i < LEVELS; i++)
		*to++ = '[';
	for (int i = 0; i < LEVELS; i++)
		*to++ = ']';
	memcpy(to, "}," A "]}", sizeof "}," A "]}");
	if (read_text(&w, &heard, WATCH_SCAN_LIST, text, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(heard.objects, 3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(list_is_whole_or_none),
	        cmocka_unit_test(event_is_used_or_not_skipped),
	        cmocka_unit_test(deep_object_does_not_hide_the_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
