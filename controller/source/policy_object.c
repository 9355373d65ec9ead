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

static void read_name(struct json_span metadata, const char *key, char *out, size_t size)
{
	json_span_text(json_span_get(metadata, key), out, size);
	if (!is_object_name(out, size - 1))
		out[0] = '\0';
}

// Returns 0 when the key is absent or null. An invalid time is an error: an object that is being deleted must not pass
// for one that is not, nor a young object for the oldest.
static int64_t read_time(struct json_span metadata, const char *key, struct schema_errors *errors)
{
	char text[NUM_INPUT_BYTES_MAX + 1], path[SCHEMA_PATH_BYTES];
	struct json_span time = json_span_get(metadata, key);
	int64_t ms = 0;
	int len = json_span_text(time, text, sizeof text);
	if (!time.text || json_span_kind(time) == 'n' ||
	    (len >= 0 && num_parse_rfc3339_ms(text, (size_t)len, &ms, NULL) == 0))
		return ms;
	snprintf(path, sizeof path, "metadata.%s", key);
	schema_report(errors, NULL, path, "must be a time, as the API server writes it");
	return 0;
}

void policy_object_identify(const char *json, size_t len, struct policy_object *ret_object,
                            struct schema_errors *errors)
{
	const struct json_span object = {json, len}, metadata = json_span_get(object, "metadata");
	const struct json_span generation = json_span_get(metadata, "generation");
	struct policy_identity *id = &ret_object->identity;
	*ret_object = (struct policy_object){0};
	read_name(metadata, "namespace", ret_object->namespace_name, sizeof ret_object->namespace_name);
	read_name(metadata, "name", ret_object->name, sizeof ret_object->name);
	json_span_text(json_span_get(metadata, "uid"), id->uid, sizeof id->uid);
	if (!json_span_i64(generation, 0, INT64_MAX, &id->generation) && generation.text &&
	    json_span_kind(generation) != 'n')
		schema_report(errors, NULL, "metadata.generation", "must be a whole number");
	id->created_ms = read_time(metadata, "creationTimestamp", errors);
	(void)read_time(metadata, "deletionTimestamp", errors);
	id->has_status = json_span_count(json_span_get(object, "status")) > 0;
}

static void decode_tree(struct doc_node *root, struct arena *a, struct policy_object *ret_object,
                        struct policy_document *ret_document, struct schema_errors *errors,
                        struct schema_errors *unknown)
{
	static const char *const root_names[] = {"apiVersion", "kind", "metadata", "spec"};
	static const char *const metadata_names[] = {"name", "namespace", "annotations", "labels"};
	size_t n_root = sizeof root_names / sizeof root_names[0],
	       n_metadata = sizeof metadata_names / sizeof metadata_names[0];
	keep(root, root_names, n_root);
	for (struct doc_node *c = root->child; c; c = c->next)
		if (strcmp(c->key, "metadata") == 0)
			keep(c, metadata_names, n_metadata);
	ret_object->fingerprint = policy_fingerprint(root, 0);
	policy_decode_tolerant(root, ret_document, a, errors, unknown);
	policy_zones_load(&ret_document->policy, root, a, errors);
}

int policy_object_decode(const char *json, size_t len, struct arena *a, struct policy_object *ret_object,
                         struct policy_document *ret_document, struct schema_errors *errors,
                         struct schema_errors *unknown)
{
	*ret_document = (struct policy_document){0};
	struct arena tree; // the document itself is needed only while decoding
	struct doc_node *root;
	struct err e;
	size_t before = errors->n + errors->dropped;
	arena_init(&tree, TREE_BYTES_MAX);
	// Also of an object that doc_from_json() refuses, because a string contains \u0000 or the object is too large:
	// the object still exists and must not be mistaken for a deleted one.
	policy_object_identify(json, len, ret_object, errors);
	if (doc_from_json(&tree, json, len, &root, &e) < 0)
		schema_report(errors, NULL, "", "%s", e.msg);
	else
		decode_tree(root, a, ret_object, ret_document, errors, unknown);
	arena_done(&tree);
	return errors->n + errors->dropped > before ? -1 : 0;
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
