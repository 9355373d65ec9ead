// SPDX-License-Identifier: Apache-2.0
#include "controller/source/policy_object.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_span.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/convert/convert.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define TREE_BYTES_MAX    ((size_t)64 * 1024 * 1024)
#define TRIGGER_TYPES_MAX 1024 // bytes of status.triggersTypes
#define TRIGGERS_SHOWN    64   // triggers whose types it names

// ---- GPUAutoscalers ----

// Keeps only the children of map with these names. Changes the tree.
static void keep(struct doc_node *map, const char *const *names, size_t n_names)
{
	struct doc_node **slot = &map->child;
	if (map->kind != DOC_MAP)
		return;
	map->n_children = 0;
	for (struct doc_node *c = map->child, *next; c; c = next) {
		next = c->next;
		bool is_kept = false;
		for (size_t i = 0; i < n_names; i++)
			is_kept = is_kept || strcmp(c->key, names[i]) == 0;
		if (!is_kept)
			continue;
		*slot = c;
		slot = &c->next;
		map->n_children++;
	}
	*slot = NULL;
}

// Returns whether s can be the name of an object, and is safe in a path of the API server.
static bool is_object_name(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);
	return len > 0 && len <= max && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len && s[0] != '.';
}

static int keep_texts(const char *const texts[], struct arena *a, struct policy_object *ret_object)
{
	const char **const slots[] = {&ret_object->namespace_name, &ret_object->name, &ret_object->uid};
	const size_t max[] = {POLICY_OBJECT_NAMESPACE_MAX, POLICY_OBJECT_NAME_MAX, 0};
	for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
		const char *text = max[i] && !is_object_name(texts[i], max[i]) ? "" : texts[i];
		const char *copy = arena_strdup(a, text);
		if (!copy)
			return -1;
		*slots[i] = copy;
	}
	return 0;
}

static const char *const time_keys[] = {"creationTimestamp", "deletionTimestamp"};

// Leaves *ret_ms unchanged when the key is absent or null. An invalid time is an error: an object that is being deleted
// must not pass for one that is not, nor a young object for the oldest.
static void read_time(const struct doc_node *metadata, const char *key, int64_t *ret_ms, struct schema_errors *errors)
{
	const struct doc_node *node = doc_get(metadata, key);
	char path[SCHEMA_PATH_BYTES];
	if (!node || node->kind == DOC_NULL ||
	    (node->kind == DOC_SCALAR && num_parse_rfc3339_ms(node->text, node->text_len, ret_ms, NULL) == 0))
		return;
	snprintf(path, sizeof path, "metadata.%s", key);
	schema_report(errors, node, path, "must be a time, as the API server writes it");
}

static int read_metadata(const struct doc_node *metadata, struct arena *a, struct policy_object *ret_object,
                         struct schema_errors *errors)
{
	const char *const texts[] = {doc_get_text(metadata, "namespace", ""), doc_get_text(metadata, "name", ""),
	                             doc_get_text(metadata, "uid", "")};
	const struct doc_node *generation = doc_get(metadata, "generation");
	if (keep_texts(texts, a, ret_object) < 0)
		return -1;
	if (generation && generation->kind != DOC_NULL &&
	    (generation->quoted ||
	     num_parse_i64(generation->text, generation->text_len, 0, INT64_MAX, &ret_object->generation, NULL) < 0))
		schema_report(errors, generation, "metadata.generation", "must be a whole number");
	read_time(metadata, time_keys[0], &ret_object->created_ms, errors);
	read_time(metadata, time_keys[1], &ret_object->deleted_ms, errors);
	return 0;
}

static int64_t time_in_text(struct json_span metadata, const char *key)
{
	char text[NUM_INPUT_BYTES_MAX + 1];
	int64_t ms = 0;
	int len = json_span_text(json_span_get(metadata, key), text, sizeof text);
	return len < 0 || num_parse_rfc3339_ms(text, (size_t)len, &ms, NULL) < 0 ? 0 : ms;
}

// Reads the metadata of an object that json_read() refuses, because a string contains \u0000 or the object is too
// large. The object still exists and must not be mistaken for a deleted one.
static int identify_text(const char *json, size_t len, struct arena *a, struct policy_object *ret_object)
{
	struct json_span object = {json, len}, metadata = json_span_get(object, "metadata");
	struct json_span status = json_span_get(object, "status");
	static const char *const keys[] = {"namespace", "name", "uid"};
	char texts[sizeof keys / sizeof keys[0]][POLICY_OBJECT_NAME_MAX + 1];
	const char *all[sizeof keys / sizeof keys[0]];
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		json_span_text(json_span_get(metadata, keys[i]), texts[i], sizeof texts[i]);
		all[i] = texts[i];
	}
	ret_object->has_status = status.text && status.len > strlen("{}");
	json_span_i64(json_span_get(metadata, "generation"), 0, INT64_MAX, &ret_object->generation);
	ret_object->created_ms = time_in_text(metadata, time_keys[0]);
	ret_object->deleted_ms = time_in_text(metadata, time_keys[1]);
	return keep_texts(all, a, ret_object);
}

static void report_memory(struct schema_errors *errors)
{
	schema_report(errors, NULL, "", "does not fit into the memory allowed");
}

static int decode_tree(struct doc_node *root, struct arena *a, struct policy_object *ret_object,
                       struct policy_document *ret_document, struct schema_errors *errors,
                       struct schema_errors *unknown)
{
	static const char *const root_names[] = {"apiVersion", "kind", "metadata", "spec"};
	static const char *const metadata_names[] = {"name", "namespace", "annotations", "labels"};
	size_t n_root = sizeof root_names / sizeof root_names[0],
	       n_metadata = sizeof metadata_names / sizeof metadata_names[0];
	const struct doc_node *status = doc_get(root, "status");
	size_t before = errors->n + errors->dropped;
	ret_object->has_status = status && status->n_children > 0;
	keep(root, root_names, n_root);
	for (struct doc_node *c = root->child; c; c = c->next)
		if (strcmp(c->key, "metadata") == 0) {
			if (read_metadata(c, a, ret_object, errors) < 0) {
				report_memory(errors);
				return -1;
			}
			keep(c, metadata_names, n_metadata);
		}
	ret_object->fingerprint = policy_fingerprint(root, 0);
	int rc = policy_decode_tolerant(root, ret_document, a, errors, unknown);
	policy_zones_load(&ret_document->policy, root, a, errors);
	return rc < 0 || errors->n + errors->dropped > before ? -1 : 0;
}

int policy_object_decode(const char *json, size_t len, struct arena *a, struct policy_object *ret_object,
                         struct policy_document *ret_document, struct schema_errors *errors,
                         struct schema_errors *unknown)
{
	*ret_object = (struct policy_object){.namespace_name = "", .name = "", .uid = ""};
	*ret_document = (struct policy_document){0};
	struct arena tree; // the document itself is needed only while decoding
	struct doc_node *root;
	struct err e;
	int rc = -1;
	arena_init(&tree, TREE_BYTES_MAX);
	if (doc_from_json(&tree, json, len, &root, &e) < 0) {
		schema_report(errors, NULL, "", "%s", e.msg);
		if (identify_text(json, len, a, ret_object) < 0)
			report_memory(errors);
	} else {
		rc = decode_tree(root, a, ret_object, ret_document, errors, unknown);
	}
	arena_done(&tree);
	return rc;
}

void policy_object_print_errors(const struct schema_errors *errors, struct buf *out)
{
	for (size_t i = 0; i < errors->n; i++)
		buf_printf(out, "%s%s%s%s", i ? "; " : "", errors->items[i].path, errors->items[i].path[0] ? ": " : "",
		           errors->items[i].message);
	if (errors->dropped)
		buf_printf(out, "; %zu more", errors->dropped);
}

// ---- ScaledObjects ----

// "prometheus,cron": each type once, in the order of the first triggers.
static const char *trigger_types(struct arena *a, const struct doc_node *triggers)
{
	struct buf b;
	size_t n = 0;
	buf_init(&b, TRIGGER_TYPES_MAX);
	for (const struct doc_node *t = triggers ? triggers->child : NULL; t && n < TRIGGERS_SHOWN; t = t->next, n++) {
		const char *type = doc_get_text(t, "type", "");
		const struct doc_node *before = triggers->child;
		while (before != t && strcmp(doc_get_text(before, "type", ""), type) != 0)
			before = before->next;
		if (before == t)
			buf_printf(&b, "%s%s", b.len ? "," : "", type);
	}
	const char *text = must_alloc(arena_strdup(a, buf_str(&b)));
	buf_done(&b);
	return text;
}

// The arena of a policy has room for these texts, because the policy itself has as many.
static void set_origin(struct policy_ref *body, const struct conversion *c, const struct doc_node *root)
{
	struct arena *a = &body->arena;
	struct policy_origin *o = must_alloc(arena_alloc(a, sizeof *o));
	o->target_kind = must_alloc(arena_printf(a, "%s.%s", c->target_api_version, c->target_kind));
	o->trigger_types = trigger_types(a, doc_get(doc_get(root, "spec"), "triggers"));
	o->is_paused = c->paused || c->paused_replicas;
	for (size_t i = 0; i < c->n_signals && i < POLICY_SIGNALS_MAX; i++)
		if (c->signals[i].external_name)
			o->metric_names[i] = must_alloc(arena_strdup(a, c->signals[i].external_name));
	body->origin = o;
}

static int decode_policy(struct arena *tree, const struct conversion *c, struct policy_ref *body, struct buf *faults)
{
	struct doc_file file;
	struct err e;
	struct buf text;
	buf_init(&text, CONVERT_TEXT_MAX);
	convert_write(&text, c);
	int rc = text.failed ? err_set(&e, ERR_LIMIT, "the policy has more than %d bytes", CONVERT_TEXT_MAX)
	                     : doc_parse_yaml(tree, "policy", buf_str(&text), text.len, &file, &e);
	buf_done(&text);
	if (rc < 0) {
		buf_puts(faults, e.msg);
		return -1;
	}
	struct policy_document document = {0};
	struct schema_errors *errors = arena_alloc(tree, sizeof *errors);
	if (!errors || file.n_roots != 1) {
		buf_puts(faults, "does not fit into the memory allowed");
		return -1;
	}
	schema_errors_init(errors, "");
	rc = policy_decode(file.roots[0], &document, &body->arena, errors);
	policy_zones_load(&document.policy, file.roots[0], &body->arena, errors);
	policy_ref_set(body, &document);
	if (rc == 0 && errors->n + errors->dropped == 0)
		return 0;
	buf_puts(faults, "as a policy: ");
	policy_object_print_errors(errors, faults);
	return -1;
}

static int convert(struct arena *tree, const char *json, size_t len, const struct convert_live *live,
                   struct policy_ref *body, struct buf *faults)
{
	struct doc_node *root;
	struct err e;
	struct conversion *c = arena_alloc(tree, sizeof *c);
	if (!c)
		err_no_memory(&e);
	if (!c || doc_from_json(tree, json, len, &root, &e) < 0 || convert_object(c, tree, root, NULL, live, &e) < 0) {
		buf_puts(faults, e.msg);
		return -1;
	}
	if (c->is_incomplete) {
		buf_puts(faults, c->lost);
		return -1;
	}
	if (decode_policy(tree, c, body, faults) < 0)
		return -1;
	set_origin(body, c, root);
	return 0;
}

int scaled_object_decode(const char *json, size_t len, const struct convert_live *live, struct policy_ref *body,
                         struct buf *faults)
{
	struct arena tree;
	arena_init(&tree, TREE_BYTES_MAX);
	int rc = convert(&tree, json, len, live, body, faults);
	arena_done(&tree);
	return rc;
}
