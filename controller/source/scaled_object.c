// SPDX-License-Identifier: Apache-2.0
#include "controller/source/scaled_object.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/must.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/source/policy_object.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"
#include "policies/load/policy_zones.h"
#include "policies/schema/policy_decode.h"

#define TREE_BYTES_MAX    ((size_t)64 * 1024 * 1024)
#define TRIGGER_TYPES_MAX 1024 // bytes of status.triggersTypes
#define TRIGGERS_SHOWN    64   // triggers whose types it names

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
