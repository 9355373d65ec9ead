// SPDX-License-Identifier: Apache-2.0
#include "replay/tune_space.h"

#include <math.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define ARENA_MAX     (64 * 1024 * 1024)
#define FEW           3    // a candidate that varies few numbers has fewer than this besides a main one
#define NEAR          0.4  // part of the range: how far from the present value a near one is at most
#define STEP          0.12 // part of the range: how far a varied candidate is at most from its parent
#define TAKEN_BACK    0.25 // part of the changed numbers that are as at present in a varied candidate
#define NEWLY_VARIED  0.1  // part of the others that are varied
#define LADDER        16
#define LADDER_LOW    0.35 // factors of the present value
#define LADDER_HIGH   2.0
#define FLOORS        10
#define SWEEP         16
#define SECOND_MS     1000.0
#define DEFAULT_SPACE "default" // namespace of a policy that names none

// ---- numbers and texts ----

// Reads a value in the unit of field->tune.
static bool read_number(const struct schema_field *f, const char *text, double *ret)
{
	size_t len = strlen(text);
	int64_t ms = 0;
	switch (f->type) {
	case SCHEMA_QUANTITY:
		return num_parse_quantity(text, len, ret, NULL) == 0;
	case SCHEMA_DURATION_MS:
		if (num_parse_duration_ms(text, len, &ms, NULL) < 0)
			return false;
		*ret = (double)ms;
		return true;
	case SCHEMA_STRING: // a percentage
		return len > 1 && text[len - 1] == '%' && num_parse_f64(text, len - 1, ret, NULL) == 0;
	default:
		return num_parse_f64(text, len, ret, NULL) == 0;
	}
}

// Steps of 1 to 3 %.
static double few_digits(double v)
{
	if (!(v > 0))
		return 0;
	double tens = pow(10, floor(log10(v))), first = v / tens;
	double step = (first < 2 ? 0.02 : first < 5 ? 0.05 : 0.1) * tens;
	return round(v / step) * step;
}

static double round_s(double s)
{
	double step = s < 30 ? 1 : s < 120 ? 5 : s < 600 ? 15 : 60;
	return round(s / step) * step;
}

// Rounds to what a person would write.
static double rounded(const struct schema_field *f, double v)
{
	switch (f->type) {
	case SCHEMA_QUANTITY:
	case SCHEMA_STRING:
		return few_digits(v);
	case SCHEMA_DURATION_MS:
		return round_s(v / SECOND_MS) * SECOND_MS;
	case SCHEMA_SECONDS_MS:
		return round_s(v);
	default:
		return round(v);
	}
}

void tune_number_text(const struct tune_number *n, double value, char out[TUNE_TEXT_BYTES])
{
	char text[NUM_TEXT_BYTES];
	switch (n->field->type) {
	case SCHEMA_DURATION_MS:
		num_format_duration_ms(text, (int64_t)value);
		break;
	case SCHEMA_STRING:
	case SCHEMA_QUANTITY: {
		char digits[NUM_TEXT_BYTES];
		double clean = value;
		snprintf(digits, sizeof digits, "%.6g", value); // without the tail of the division
		if (num_parse_f64(digits, strlen(digits), &clean, NULL) < 0)
			clean = value;
		num_format_f64(text, clean);
		break;
	}
	default:
		num_format_f64(text, value);
		break;
	}
	snprintf(out, TUNE_TEXT_BYTES, "%s%s", text, n->field->type == SCHEMA_STRING ? "%" : "");
}

// ---- finding the numbers ----

struct walk {
	struct tune_space *s;
	bool is_full; // no room for numbers, or memory is exhausted
};

static void add_number(struct walk *w, const struct schema_field *f, struct doc_node *node, struct doc_node *map,
                       bool is_added, const char *path)
{
	struct tune_space *s = w->s;
	const struct schema_tune *t = &f->tune;
	double present;
	if (node->kind != DOC_SCALAR || !read_number(f, node->text, &present))
		return;
	if (t->scale != SCHEMA_TUNE_LINEAR && !(present > 0))
		return; // has no place on a logarithmic scale
	if (s->n == TUNE_NUMBERS_MAX) {
		w->is_full = true;
		return;
	}
	bool is_factor = t->scale == SCHEMA_TUNE_FACTOR;
	struct tune_number *n = &s->numbers[s->n++];
	*n = (struct tune_number){.field = f, .node = node, .map = map, .is_added = is_added, .present = present};
	n->min = fmin(present, is_factor ? present * t->min : t->min);
	n->max = fmax(present, is_factor ? present * t->max : t->max);
	n->is_log = t->scale != SCHEMA_TUNE_LINEAR;
	n->step = 1;
	snprintf(n->path, sizeof n->path, "%s", path);
}

static struct doc_node *child_of(struct doc_node *map, const char *key)
{
	for (struct doc_node *c = map->child; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

// Adds an absent field to the map: its default, which changes nothing.
static struct doc_node *add_node(struct walk *w, struct doc_node *map, const struct schema_field *f)
{
	struct doc_node *node = arena_alloc(&w->s->arena, sizeof *node);
	if (!node) {
		w->is_full = true;
		return NULL;
	}
	bool is_map = f->type == SCHEMA_OBJECT;
	*node = (struct doc_node){.kind = is_map ? DOC_MAP : DOC_SCALAR, .quoted = f->type == SCHEMA_QUANTITY};
	node->key = f->name;
	node->text = is_map ? "" : f->default_text;
	node->text_len = strlen(node->text);
	node->next = map->child;
	map->child = node;
	map->n_children++;
	return node;
}

static bool has_numbers(const struct schema *schema)
{
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		if (f->tune.scale != SCHEMA_TUNE_NONE && f->default_text)
			return true;
		if (f->type == SCHEMA_OBJECT && f->set_offset == SCHEMA_NO_OFFSET && has_numbers(f->child))
			return true;
	}
	return false;
}

// `held` is the innermost map that the document itself has.
static void walk_map(struct walk *w, const struct schema *schema, struct doc_node *map, struct doc_node *held,
                     const char *path) // NOLINT(misc-no-recursion): as deep as the schema
{
	for (size_t i = 0; i < schema->n_fields && !w->is_full; i++) {
		const struct schema_field *f = &schema->fields[i];
		struct doc_node *node = child_of(map, f->name);
		bool is_absent = !node || node->kind == DOC_NULL, is_number = f->tune.scale != SCHEMA_TUNE_NONE;
		bool is_plain_object = f->type == SCHEMA_OBJECT && f->set_offset == SCHEMA_NO_OFFSET;
		char here[SCHEMA_PATH_BYTES];
		snprintf(here, sizeof here, "%s%s%s", path, path[0] ? "." : "", f->name);
		if (node && node->kind == DOC_NULL)
			continue; // written as null: leave it alone
		if (is_absent && ((is_number && f->default_text) || (is_plain_object && has_numbers(f->child))))
			node = add_node(w, map, f);
		if (!node)
			continue;
		if (is_number)
			add_number(w, f, node, held, is_absent, here);
		else if (f->type == SCHEMA_OBJECT && node->kind == DOC_MAP)
			walk_map(w, f->child, node, is_absent ? held : node, here);
		size_t index = 0;
		for (struct doc_node *c = f->type == SCHEMA_LIST && node->kind == DOC_SEQ ? node->child : NULL; c;
		     c = c->next, index++) {
			char item[SCHEMA_PATH_BYTES];
			snprintf(item, sizeof item, "%.*s[%zu]", (int)sizeof item - 24, here, index);
			if (c->kind == DOC_MAP && f->child)
				walk_map(w, f->child, c, c, item);
		}
	}
}

// With an objective, a stabilization window, a rate limit or a cooldown would only hinder it: the rules that it
// simulates do not know of them, and `gpuscale check` warns.
static bool hinders_objective(const struct tune_number *n)
{
	return strncmp(n->path, "spec.behavior.", 14) == 0 || strncmp(n->path, "spec.cooldown.", 14) == 0;
}

// The value at a share of the range, which is 0 .. 1.
static double at(const struct tune_number *n, double share)
{
	share = fmin(fmax(share, 0), 1);
	double low = n->is_log ? log(n->min) : n->min, high = n->is_log ? log(n->max) : n->max;
	double v = low + share * (high - low);
	v = rounded(n->field, n->is_log ? exp(v) : v);
	return v < n->min ? n->min : v > n->max ? n->max : v;
}

static double share_of(const struct tune_number *n, double value)
{
	double low = n->is_log ? log(n->min) : n->min, high = n->is_log ? log(n->max) : n->max;
	return high > low ? ((n->is_log ? log(value) : value) - low) / (high - low) : 0;
}

// Whether the rules between fields accept other values of this number alone.
static bool can_vary(struct tune_space *s, const struct tune_number *n)
{
	static const double shares[] = {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
	double values[TUNE_NUMBERS_MAX];
	struct arena a = ARENA(ARENA_MAX);
	bool can = false;
	size_t index = (size_t)(n - s->numbers);
	for (size_t i = 0; i < sizeof shares / sizeof *shares && !can; i++) {
		struct policy p;
		for (size_t k = 0; k < s->n; k++)
			values[k] = s->numbers[k].present;
		values[index] = at(n, shares[i]);
		can = values[index] != n->present && tune_space_decode(s, values, &a, &p) == 0;
		arena_reset(&a);
	}
	arena_done(&a);
	return can;
}

static void keep_variable(struct tune_space *s)
{
	bool keep[TUNE_NUMBERS_MAX];
	size_t kept = 0;
	for (size_t i = 0; i < s->n; i++)
		keep[i] =
		        !(s->policy->objective.set && hinders_objective(&s->numbers[i])) && can_vary(s, &s->numbers[i]);
	for (size_t i = 0; i < s->n; i++)
		if (keep[i])
			s->numbers[kept++] = s->numbers[i];
	s->n = kept;
}

static bool is_document_of(const struct doc_node *root, const struct policy *p)
{
	const struct doc_node *metadata = doc_get(root, "metadata");
	return strcmp(doc_get_text(root, "kind", ""), POLICY_KIND) == 0 &&
	       strcmp(doc_get_text(metadata, "name", ""), p->name) == 0 &&
	       strcmp(doc_get_text(metadata, "namespace", DEFAULT_SPACE), p->namespace_name) == 0;
}

int tune_space_init(struct tune_space *s, const struct policy *policy, const char *text, size_t len, struct err *e)
{
	struct doc_file file;
	memset(s, 0, sizeof *s);
	s->policy = policy;
	arena_init(&s->arena, ARENA_MAX);
	const char *name = policy->file ? policy->file : policy->name;
	if (doc_parse_yaml(&s->arena, name, text, len, &file, e) < 0)
		return -1;
	for (size_t i = 0; i < file.n_roots && !s->root; i++)
		if (is_document_of(file.roots[i], policy))
			s->root = file.roots[i];
	if (!s->root)
		return err_set(e, ERR_INPUT, "%s: has no policy %s/%s", name, policy->namespace_name, policy->name);
	struct walk w = {.s = s};
	walk_map(&w, &policy_schema, s->root, s->root, "");
	if (w.is_full)
		return err_set(e, ERR_LIMIT, "%s: has more than %d numbers that may vary", name, TUNE_NUMBERS_MAX);
	keep_variable(s);
	return s->n > 0 ? 0
	                : err_set(e, ERR_UNSUPPORTED, "%s: policy %s has no number that tune can vary", name,
	                          policy->name);
}

void tune_space_done(struct tune_space *s)
{
	arena_done(&s->arena);
	s->root = NULL;
	s->n = 0;
}

void tune_space_widen(struct tune_space *s, size_t index, double low, double high)
{
	char path[SCHEMA_PATH_BYTES];
	snprintf(path, sizeof path, "spec.signals[%zu].", index);
	for (size_t i = 0; i < s->n && low > 0 && high >= low; i++) {
		struct tune_number *n = &s->numbers[i];
		double was = log(n->max / n->min);
		if (n->field->tune.scale != SCHEMA_TUNE_FACTOR || strncmp(n->path, path, strlen(path)) != 0)
			continue;
		n->min = fmin(n->min, low);
		n->max = fmax(n->max, high);
		n->step = was / log(n->max / n->min);
	}
}

// ---- candidates ----

// 0 <= x < 1.
static double draw(uint64_t *state)
{
	return (double)(hash_draw(state) >> 11) / 9007199254740992.0;
}

static uint64_t start(uint64_t seed, uint64_t index)
{
	uint64_t state = seed;
	draw(&state);
	return state ^ (index * UINT64_C(0xd1342543de82ef95));
}

// The numbers that matter most: thresholds and the objective.
static bool is_main(const struct tune_number *n)
{
	return n->field->tune.scale == SCHEMA_TUNE_FACTOR || strncmp(n->path, "spec.objective.", 15) == 0;
}

// A random main number, or any one when there is none.
static size_t draw_main(const struct tune_space *s, uint64_t *state)
{
	size_t mains[TUNE_NUMBERS_MAX], n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (is_main(&s->numbers[i]))
			mains[n++] = i;
	size_t k = (size_t)(draw(state) * (double)(n > 0 ? n : s->n));
	return n > 0 ? mains[k] : k;
}

// Anywhere in the range, or near a value.
static double draw_value(const struct tune_number *n, uint64_t *state)
{
	bool is_near = draw(state) < 0.5;
	double share = draw(state), other = draw(state), here = share_of(n, n->present);
	return is_near ? at(n, here + (share - other) * NEAR * n->step) : at(n, share);
}

static bool is_widened(const struct tune_space *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->numbers[i].step < 1)
			return true;
	return false;
}

// The first candidates are evenly spaced: all thresholds times one factor, then minReplicas alone, then all widened
// thresholds over the whole of their ranges. They show every search the plain trade-off of cost and lateness.
static bool set_ladder(const struct tune_space *s, uint64_t index, double values[TUNE_NUMBERS_MAX])
{
	if (index > LADDER + FLOORS + (is_widened(s) ? SWEEP : 0))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct tune_number *n = &s->numbers[i];
		double step = (double)(index - 1) / (LADDER - 1);
		if (index <= LADDER && is_main(n))
			values[i] = n->field->tune.scale == SCHEMA_TUNE_FACTOR
			                    ? at(n, share_of(n, n->present * LADDER_LOW *
			                                                pow(LADDER_HIGH / LADDER_LOW, step)))
			                    : at(n, step);
		else if (index > LADDER + FLOORS && n->step < 1)
			values[i] = at(n, (double)(index - LADDER - FLOORS - 1) / (SWEEP - 1));
		else if (index > LADDER && index <= LADDER + FLOORS && strcmp(n->path, "spec.minReplicas") == 0)
			values[i] = at(n, (double)(index - LADDER) / FLOORS);
	}
	return true;
}

void tune_space_draw(const struct tune_space *s, uint64_t seed, uint64_t index, double ret_values[TUNE_NUMBERS_MAX])
{
	uint64_t state = start(seed, index);
	for (size_t i = 0; i < s->n; i++)
		ret_values[i] = s->numbers[i].present;
	if (index == 0 || set_ladder(s, index, ret_values))
		return;
	if (index % 2 == 1) {
		size_t few = (size_t)(draw(&state) * FEW), i = draw_main(s, &state);
		ret_values[i] = draw_value(&s->numbers[i], &state);
		for (size_t k = 0; k < few; k++) {
			i = (size_t)(draw(&state) * (double)s->n);
			ret_values[i] = draw_value(&s->numbers[i], &state);
		}
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		double value = draw_value(&s->numbers[i], &state);
		if (index % 4 == 0 || draw(&state) < 0.5)
			ret_values[i] = value;
	}
}

void tune_space_move(const struct tune_space *s, const double values[], double share, double reach,
                     double ret_values[TUNE_NUMBERS_MAX])
{
	for (size_t i = 0; i < s->n; i++) {
		const struct tune_number *n = &s->numbers[i];
		double step = 2 * share * reach * STEP * n->step;
		ret_values[i] = is_main(n) ? at(n, share_of(n, values[i]) + step) : values[i];
	}
}

void tune_space_vary(const struct tune_space *s, uint64_t seed, uint64_t index, const double values[], double reach,
                     double ret_values[TUNE_NUMBERS_MAX])
{
	uint64_t state = start(seed, index);
	for (size_t i = 0; i < s->n; i++) {
		const struct tune_number *n = &s->numbers[i];
		bool is_changed = values[i] != n->present;
		double way = draw(&state), step = (draw(&state) - draw(&state)) * STEP * n->step * reach;
		ret_values[i] = values[i];
		if (is_changed && way < TAKEN_BACK)
			ret_values[i] = n->present;
		else if (is_changed || way < NEWLY_VARIED)
			ret_values[i] = at(n, share_of(n, values[i]) + step);
	}
	size_t i = draw_main(s, &state);
	const struct tune_number *n = &s->numbers[i];
	double step = (draw(&state) - draw(&state)) * STEP * n->step * reach;
	ret_values[i] = at(n, share_of(n, ret_values[i]) + step);
}

int tune_space_decode(struct tune_space *s, const double values[], struct arena *a, struct policy *ret)
{
	char texts[TUNE_NUMBERS_MAX][TUNE_TEXT_BYTES];
	struct doc_node before[TUNE_NUMBERS_MAX];
	struct schema_errors errors;
	schema_errors_init(&errors, s->policy->name);
	for (size_t i = 0; i < s->n; i++) {
		struct doc_node *node = s->numbers[i].node;
		before[i] = *node;
		if (values[i] == s->numbers[i].present)
			continue;
		tune_number_text(&s->numbers[i], values[i], texts[i]);
		node->text = texts[i];
		node->text_len = strlen(texts[i]);
		node->quoted = s->numbers[i].field->type == SCHEMA_QUANTITY;
	}
	struct policy_document document = {0};
	int rc = policy_decode(s->root, &document, a, &errors);
	*ret = document.policy;
	for (size_t i = 0; i < s->n; i++)
		*s->numbers[i].node = before[i];
	ret->file = s->policy->file;
	for (size_t i = 0; rc == 0 && i < ret->n_schedules && i < s->policy->n_schedules; i++)
		ret->schedules[i].zone = s->policy->schedules[i].zone;
	return rc;
}

// ---- the patch: the file with some of its numbers changed; all other content is preserved ----

#define INSERT_BYTES_MAX 4096
#define SAME             1e-6

struct edit {
	size_t offset, removed;
	struct buf text; // put in place of what is removed
};

struct patch {
	const struct tune_space *space;
	const double *values;
	const char *text;
	size_t len;
	struct edit edits[TUNE_NUMBERS_MAX];
	size_t n_edits;
};

static bool differs(const struct patch *p, size_t i)
{
	return p->values[i] != p->space->numbers[i].present;
}

// The byte at a position of a document, whose columns count characters.
static size_t offset_of(const struct patch *p, int line, int col)
{
	size_t i = 0;
	for (; line > 1 && i < p->len; i++)
		line -= p->text[i] == '\n';
	for (; col > 1 && i < p->len; col--)
		for (i++; i < p->len && ((unsigned char)p->text[i] & 0xc0) == 0x80; i++)
			;
	return i;
}

static struct edit *add_edit(struct patch *p, size_t offset, size_t removed)
{
	struct edit *edit = &p->edits[p->n_edits++];
	edit->offset = offset;
	edit->removed = removed;
	buf_init(&edit->text, INSERT_BYTES_MAX);
	return edit;
}

static void put_value(const struct patch *p, size_t i, struct buf *out)
{
	const struct tune_number *n = &p->space->numbers[i];
	bool is_quoted = n->field->type == SCHEMA_QUANTITY || (n->node->quoted && !n->is_added);
	char value[TUNE_TEXT_BYTES];
	tune_number_text(n, p->values[i], value);
	buf_printf(out, is_quoted ? "\"%s\"" : "%s", value);
}

static void replace_number(struct patch *p, size_t i)
{
	const struct doc_node *node = p->space->numbers[i].node;
	size_t offset = offset_of(p, node->line, node->col);
	put_value(p, i, &add_edit(p, offset, node->text_len + (node->quoted ? 2 : 0))->text);
}

// ---- numbers that the document does not have ----

// The changed number that `node` is, or p->space->n.
static size_t number_of(const struct patch *p, const struct doc_node *node)
{
	size_t i = 0;
	while (i < p->space->n && !(p->space->numbers[i].node == node && differs(p, i)))
		i++;
	return i;
}

static bool holds_change(const struct patch *p, const struct doc_node *node) // NOLINT(misc-no-recursion)
{
	if (number_of(p, node) < p->space->n)
		return true;
	for (const struct doc_node *c = node->child; c; c = c->next)
		if (holds_change(p, c))
			return true;
	return false;
}

static void put_added(const struct patch *p, const struct doc_node *node, struct buf *out) // NOLINT(misc-no-recursion)
{
	const char *separator = "";
	buf_printf(out, "%s: ", node->key);
	if (node->kind != DOC_MAP) {
		put_value(p, number_of(p, node), out);
		return;
	}
	buf_putc(out, '{');
	for (const struct doc_node *c = node->child; c; c = c->next) {
		if (!holds_change(p, c))
			continue;
		buf_puts(out, separator);
		put_added(p, c, out);
		separator = ", ";
	}
	buf_putc(out, '}');
}

// Puts the added fields of `map` before its first own one, in the style of the map.
static void insert_numbers(struct patch *p, const struct doc_node *map)
{
	const struct doc_node *first = map->child;
	while (first && first->key_line == 0)
		first = first->next;
	size_t offset = first ? offset_of(p, first->key_line, first->key_col) : offset_of(p, map->line, map->col) + 1;
	size_t before = offset;
	while (before > 0 && strchr(" \t\r\n", p->text[before - 1]))
		before--;
	bool is_flow = before > 0 && p->text[before - 1] == '{';
	struct buf *out = &add_edit(p, offset, 0)->text;
	const char *separator = "";
	for (const struct doc_node *c = map->child; c; c = c->next) {
		if (c->key_line > 0 || !holds_change(p, c))
			continue;
		if (is_flow)
			buf_puts(out, separator);
		put_added(p, c, out);
		separator = ", ";
		if (!is_flow)
			buf_printf(out, "\n%*s", first ? first->key_col - 1 : 0, "");
	}
	if (is_flow && first)
		buf_puts(out, ", ");
}

static int by_offset(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int apply_edits(struct patch *p, struct buf *out)
{
	size_t at = 0;
	qsort(p->edits, p->n_edits, sizeof *p->edits, by_offset);
	for (size_t i = 0; i < p->n_edits; i++) {
		const struct edit *edit = &p->edits[i];
		if (edit->offset < at || edit->offset + edit->removed > p->len || edit->text.failed)
			return -1;
		buf_put(out, p->text + at, edit->offset - at);
		buf_put(out, buf_str(&edit->text), edit->text.len);
		at = edit->offset + edit->removed;
	}
	buf_put(out, p->text + at, p->len - at);
	return out->failed ? -1 : 0;
}

// Whether the result says what was meant, and nothing else.
static bool reads_back(const struct patch *p, const char *text, size_t len)
{
	struct tune_space again;
	struct err e;
	bool same = tune_space_init(&again, p->space->policy, text, len, &e) == 0;
	for (size_t i = 0; same && i < p->space->n; i++) {
		size_t k = 0;
		while (k < again.n && strcmp(again.numbers[k].path, p->space->numbers[i].path) != 0)
			k++;
		same = k < again.n ? fabs(again.numbers[k].present - p->values[i]) <= SAME * fabs(p->values[i])
		                   : !differs(p, i);
	}
	tune_space_done(&again);
	return same;
}

int tune_patch_write(const struct tune_space *space, const double values[], const char *text, size_t len,
                     struct buf *out, struct err *e)
{
	struct patch p = {.space = space, .values = values, .text = text, .len = len};
	size_t start = out->len;
	for (size_t i = 0; i < space->n; i++) {
		const struct tune_number *n = &space->numbers[i];
		bool is_inserted = false;
		if (!differs(&p, i))
			continue;
		for (size_t k = 0; k < i; k++)
			is_inserted = is_inserted ||
			              (differs(&p, k) && space->numbers[k].is_added && space->numbers[k].map == n->map);
		if (!n->is_added)
			replace_number(&p, i);
		else if (!is_inserted)
			insert_numbers(&p, n->map);
	}
	int rc = apply_edits(&p, out);
	for (size_t i = 0; i < p.n_edits; i++)
		buf_done(&p.edits[i].text);
	if (rc < 0 || !reads_back(&p, buf_str(out) + start, out->len - start))
		return err_set(e, ERR_UNSUPPORTED,
		               "%s: the numbers cannot be replaced in the file: change them by hand",
		               space->policy->file ? space->policy->file : space->policy->name);
	return 0;
}
