// SPDX-License-Identifier: Apache-2.0
// What a watch makes of lists and streams, on any bytes: the owner is given only whole objects that can be found again;
// a list that is accepted is, if it is JSON, exactly what its tree says; an event that is not used is not gone past.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "k8s/cache/watch_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
	size_t objects;
};

static void on_object(void *arg, const char *json, size_t len)
{
	struct heard *h = arg;
	char *copy = malloc(len); // of its own, so that reading past it is seen
	memcpy(copy, json, len);
	struct json_span o = {copy, len}, metadata = json_span_get(o, "metadata"), labels;
	char name[WATCH_NAME_BYTES];
	assert(json_span_is_whole(o) && json_span_kind(o) == '{' && json_span_kind(metadata) == '{');
	assert(json_span_text(json_span_get(metadata, "name"), name, sizeof name) > 0);
	labels = json_span_get(metadata, "labels");
	assert(strchr("{n", json_span_kind(labels)) != NULL); // '\0', absent, among them
	h->objects++;
	free(copy);
}

static int feed(struct k8s_watch *w, enum watch_scan_mode mode, const char *text, size_t len, size_t step)
{
	struct err e = {0};
	int rc = 0;
	watch_scan_init(&w->scan, mode, K8S_WATCH_OBJECT_BYTES_MAX,
	                mode == WATCH_SCAN_LIST ? watch_on_list_part : watch_on_event_part, w);
	for (size_t at = 0; at < len && rc == 0 && w->inner.kind == ERR_NONE; at += step)
		rc = watch_scan_feed(&w->scan, text + at, len - at < step ? len - at : step, &e);
	if (w->inner.kind != ERR_NONE)
		assert(w->inner.msg[0]);
	rc = rc < 0 || w->inner.kind != ERR_NONE || !json_scan_is_between(&w->scan.json) ? -1 : 0;
	if (rc == 0 && mode == WATCH_SCAN_LIST)
		rc = watch_check_page(w, &e);
	watch_scan_done(&w->scan);
	return rc;
}

static void compare_with_tree(const char *text, size_t len, const struct k8s_watch *w, const struct heard *h)
{
	cJSON *root = json_read(text, len, NULL);
	if (root && !memchr(text, '\\', len) && cJSON_GetArraySize(root) == 2) { // no name twice
		const cJSON *items = json_get(root, "items"), *metadata = json_get(root, "metadata");
		const char *next = json_get_str(metadata, "continue", "");
		assert(cJSON_IsArray(items) || cJSON_IsNull(items));
		assert((size_t)cJSON_GetArraySize(items) == h->objects + w->stats.too_large);
		assert(strcmp(w->page_version, json_get_str(metadata, "resourceVersion", "")) == 0);
		assert(next[0] ? w->page_next && strcmp(w->page_next, next) == 0 : !w->page_next);
	}
	cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {SIZE_MAX / 2, 5};
	const char *text = (const char *)data;
	for (size_t i = 0; i < 4; i++) {
		enum watch_scan_mode mode = i < 2 ? WATCH_SCAN_LIST : WATCH_SCAN_EVENTS;
		struct heard heard = {0};
		struct k8s_watch w = {.path = (char[]){"/p"},
		                      .version = "10",
		                      .callbacks = {.on_object = on_object, .on_deleted = on_object},
		                      .arg = &heard};
		int rc = feed(&w, mode, text, size, steps[i % 2]);
		assert(memchr(w.version, '\0', sizeof w.version) && w.version[0]);
		if (mode == WATCH_SCAN_LIST) {
			assert(w.page_objects >= heard.objects && strcmp(w.version, "10") == 0);
			if (rc == 0)
				compare_with_tree(text, size, &w, &heard);
		} else {
			assert(w.stats.events == heard.objects);
			if (w.stats.events + w.stats.bookmarks == 0)
				assert(strcmp(w.version, "10") == 0);
		}
		free(w.page_next);
	}
	return 0;
}
