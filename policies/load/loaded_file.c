// SPDX-License-Identifier: Apache-2.0
#include "policies/load/loaded_file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/load/policy_ref.h"
#include "policies/load/policy_zones.h"
#include "policies/price/price_book.h"
#include "policies/price/price_schema.h"
#include "policies/schema/idle_rule_schema.h"
#include "policies/schema/policy_decode.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"
#include "promql/promql_source_file.h"

#define FILE_TREE_MAX   (64 * 1024 * 1024)
#define FILE_REPORT_MAX (1024 * 1024)

struct loaded_file *loaded_file_ref(struct loaded_file *f)
{
	f->refs++;
	return f;
}

static void drop_bodies(struct loaded_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		policy_ref_release(f->bodies[i]);
	free(f->bodies);
	f->bodies = NULL;
	f->n = 0;
}

void loaded_file_unref(struct loaded_file *f)
{
	if (!f)
		return;
	assert(f->refs > 0);
	if (--f->refs > 0)
		return;
	drop_bodies(f);
	free(f->report);
	free(f->path);
	free(f);
}

// Returns the policy of `previous` that was read from an equal document. The order rarely changes, so the search
// continues from *at.
static struct policy_ref *find_equal(const struct loaded_file *previous, uint64_t fingerprint, size_t *at)
{
	for (size_t k = 0; previous && k < previous->n; k++) {
		size_t i = (*at + k) % previous->n;
		if (previous->bodies[i]->fingerprint != fingerprint)
			continue;
		*at = i + 1;
		return previous->bodies[i];
	}
	return NULL;
}

// A value that is not a text is kept as one that no reader accepts.
static const char *copy_text(const struct doc_node *map, const char *key, struct arena *a)
{
	const struct doc_node *node = doc_get(map, key);
	return arena_strdup(a, !node || node->kind == DOC_NULL ? "" : node->kind == DOC_SCALAR ? node->text : "?");
}

static struct policy_ref *decode(const char *path, const struct doc_node *root, uint64_t fingerprint,
                                 struct schema_errors *errors)
{
	struct policy_ref *b = policy_ref_new();
	if (!b)
		return NULL;
	b->fingerprint = fingerprint;
	struct policy_document document = {0};
	policy_decode(root, &document, &b->arena, errors);
	policy_ref_set(b, &document);
	policy_zones_load(&b->policy, root, &b->arena, errors);
	const struct doc_node *status = doc_get(root, "status");
	b->policy.file = arena_strdup(&b->arena, path);
	b->objective_record = copy_text(status, "objectiveRecord", &b->arena);
	b->startup_seconds = copy_text(status, "startupSeconds", &b->arena);
	if (b->policy.file && b->objective_record && b->startup_seconds)
		return b;
	policy_ref_release(b);
	return NULL;
}

// Reports an object of another kind as such, and not by its missing fields. A kind similar to GPUAutoscaler is a policy
// with a misspelt kind.
static bool is_foreign(const struct doc_node *root, struct schema_errors *errors)
{
	static const char *const ours[] = {POLICY_KIND};
	const struct doc_node *kind = doc_get(root, "kind");
	if (root->kind != DOC_MAP)
		return false;
	if (!kind && !doc_get(root, "apiVersion") && !doc_get(root, "spec")) {
		schema_report(errors, root, "",
		              "is not a policy: it has no apiVersion, kind and spec; move it to another folder");
		return true;
	}
	const char *name = doc_get_text(root, "kind", "");
	if (!name[0] || strcmp(name, POLICY_KIND) == 0 || num_closest_name(name, ours, 1))
		return false;
	bool is_peer = strcmp(name, "HorizontalPodAutoscaler") == 0 || strcmp(name, "ScaledObject") == 0 ||
	               strcmp(name, "WatermarkPodAutoscaler") == 0;
	schema_report(errors, kind, "kind", "must be " POLICY_KIND ", found %s: %s", name,
	              is_peer ? "`gpuscale convert` makes a policy of it" : "keep it in another folder");
	return true;
}

// A misspelt kind is decoded, too, so that the error names the right one.
static bool is_price_book(const char *kind)
{
	static const char *const ours[] = {PRICE_BOOK_KIND};
	return kind[0] && num_closest_name(kind, ours, 1) != NULL;
}

static void check_price_book(const struct doc_node *root, struct schema_errors *errors)
{
	struct price_book book = {0};
	struct arena a;
	arena_init(&a, FILE_TREE_MAX);
	price_book_decode(root, &book, &a, errors);
	arena_done(&a);
}

// Returns -1 when memory is exhausted.
static int decode_all(struct loaded_file *f, const struct doc_file *doc, const struct loaded_file *previous,
                      struct schema_errors *errors)
{
	size_t at = 0;
	f->bodies = calloc(doc->n_roots ? doc->n_roots : 1, sizeof *f->bodies);
	if (!f->bodies)
		return -1;
	for (size_t i = 0; i < doc->n_roots; i++) {
		const struct doc_node *root = doc->roots[i];
		const char *kind = doc_get_text(root, "kind", "");
		if (strcmp(kind, "PolicyTest") == 0 || strcmp(kind, PROMQL_SOURCES_KIND) == 0 ||
		    strcmp(kind, POOL_KIND) == 0 || strcmp(kind, IDLE_RULE_KIND) == 0)
			continue; // other kinds of files that may be in the same folder: for `gpuscale test`, for
			          // --sources, for pool_set.h, for idle_rule_set.h
		if (is_price_book(kind)) {
			check_price_book(root, errors);
			f->n_price_books++;
			continue;
		}
		if (is_foreign(root, errors))
			continue;
		uint64_t fingerprint = policy_fingerprint(root, 0);
		struct policy_ref *same = find_equal(previous, fingerprint, &at);
		struct policy_ref *b = same ? policy_ref_acquire(same) : decode(f->path, root, fingerprint, errors);
		if (!b)
			return -1;
		b->policy.line = root->line; // for messages only, so that other holders of the policy may see it change
		f->bodies[f->n++] = b;
	}
	return 0;
}

// An invalid file keeps the policies of its last valid version.
static int keep_previous(struct loaded_file *f, const struct loaded_file *previous)
{
	drop_bodies(f);
	if (!previous || previous->n == 0)
		return 0;
	f->bodies = calloc(previous->n, sizeof *f->bodies);
	if (!f->bodies)
		return -1;
	for (; f->n < previous->n; f->n++)
		f->bodies[f->n] = policy_ref_acquire(previous->bodies[f->n]);
	return 0;
}

static int read_into(struct loaded_file *f, const struct loaded_file *previous, struct buf *report)
{
	struct err e;
	struct arena tree; // the document is needed only while decoding
	struct doc_file doc;
	arena_init(&tree, FILE_TREE_MAX);
	if (doc_read_yaml(&tree, f->path, &doc, &e) < 0) {
		print_to(report, "%s\n", e.msg);
		f->n_errors = 1;
		arena_done(&tree);
		return keep_previous(f, previous);
	}
	struct schema_errors *errors = malloc(sizeof *errors);
	int rc = -1;
	if (errors) {
		schema_errors_init(errors, f->path);
		rc = decode_all(f, &doc, previous, errors);
		f->n_errors = errors->n + errors->dropped;
		if (f->n_errors)
			schema_errors_print(errors, report);
	}
	free(errors);
	arena_done(&tree);
	if (rc == 0 && f->n_errors)
		rc = keep_previous(f, previous);
	return rc;
}

struct loaded_file *loaded_file_read(const char *path, uint64_t stamp, const struct loaded_file *previous)
{
	struct loaded_file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	struct buf report;
	buf_init(&report, FILE_REPORT_MAX);
	f->refs = 1;
	f->stamp = stamp;
	f->path = strdup(path);
	bool ok = f->path && read_into(f, previous, &report) == 0;
	if (ok && report.len > 0) {
		f->report = strdup(buf_str(&report));
		ok = f->report != NULL;
	}
	buf_done(&report);
	if (ok)
		return f;
	loaded_file_unref(f);
	return NULL;
}
