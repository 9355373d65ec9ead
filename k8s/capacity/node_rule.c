// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/node_rule.h"

#include "base/arena.h"
#include "base/base.h"
#include "k8s/capacity/label_pool.h"

static const char *const operator_names[] = {
        [LABEL_IN] = "In",         [LABEL_NOT_IN] = "NotIn",
        [LABEL_EXISTS] = "Exists", [LABEL_DOES_NOT_EXIST] = "DoesNotExist",
        [LABEL_GREATER] = "Gt",    [LABEL_LESS] = "Lt",
};
_Static_assert(sizeof operator_names / sizeof operator_names[0] == LABEL_OPERATOR__COUNT, "a name for each");

struct node_requirement {
	struct label_requirement label;
	uint32_t key_hash; // label_hash()
	bool is_name;      // entry of matchFields: the node's name instead of a label
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

static int read_key(struct arena *a, struct json_span s, const char *what, struct node_rule *rule,
                    struct node_requirement *r, struct err *e)
{
	if (!(r->label.key = copy_text(a, s, what, rule, e)))
		return -1;
	r->key_hash = label_hash(r->label.key);
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

static int read_values(struct arena *a, struct json_span values, struct node_rule *rule, struct label_requirement *r,
                       struct err *e)
{
	struct json_span_iter it = {.rest = values};
	void *list;
	size_t n;
	if (alloc_list(a, values, NODE_RULE_VALUES_MAX, sizeof *r->values, "values of a node affinity", &list, &n, e) <
	    0)
		return -1;
	r->values = list;
	for (const char **value = list; json_span_next(&it); r->n_values++) {
		if (!(value[r->n_values] = copy_text(a, it.value, "a value of a node affinity", rule, e)))
			return -1;
	}
	return 0;
}

static int read_requirement(struct arena *a, struct json_span json, bool is_field, struct node_rule *rule,
                            struct node_requirement *r, struct err *e)
{
	struct json_span op = json_span_get(json, "operator");
	int i = 0;
	while (i < LABEL_OPERATOR__COUNT && !json_span_is(op, operator_names[i]))
		i++;
	if (i == LABEL_OPERATOR__COUNT)
		return err_set(e, ERR_INPUT,
		               "node affinity: expected an operator of In, NotIn, Exists, DoesNotExist, "
		               "Gt, Lt");
	r->label.op = (enum label_operator)i;
	if (read_key(a, json_span_get(json, "key"), "key of a node affinity", rule, r, e) < 0)
		return -1;
	if (!r->label.key[0])
		return err_set(e, ERR_INPUT, "node affinity: an expression has no key");
	r->is_name = is_field;
	if (is_field && strcmp(r->label.key, "metadata.name") != 0)
		return err_set(e, ERR_INPUT, "node affinity: expected the field metadata.name, got \"%.100s\"",
		               r->label.key);
	return read_values(a, json_span_get(json, "values"), rule, &r->label, e);
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
		const char **value = arena_calloc(a, 1, sizeof *value);
		if (!value || read_key(a, it.key, "nodeSelector", r, q, e) < 0 ||
		    !(*value = copy_text(a, it.value, "nodeSelector", r, e)))
			return e && e->kind ? -1 : err_set(e, ERR_LIMIT, "nodeSelector exceeds its memory");
		q->label.op = LABEL_IN;
		q->label.values = value;
		q->label.n_values = 1;
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

// Returns the value of the label that the requirement names; NULL: none.
static const char *find_value(const struct label *const *labels, size_t n, const struct node_requirement *r)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (label_pool_key_hash(labels[middle]) < r->key_hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && label_pool_key_hash(labels[low]) == r->key_hash; low++) {
		if (strcmp(labels[low]->key, r->label.key) == 0)
			return labels[low]->value;
	}
	return NULL;
}

static bool all_match(const struct node_requirement *list, size_t n, const char *node_name,
                      const struct label *const *labels, size_t n_labels)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = list[i].is_name ? node_name : find_value(labels, n_labels, &list[i]);
		if (!label_requirement_matches(&list[i].label, value))
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
