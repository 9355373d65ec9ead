// SPDX-License-Identifier: Apache-2.0
// The API server's list of pods: the first byte is the size of the pieces, the rest the reply. Whatever the bytes are,
// pieces and the whole give the same pods, every pod has its names and a UID within their ceilings, and a reply that is
// not accepted has an error.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/text.h"
#include "exporter/apiserver/pod_metadata.h"

struct pods {
	uint64_t hash;
	size_t n;
};

static void check_text(struct pods *pods, const char *s, size_t size)
{
	size_t len = strnlen(s, size);
	assert(len < size);
	for (size_t at = 0, n; at < len; at += n)
		assert((n = utf8_char_len(s + at, len - at)) > 0);
	pods->hash = hash_text(pods->hash, s);
}

static int on_pod(void *arg, const struct metadata_list_item *pod, struct err *e)
{
	struct pods *pods = arg;
	(void)e;
	assert(++pods->n <= METADATA_LIST_PODS_MAX);
	assert(pod->namespace_[0] && pod->name[0] && pod->uid[0]);
	check_text(pods, pod->namespace_, sizeof pod->namespace_);
	check_text(pods, pod->name, sizeof pod->name);
	check_text(pods, pod->uid, sizeof pod->uid);
	for (size_t i = 0; i < POD_LABELS_MAX; i++)
		check_text(pods, pod->labels[i], sizeof pod->labels[i]);
	return 0;
}

static int decode(const uint8_t *data, size_t size, size_t piece, struct pods *pods)
{
	char list[] = "app,example.com/team";
	struct pod_labels labels;
	struct metadata_list l;
	struct err e = {.kind = ERR_NONE};
	int rc = pod_labels_parse(&labels, list, &e);
	*pods = (struct pods){.hash = HASH_START};
	metadata_list_init(&l, &labels, on_pod, pods);
	for (size_t at = 0; rc == 0 && at < size; at += piece)
		rc = metadata_list_feed(&l, (const char *)data + at, piece < size - at ? piece : size - at, &e);
	if (rc == 0)
		rc = json_scan_finish(&l.scan.json, &e);
	assert((rc == 0) == (e.kind == ERR_NONE) && (rc == 0 || e.msg[0]));
	watch_scan_done(&l.scan);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pods whole, pieces;
	if (size == 0)
		return 0;
	int a = decode(data + 1, size - 1, size, &whole),
	    b = decode(data + 1, size - 1, (size_t)data[0] % 64 + 1, &pieces);
	assert(a == b && whole.n == pieces.n && whole.hash == pieces.hash);
	return 0;
}
