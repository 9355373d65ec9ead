// SPDX-License-Identifier: Apache-2.0
#include "policies/load/file_set.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/hash_table.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/load/file_list.h"
#include "policies/load/policy_ref.h"
#include "policies/price/price_book.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"
#include "promql/promql_source_file.h"

// ---- one file ----

// The policies of the last valid version of a file, and the errors of the present one. Shared between sets; immutable.
struct loaded_file {
	int refs;
	uint64_t stamp; // stamp of the file on disk (file_list.h)
	char *path;
	struct policy_ref **bodies; // policies of the last valid version
	size_t n;
	size_t n_price_books; // price books in the present version, valid or not
	size_t n_errors;
	char *report;      // "file:line:col: path: message\n" per error; NULL without errors
	UT_hash_handle hh; // by path, in read_files()
};

#define FILE_TREE_MAX   (64 * 1024 * 1024)
#define FILE_REPORT_MAX (1024 * 1024)

static void drop_bodies(struct loaded_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		policy_ref_release(f->bodies[i]);
	free(f->bodies);
	f->bodies = NULL;
	f->n = 0;
}

static void loaded_file_unref(struct loaded_file *f)
{
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
	bool is_replaced = strcmp(name, "GPUIdleRule") == 0;
	schema_report(errors, kind, "kind", "must be " POLICY_KIND ", found %s: %s", name,
	              is_peer       ? "`gpuscale convert` makes a policy of it"
	              : is_replaced ? "write a policy with scaleTargets and idle instead (docs/migrate.md)"
	                            : "keep it in another folder");
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
		    strcmp(kind, POOL_KIND) == 0)
			continue; // other kinds of files that may be in the same folder: for `gpuscale test`, for
			          // --sources, for pool_set.h
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
	struct schema_errors *errors = malloc(sizeof *errors);
	int rc = 0;
	if (!errors)
		return -1;
	arena_init(&tree, FILE_TREE_MAX);
	schema_errors_init(errors, f->path);
	if (doc_read_yaml(&tree, f->path, false, &doc, &e) < 0) {
		print_to(report, "%s\n", e.msg);
		f->n_errors = 1;
	} else {
		rc = decode_all(f, &doc, previous, errors);
		f->n_errors = errors->n + errors->dropped;
		if (f->n_errors)
			schema_errors_print(errors, report);
	}
	free(errors);
	arena_done(&tree);
	return rc == 0 && f->n_errors ? keep_previous(f, previous) : rc;
}

// Reads and decodes the file. `previous` is the result of the last reading, or NULL: unchanged policies are reused, and
// an invalid file keeps all policies of `previous`. The caller owns a reference to the result; NULL when memory is
// exhausted.
static struct loaded_file *loaded_file_read(const char *path, uint64_t stamp, const struct loaded_file *previous)
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

// ---- the set ----

#define LIST_ARENA_MAX (64 * 1024 * 1024)

static int compare_by_name(const void *a, const void *b)
{
	const struct policy *x = *(const struct policy *const *)a, *y = *(const struct policy *const *)b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

static int compare_by_target(const void *a, const void *b)
{
	const struct policy *x = *(const struct policy *const *)a, *y = *(const struct policy *const *)b;
	const struct scale_target *s = &policy_ref_of(x)->target, *t = &policy_ref_of(y)->target;
	int c = strcmp(x->namespace_name, y->namespace_name);
	c = c ? c : strcmp(s->kind, t->kind);
	c = c ? c : strcmp(s->name, t->name);
	c = c ? c : strcmp(s->path ? s->path : "", t->path ? t->path : "");
	return c == 0 && policy_ref_of(x)->fleet.set ? strcmp(x->name, y->name) : c; // fleets may overlap
}

static bool is_in_force(const struct file_set *previous, const struct policy *p)
{
	if (!previous || previous->n_policies == 0)
		return false;
	const struct policy *const *old =
	        bsearch(&p, previous->policies, previous->n_policies, sizeof *previous->policies, compare_by_name);
	return old && strcmp((*old)->file, p->file) == 0;
}

// Returns whether `x` is preferred to `y`: the policy that is already active, else the first in the order of the
// files.
static bool is_preferred(const struct file_set *previous, const struct policy *x, const struct policy *y)
{
	bool old_x = is_in_force(previous, x), old_y = is_in_force(previous, y);
	if (old_x != old_y)
		return old_x;
	int c = strcmp(x->file, y->file);
	return c ? c < 0 : x->line < y->line;
}

// Sorts by `compare` and drops all but one of the policies that compare equal; returns how many were dropped.
static size_t drop_duplicates(struct file_set *set, const struct file_set *previous,
                              int (*compare)(const void *, const void *), const char *what, struct buf *report)
{
	size_t dropped = 0, kept = 0;
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare);
	for (size_t i = 0; i < set->n_policies; i++) {
		const struct policy *p = set->policies[i], *first = kept ? set->policies[kept - 1] : NULL;
		if (first && compare(&first, &p) == 0) {
			if (is_preferred(previous, p, first)) {
				set->policies[kept - 1] = p;
				const struct policy *swap = first;
				first = p;
				p = swap;
			}
			print_to(report, "%s:%d:1: %s %s is already %s %s/%s at %s:%d: remove one of them\n", p->file,
			         p->line, what, compare == compare_by_target ? policy_ref_of(p)->target.name : p->name,
			         compare == compare_by_target ? "scaled by" : "defined as", first->namespace_name,
			         first->name, first->file, first->line);
			dropped++;
			continue;
		}
		set->policies[kept++] = p;
	}
	set->n_policies = kept;
	return dropped;
}

static int collect(struct file_set *set, const struct file_set *previous, struct buf *report, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n_files; i++)
		n += set->files[i]->n;
	if (n > POLICY_SET_MAX)
		return err_set(e, ERR_LIMIT, "%zu policies are more than the ceiling of %d", n, POLICY_SET_MAX);
	set->policies = calloc(n ? n : 1, sizeof *set->policies);
	if (!set->policies)
		return err_set(e, ERR_INTERNAL, "out of memory for %zu policies", n);
	for (size_t i = 0; i < set->n_files; i++)
		for (size_t k = 0; k < set->files[i]->n; k++)
			set->policies[set->n_policies++] = &set->files[i]->bodies[k]->policy;
	set->n_errors += drop_duplicates(set, previous, compare_by_name, "policy", report);
	set->n_errors += drop_duplicates(set, previous, compare_by_target, "target", report);
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare_by_name);
	return 0;
}

// Reads the files of the list; reuses files that have not changed.
static int read_files(struct file_set *set, const struct path_list *list, const struct file_set *previous,
                      struct buf *report, struct err *e)
{
	struct loaded_file *known = NULL, *old, *f;
	int rc = 0;
	for (size_t i = 0; previous && i < previous->n_files; i++) {
		f = previous->files[i];
		HASH_FIND_STR(known, f->path, old);
		if (!old) // the set has a file twice that was named twice
			HASH_ADD_KEYPTR(hh, known, f->path, strlen(f->path), f);
	}
	for (size_t i = 0; rc == 0 && i < list->n; i++) {
		const char *path = list->files[i].path;
		HASH_FIND_STR(known, path, old);
		bool again = previous && previous->is_stale && !file_list_is_unique(path);
		if (old && old->stamp == list->files[i].stamp && !again) {
			f = old;
			f->refs++;
		} else {
			f = loaded_file_read(path, list->files[i].stamp, old);
		}
		if (!f) {
			rc = err_set(e, ERR_INTERNAL, "out of memory reading %s", path);
			break;
		}
		set->files[set->n_files++] = f;
		set->n_errors += f->n_errors;
		set->n_price_books += f->n_price_books;
		set->n_bad_files += f->n_errors > 0;
		if (f->report)
			buf_puts(report, f->report);
	}
	HASH_CLEAR(hh, known);
	return rc;
}

int file_set_load(struct file_set *ret_set, const char *const *paths, size_t n_paths, const struct file_set *previous,
                  struct buf *report, struct err *e)
{
	*ret_set = (struct file_set){0};
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
	struct path_list list;
	int rc = file_list_read(&a, paths, n_paths, &list, e);
	if (rc == 0) {
		ret_set->fingerprint = list.fingerprint;
		ret_set->files = calloc(list.n ? list.n : 1, sizeof *ret_set->files);
		rc = ret_set->files ? read_files(ret_set, &list, previous, report, e)
		                    : err_set(e, ERR_INTERNAL, "out of memory for %zu policy files", list.n);
	}
	if (rc == 0)
		rc = collect(ret_set, previous, report, e);
	arena_done(&a);
	if (rc < 0)
		file_set_done(ret_set);
	return rc;
}

void file_set_done(struct file_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		loaded_file_unref(set->files[i]);
	free(set->files);
	free(set->policies);
	*set = (struct file_set){0};
}

uint64_t file_set_fingerprint(const char *const *paths, size_t n_paths)
{
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
	struct path_list list;
	uint64_t fingerprint = file_list_read(&a, paths, n_paths, &list, NULL) < 0 ? 0 : list.fingerprint;
	arena_done(&a);
	return fingerprint;
}

// ---- one policy of the set ----

#define KEY_BYTES   320 // namespace, slash and name
#define SHOWN_BYTES 120
#define LISTED_MAX  4
#define NEAR_MAX    256 // names compared for "did you mean"

// Writes the name of the policy in the form of `key`, with its namespace or without; returns its length.
static int name_of(const struct policy *p, const char *key, char *out, size_t size)
{
	return strchr(key, '/') ? snprintf(out, size, "%s/%s", p->namespace_name, p->name)
	                        : snprintf(out, size, "%s", p->name);
}

// Writes the first few keys as "serving/a, serving/b, ..".
static void list(const struct file_set *set, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < set->n_policies && i < LISTED_MAX && used < size; i++) {
		const struct policy *p = set->policies[i];
		int n = snprintf(out + used, size - used, "%s%s/%s%s", i ? ", " : "", p->namespace_name, p->name,
		                 i + 1 == LISTED_MAX && set->n_policies > LISTED_MAX ? ", .." : "");
		used += n > 0 ? (size_t)n : 0;
	}
}

static void fail_unknown(const struct file_set *set, const char *key, struct err *e)
{
	static const char none[] = "";
	char keys[NEAR_MAX][64]; // longer names are never suggested
	const char *names[NEAR_MAX] = {0};
	char shown[SHOWN_BYTES], all[256];
	size_t n = 0;
	for (size_t i = 0; i < set->n_policies && n < NEAR_MAX; i++) {
		int len = name_of(set->policies[i], key, keys[n], sizeof keys[n]);
		if (len > 0 && (size_t)len < sizeof keys[n]) {
			names[n] = keys[n];
			n++;
		}
	}
	const char *close = num_closest_name(key, names, n);
	text_show(shown, sizeof shown, key, strlen(key));
	list(set, all, sizeof all);
	err_set(e, ERR_INPUT, "no policy \"%s\"%s%s%s; there is %s", shown, close ? ", did you mean \"" : none,
	        close ? close : none, close ? "\"?" : none, set->n_policies ? all : "none");
}

const struct policy *file_set_pick(const struct file_set *set, const char *key, struct err *e)
{
	const struct policy *found = NULL;
	size_t n = 0;
	for (size_t i = 0; i < set->n_policies; i++) {
		char name[KEY_BYTES] = "";
		if (key && *key)
			name_of(set->policies[i], key, name, sizeof name);
		if (key && strcmp(name, key) != 0)
			continue;
		found = set->policies[i];
		n++;
	}
	if (n == 1)
		return found;
	char all[256];
	list(set, all, sizeof all);
	if (set->n_policies == 0)
		err_set(e, ERR_INPUT, "the set has no policy: name a file or folder with a GPUAutoscaler");
	else if (n == 0)
		fail_unknown(set, key, e);
	else
		err_set(e, ERR_INPUT, "%zu policies to choose from (%s): name one as namespace/name", n, all);
	return NULL;
}
