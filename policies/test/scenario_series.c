// SPDX-License-Identifier: Apache-2.0
// Reads the series of a signal: a notation, a list of pieces, or a map from pods to either.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/series_notation.h"
#include "base/text.h"
#include "policies/test/scenario.h"

#define DETAIL_BYTES 256

struct reader {
	struct arena *a;
	struct schema_errors *errors;
	size_t *points_left;
};

static int fail_memory(struct reader *r, const struct doc_node *node, const char *path)
{
	schema_report(r->errors, node, path, "does not fit into the memory allowed");
	return -1;
}

// Makes room for n more points at the end of the series.
static struct scenario_point *append(struct reader *r, struct scenario_series *s, size_t n, const struct doc_node *node,
                                     const char *path)
{
	if (n > *r->points_left) {
		schema_report(r->errors, node, path, "the series of a test may have %d values in all",
		              SCENARIO_POINTS_MAX);
		return NULL;
	}
	if (s->n + n > s->cap) {
		size_t cap = s->n + n > 2 * s->cap ? s->n + n : 2 * s->cap;
		struct scenario_point *grown = arena_calloc(r->a, cap, sizeof *grown);
		if (!grown) {
			fail_memory(r, node, path);
			return NULL;
		}
		if (s->n > 0)
			memcpy(grown, s->points, s->n * sizeof *grown);
		s->points = grown;
		s->cap = cap;
	}
	*r->points_left -= n;
	s->n += n;
	return s->points + s->n - n;
}

static struct scenario_point point_of(const struct series_point *from, int64_t age_ms)
{
	switch (from->kind) {
	case SERIES_POINT_VALUE:
		return (struct scenario_point){.state = OBS_OK, .value = from->value, .age_ms = age_ms};
	case SERIES_POINT_ERROR:
		return (struct scenario_point){.state = OBS_FAILED,
		                               .detail = from->detail ? from->detail : "the test says so"};
	case SERIES_POINT_MISSING:
	case SERIES_POINT_STALE:
		break;
	}
	return (struct scenario_point){.state = OBS_EMPTY};
}

static int add_notation(struct reader *r, struct scenario_series *s, const char *text, int64_t age_ms,
                        const struct doc_node *node, const char *path)
{
	struct err e;
	struct series_point *from;
	size_t n;
	if (strlen(node->text) != node->text_len) {
		schema_report(r->errors, node, path, "cannot hold the character \\0: remove it");
		return -1;
	}
	if (series_notation_parse(r->a, text, &from, &n, &e) < 0) {
		schema_report(r->errors, node, path, "%s", e.msg);
		return -1;
	}
	struct scenario_point *to = append(r, s, n, node, path);
	for (size_t i = 0; to && i < n; i++)
		to[i] = point_of(&from[i], age_ms);
	return to ? 0 : -1;
}

// `whole`: the piece is the only one of the signal, so that an error without `times` repeats.
static int add_piece(struct reader *r, struct scenario_series *s, const struct doc_node *node, const char *path,
                     bool whole)
{
	struct scenario_piece piece = {0};
	if (schema_decode(scenario_piece_schema(), node, &piece, r->a, r->errors, path) < 0)
		return -1;
	if (piece.values)
		return add_notation(r, s, piece.values, piece.age_ms, node, path);
	struct scenario_point *to = append(r, s, piece.times_set ? (size_t)piece.times : 1, node, path);
	if (!to)
		return -1;
	s->endless = whole && !piece.times_set;
	const char *text = piece.error ? piece.error : piece.partial;
	char clean[DETAIL_BYTES]; // it is printed to terminals
	text_show(clean, sizeof clean, text, strlen(text));
	const char *detail = arena_strdup(r->a, clean);
	if (!detail)
		return fail_memory(r, node, path);
	for (size_t i = 0; i < (piece.times_set ? (size_t)piece.times : 1); i++)
		to[i] = (struct scenario_point){.state = piece.error ? OBS_FAILED : OBS_PARTIAL, .detail = detail};
	return 0;
}

static int add_series(struct reader *r, struct scenario_series *s, const struct doc_node *node, const char *path)
{
	switch (node->kind) {
	case DOC_SCALAR:
		return add_notation(r, s, node->text, 0, node, path);
	case DOC_MAP:
		return add_piece(r, s, node, path, true);
	case DOC_SEQ:
		break;
	case DOC_NULL:
	case DOC_KIND__COUNT:
		schema_report(r->errors, node, path,
		              "must be a series such as '0.5x10 0.9x4', or a list of pieces of one");
		return -1;
	}
	size_t i = 0;
	for (const struct doc_node *c = node->child; c; c = c->next, i++) {
		char sub[SCHEMA_PATH_BYTES];
		snprintf(sub, sizeof sub, "%s[%zu]", path, i);
		int rc = c->kind == DOC_MAP      ? add_piece(r, s, c, sub, false)
		         : c->kind == DOC_SCALAR ? add_notation(r, s, c->text, 0, c, sub)
		                                 : -1;
		if (rc < 0 && c->kind != DOC_MAP && c->kind != DOC_SCALAR)
			schema_report(r->errors, c, sub,
			              "must be a piece of a series: '5x3', or {error: timeout, times: 3}");
		if (rc < 0)
			return -1;
	}
	if (s->n > 0)
		return 0;
	schema_report(r->errors, node, path, "the series is empty: write values such as '0+10x9 90x20'");
	return -1;
}

// A map with one of a piece's own keys is a piece; any other maps pods to series.
static bool is_piece(const struct doc_node *node)
{
	const struct schema *piece = scenario_piece_schema();
	for (size_t i = 0; i < piece->n_fields; i++)
		if (doc_get(node, piece->fields[i].name))
			return true;
	return false;
}

int scenario_bind_signal(struct scenario_signal *ret_signal, const struct doc_node *node, const char *path,
                         size_t *points_left, struct arena *a, struct schema_errors *errors)
{
	struct reader r = {a, errors, points_left};
	bool by_pod = node->kind == DOC_MAP && !is_piece(node);
	size_t n = by_pod ? node->n_children : 1;
	if (n > SCENARIO_PODS_MAX) {
		schema_report(errors, node, path, "%zu series are more than the ceiling of %d", n, SCENARIO_PODS_MAX);
		return -1;
	}
	ret_signal->series = arena_calloc(a, n, sizeof *ret_signal->series);
	if (!ret_signal->series)
		return fail_memory(&r, node, path);
	if (!by_pod) {
		ret_signal->n_series = 1;
		ret_signal->series[0].pod = "";
		return add_series(&r, &ret_signal->series[0], node, path);
	}
	for (const struct doc_node *c = node->child; c; c = c->next) {
		char sub[SCHEMA_PATH_BYTES];
		struct scenario_series *s = &ret_signal->series[ret_signal->n_series++];
		snprintf(sub, sizeof sub, "%s.%s", path, c->key);
		s->pod = c->key;
		if (add_series(&r, s, c, sub) < 0)
			return -1;
	}
	return 0;
}
