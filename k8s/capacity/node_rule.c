// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/node_rule.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "k8s/capacity/label_pool.h"

enum node_operator { OP_IN, OP_NOT_IN, OP_EXISTS, OP_DOES_NOT_EXIST, OP_GT, OP_LT, OP__COUNT };
static const char *const operator_names[] = {
        [OP_IN] = "In", [OP_NOT_IN] = "NotIn", [OP_EXISTS] = "Exists", [OP_DOES_NOT_EXIST] = "DoesNotExist",
        [OP_GT] = "Gt", [OP_LT] = "Lt"};
_Static_assert(sizeof operator_names / sizeof operator_names[0] == OP__COUNT, "a name for each");

struct rule_text {
	const char *text;
	uint32_t hash;
};

struct node_requirement {
	enum node_operator op;
	bool is_name; // entry of matchFields: the node's name instead of a label
	struct rule_text key;
	struct rule_text *values;
	size_t n_values;
};

struct node_term {
	struct node_requirement *requirements;
	size_t n;
};

struct toleration {
	const char *key, *value; // key "": every taint
	bool is_exists;
	enum taint_effect effect; // TAINT_EFFECT__COUNT: every effect
};

// ---- decoding ----

static bool is_empty(struct json_span s)
{
	return !s.text || json_span_kind(s) == 'n';
}

// Returns NULL and *e for anything but a string; "" for an absent one.
static const char *copy_text(struct arena *a, struct json_span s, const char *what, struct node_rule *rule,
                             struct err *e)
{
	char text[NODE_RULE_TEXT_BYTES];
	int len = is_empty(s) ? 0 : json_span_text(s, text, sizeof text);
	if (len < 0) {
		err_set(e, ERR_INPUT, "%s: expected a string of at most %d bytes", what, NODE_RULE_TEXT_BYTES - 1);
		return NULL;
	}
	if (rule->n_texts++ == NODE_RULE_TEXTS_MAX) {
		err_set(e, ERR_LIMIT, "%s: the rules of one pod have more than %d keys and values", what,
		        NODE_RULE_TEXTS_MAX);
		return NULL;
	}
	const char *copy = arena_strndup(a, len ? text : "", (size_t)len);
	if (!copy)
		err_set(e, ERR_LIMIT, "%s: the rules of one pod exceed their memory", what);
	return copy;
}

static int copy_hashed(struct arena *a, struct json_span s, const char *what, struct node_rule *rule,
                       struct rule_text *ret_text, struct err *e)
{
	if (!(ret_text->text = copy_text(a, s, what, rule, e)))
		return -1;
	ret_text->hash = label_hash(ret_text->text);
	return 0;
}

// Allocates a list of the length of `list`.
static int alloc_list(struct arena *a, struct json_span list, size_t max, size_t size, const char *what,
                      void **ret_items, size_t *ret_n, struct err *e)
{
	*ret_n = json_span_count(list);
	*ret_items = NULL;
	if (*ret_n > max)
		return err_set(e, ERR_LIMIT, "%s has %zu entries, the ceiling is %zu", what, *ret_n, max);
	*ret_items = arena_calloc(a, *ret_n ? *ret_n : 1, size);
	return *ret_items ? 0 : err_set(e, ERR_LIMIT, "%s: the rules of one pod exceed their memory", what);
}

static int read_values(struct arena *a, struct json_span values, struct node_rule *rule, struct node_requirement *r,
                       struct err *e)
{
	struct json_span_iter it = {.rest = values};
	void *list;
	size_t n;
	if (alloc_list(a, values, NODE_RULE_VALUES_MAX, sizeof *r->values, "values of a node affinity", &list, &n, e) <
	    0)
		return -1;
	for (r->values = list; json_span_next(&it); r->n_values++) {
		if (copy_hashed(a, it.value, "a value of a node affinity", rule, &r->values[r->n_values], e) < 0)
			return -1;
	}
	return 0;
}

static int read_requirement(struct arena *a, struct json_span json, bool is_field, struct node_rule *rule,
                            struct node_requirement *r, struct err *e)
{
	struct json_span op = json_span_get(json, "operator");
	r->op = OP__COUNT;
	for (int i = 0; i < OP__COUNT; i++) {
		if (json_span_is(op, operator_names[i]))
			r->op = (enum node_operator)i;
	}
	if (r->op == OP__COUNT)
		return err_set(e, ERR_INPUT,
		               "node affinity: expected an operator of In, NotIn, Exists, DoesNotExist, "
		               "Gt, Lt");
	if (copy_hashed(a, json_span_get(json, "key"), "key of a node affinity", rule, &r->key, e) < 0)
		return -1;
	if (!r->key.text[0])
		return err_set(e, ERR_INPUT, "node affinity: an expression has no key");
	r->is_name = is_field;
	if (is_field && strcmp(r->key.text, "metadata.name") != 0)
		return err_set(e, ERR_INPUT, "node affinity: expected the field metadata.name, got \"%.100s\"",
		               r->key.text);
	return read_values(a, json_span_get(json, "values"), rule, r, e);
}

static int read_term(struct arena *a, struct json_span json, struct node_rule *rule, struct node_term *term,
                     struct err *e)
{
	struct json_span expressions = json_span_get(json, "matchExpressions"),
	                 fields = json_span_get(json, "matchFields");
	struct json_span_iter it = {.rest = expressions};
	size_t n = json_span_count(expressions) + json_span_count(fields);
	if (n > NODE_RULE_REQUIREMENTS_MAX)
		return err_set(e, ERR_LIMIT, "a term of a node affinity has %zu expressions, the ceiling is %d", n,
		               NODE_RULE_REQUIREMENTS_MAX);
	term->requirements = arena_calloc(a, n ? n : 1, sizeof *term->requirements);
	if (!term->requirements)
		return err_set(e, ERR_LIMIT, "node affinity: the rules of one pod exceed their memory");
	for (; json_span_next(&it); term->n++) {
		if (read_requirement(a, it.value, false, rule, &term->requirements[term->n], e) < 0)
			return -1;
	}
	it = (struct json_span_iter){.rest = fields};
	for (; json_span_next(&it); term->n++) {
		if (read_requirement(a, it.value, true, rule, &term->requirements[term->n], e) < 0)
			return -1;
	}
	return 0;
}

static int read_affinity(struct arena *a, struct json_span spec, struct node_rule *r, struct err *e)
{
	static const char *const path[] = {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
	                                   NULL};
	struct json_span required = json_span_path(spec, path), terms = json_span_get(required, "nodeSelectorTerms");
	struct json_span_iter it = {.rest = terms};
	void *list;
	if (is_empty(required))
		return 0;
	r->has_affinity = true;
	if (alloc_list(a, terms, NODE_RULE_TERMS_MAX, sizeof *r->terms, "nodeSelectorTerms", &list, &r->n_terms, e) < 0)
		return -1;
	r->terms = list;
	for (struct node_term *term = list; json_span_next(&it); term++) {
		if (read_term(a, it.value, r, term, e) < 0)
			return -1;
	}
	return 0;
}

static int read_selector(struct arena *a, struct json_span selector, struct node_rule *r, struct err *e)
{
	struct json_span_iter it = {.rest = selector};
	void *list;
	if (alloc_list(a, selector, NODE_RULE_REQUIREMENTS_MAX, sizeof *r->selector, "nodeSelector", &list,
	               &r->n_selector, e) < 0)
		return -1;
	r->selector = list;
	for (struct node_requirement *q = list; json_span_next(&it); q++) {
		*q = (struct node_requirement){.op = OP_IN, .n_values = 1};
		q->values = arena_calloc(a, 1, sizeof *q->values);
		if (!q->values || copy_hashed(a, it.key, "nodeSelector", r, &q->key, e) < 0 ||
		    copy_hashed(a, it.value, "nodeSelector", r, &q->values[0], e) < 0)
			return e && e->kind ? -1 : err_set(e, ERR_LIMIT, "nodeSelector exceeds its memory");
	}
	return 0;
}

enum taint_effect taint_effect_read(struct json_span effect)
{
	static const char *const names[] = {[TAINT_NO_SCHEDULE] = "NoSchedule",
	                                    [TAINT_NO_EXECUTE] = "NoExecute",
	                                    [TAINT_PREFER_NO_SCHEDULE] = "PreferNoSchedule"};
	_Static_assert(sizeof names / sizeof names[0] == TAINT_EFFECT__COUNT, "a name for each");
	int i = 0;
	while (i < TAINT_EFFECT__COUNT && !json_span_is(effect, names[i]))
		i++;
	return (enum taint_effect)i;
}

static int read_tolerations(struct arena *a, struct json_span tolerations, struct node_rule *r, struct err *e)
{
	struct json_span_iter it = {.rest = tolerations};
	void *list;
	size_t n;
	if (alloc_list(a, tolerations, NODE_RULE_TOLERATIONS_MAX, sizeof *r->tolerations, "tolerations", &list, &n, e) <
	    0)
		return -1;
	r->tolerations = list;
	while (json_span_next(&it)) {
		struct toleration *t = &r->tolerations[r->n_tolerations];
		struct json_span op = json_span_get(it.value, "operator"), effect = json_span_get(it.value, "effect");
		t->is_exists = json_span_is(op, "Exists");
		t->effect = taint_effect_read(effect);
		bool is_known = t->is_exists || is_empty(op) || json_span_is(op, "Equal") || json_span_is(op, "");
		bool has_effect = !is_empty(effect) && !json_span_is(effect, "");
		if (!(t->key = copy_text(a, json_span_get(it.value, "key"), "key of a toleration", r, e)) ||
		    !(t->value = copy_text(a, json_span_get(it.value, "value"), "value of a toleration", r, e)))
			return -1;
		// A toleration that is not understood tolerates nothing.
		if (is_known && (t->effect != TAINT_EFFECT__COUNT || !has_effect) && (t->key[0] || t->is_exists))
			r->n_tolerations++;
	}
	return 0;
}

int node_rule_read(struct arena *a, struct json_span spec, struct node_rule *ret_rule, struct err *e)
{
	struct json_span node_name = json_span_get(spec, "nodeName");
	*ret_rule = (struct node_rule){0};
	if (!is_empty(node_name) && !json_span_is(node_name, "") &&
	    !(ret_rule->node_name = copy_text(a, node_name, "nodeName", ret_rule, e)))
		return -1;
	if (read_selector(a, json_span_get(spec, "nodeSelector"), ret_rule, e) < 0 ||
	    read_affinity(a, spec, ret_rule, e) < 0)
		return -1;
	return read_tolerations(a, json_span_get(spec, "tolerations"), ret_rule, e);
}

// ---- matching ----

// hash: of the value; NULL: unknown
static bool has_value(const struct node_requirement *r, const char *value, const uint32_t *hash)
{
	for (size_t i = 0; i < r->n_values; i++) {
		if ((!hash || r->values[i].hash == *hash) && strcmp(r->values[i].text, value) == 0)
			return true;
	}
	return false;
}

static bool compares(const struct node_requirement *r, const char *value)
{
	int64_t has, wanted;
	if (r->n_values != 1 || num_parse_i64(value, strlen(value), INT64_MIN, INT64_MAX, &has, NULL) < 0 ||
	    num_parse_i64(r->values[0].text, strlen(r->values[0].text), INT64_MIN, INT64_MAX, &wanted, NULL) < 0)
		return false;
	return r->op == OP_GT ? has > wanted : has < wanted;
}

// Returns the label with this key; NULL: none.
static const struct hashed_label *find_label(const struct label *const *labels, size_t n, const struct rule_text *key)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (label_pool_hashes(labels[middle])->key_hash < key->hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && label_pool_hashes(labels[low])->key_hash == key->hash; low++) {
		if (strcmp(labels[low]->key, key->text) == 0)
			return label_pool_hashes(labels[low]);
	}
	return NULL;
}

static bool requirement_matches(const struct node_requirement *r, const char *node_name,
                                const struct label *const *labels, size_t n_labels)
{
	const struct hashed_label *label = r->is_name ? NULL : find_label(labels, n_labels, &r->key);
	const char *value = r->is_name ? node_name : label ? label->label.value : NULL;
	const uint32_t *hash = label ? &label->value_hash : NULL;
	switch (r->op) {
	case OP_IN:
		return value && has_value(r, value, hash);
	case OP_NOT_IN:
		return !value || !has_value(r, value, hash);
	case OP_EXISTS:
		return value != NULL;
	case OP_DOES_NOT_EXIST:
		return !value;
	default:
		return value && compares(r, value);
	}
}

static bool all_match(const struct node_requirement *list, size_t n, const char *node_name,
                      const struct label *const *labels, size_t n_labels)
{
	for (size_t i = 0; i < n; i++) {
		if (!requirement_matches(&list[i], node_name, labels, n_labels))
			return false;
	}
	return true;
}

bool node_rule_matches(const struct node_rule *r, const char *node_name, const struct label *const *labels,
                       size_t n_labels)
{
	if (r->node_name && strcmp(r->node_name, node_name) != 0)
		return false;
	if (!all_match(r->selector, r->n_selector, node_name, labels, n_labels))
		return false;
	for (size_t i = 0; i < r->n_terms; i++) {
		const struct node_term *term = &r->terms[i];
		// A term without expressions matches no node.
		if (term->n > 0 && all_match(term->requirements, term->n, node_name, labels, n_labels))
			return true;
	}
	return !r->has_affinity;
}

bool node_rule_tolerates(const struct node_rule *r, const struct node_taint *taint)
{
	if (taint->effect == TAINT_PREFER_NO_SCHEDULE)
		return true;
	for (size_t i = 0; i < r->n_tolerations; i++) {
		const struct toleration *t = &r->tolerations[i];
		if (t->effect != TAINT_EFFECT__COUNT && t->effect != taint->effect)
			continue;
		if (t->key[0] && strcmp(t->key, taint->label->key) != 0)
			continue;
		if (t->is_exists || strcmp(t->value, taint->label->value) == 0)
			return true;
	}
	return false;
}
