// SPDX-License-Identifier: Apache-2.0
// Which nodes accept the pods of which rules: each rule is compared with each node once, until the node changes.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "k8s/capacity/capacity_private.h"

#define PER_BYTE  4  // verdicts in a byte
#define KEPT_MIN  64 // rules that are kept although few pods wait
#define UNUSED_IN 16 // plans; a rule that none of the last ones used is forgotten

struct rule_verdicts {
	UT_hash_handle hh;
	unsigned char print[REPLICA_PRINT_BYTES];
	uint64_t used; // number of the latest plan that used it
	size_t n_bytes;
	unsigned char *of; // enum node_verdict by slot of the node
};

uint32_t capacity_take_slot(struct capacity *c)
{
	if (c->n_free_slots > 0)
		return c->free_slots[--c->n_free_slots];
	if ((c->n_slots & (c->n_slots - 1)) == 0) // a power of two: room for as many again
		c->free_slots =
		        must_alloc(realloc(c->free_slots, (c->n_slots ? 2 * c->n_slots : 1) * sizeof *c->free_slots));
	return c->n_slots++;
}

void capacity_release_slot(struct capacity *c, uint32_t slot)
{
	c->free_slots[c->n_free_slots++] = slot;
}

static void forget_rule(struct capacity *c, struct rule_verdicts *v)
{
	HASH_DELETE(hh, c->rules, v);
	free(v->of);
	free(v);
}

void capacity_forget_unused_rules(struct capacity *c)
{
	struct rule_verdicts *v, *next;
	if (HASH_COUNT(c->rules) <= KEPT_MIN + 2 * c->n_waiting)
		return;
	HASH_ITER(hh, c->rules, v, next)
	{
		if (v->used + UNUSED_IN < c->plan.number)
			forget_rule(c, v);
	}
}

void capacity_rules_done(struct capacity *c)
{
	struct rule_verdicts *v, *next;
	HASH_ITER(hh, c->rules, v, next)
	{
		forget_rule(c, v);
	}
	free(c->free_slots);
	c->free_slots = NULL;
}

static void set_verdict(struct rule_verdicts *v, uint32_t slot, enum node_verdict verdict)
{
	unsigned shift = 2 * (slot % PER_BYTE);
	unsigned char *at = &v->of[slot / PER_BYTE];
	*at = (unsigned char)((*at & ~(3U << shift)) | (unsigned)verdict << shift);
}

void capacity_forget_verdicts(struct capacity *c, uint32_t slot)
{
	struct rule_verdicts *v;
	for (v = c->rules; v; v = v->hh.next) {
		if (slot / PER_BYTE < v->n_bytes)
			set_verdict(v, slot, NODE_UNCHECKED);
	}
}

struct rule_verdicts *capacity_rule_of(struct capacity *c, const struct replica_shape *shape)
{
	struct rule_verdicts *v;
	size_t n_bytes = c->n_slots / PER_BYTE + 1;
	HASH_FIND(hh, c->rules, shape->rule_print, sizeof shape->rule_print, v);
	if (!v) {
		v = must_alloc(calloc(1, sizeof *v));
		memcpy(v->print, shape->rule_print, sizeof v->print);
		HASH_ADD(hh, c->rules, print, sizeof v->print, v);
	}
	if (v->n_bytes < n_bytes) {
		v->of = must_alloc(realloc(v->of, n_bytes));
		memset(v->of + v->n_bytes, 0, n_bytes - v->n_bytes);
		v->n_bytes = n_bytes;
	}
	v->used = c->plan.number;
	return v;
}

const struct node_taint *capacity_untolerated(const struct capacity_node *n, const struct node_rule *rule)
{
	for (size_t i = 0; i < n->n_taints; i++) {
		if (!node_rule_tolerates(rule, &n->taints[i]))
			return &n->taints[i];
	}
	return NULL;
}

enum node_verdict capacity_verdict(struct rule_verdicts *v, const struct node_rule *rule, const struct capacity_node *n,
                                   int64_t *work)
{
	unsigned known = v->of[n->slot / PER_BYTE];
	enum node_verdict verdict = (enum node_verdict)(known >> 2 * (n->slot % PER_BYTE) & 3U);
	if (verdict != NODE_UNCHECKED || *work <= 0)
		return verdict;
	*work -= 1 + (int64_t)rule->n_texts + (int64_t)(rule->n_tolerations * n->n_taints);
	verdict = !node_rule_matches(rule, n->name, n->labels, n->n_labels) ? NODE_EXCLUDED
	          : capacity_untolerated(n, rule)                           ? NODE_TAINTED
	                                                                    : NODE_ACCEPTED;
	set_verdict(v, n->slot, verdict);
	return verdict;
}
