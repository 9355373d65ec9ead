// SPDX-License-Identifier: Apache-2.0
// The answer under construction: series with their labels and samples, and warnings, within limits.
#include "base/arena.h"
#include "base/base.h"
#include "base/hash.h"
#include "promql/promql_decoder.h"

#define SCRATCH_KEPT    64 // series, and samples of a series, that an answer keeps room for between replies
#define DUPLICATES_KEPT 256

// Answers up to this size are not counted: the number of requests in flight limits them.
#define SMALL_BYTES ((size_t)64 * 1024)

// ---- the budget ----

static void free_scratch(struct promql_answer *a)
{
	free(a->series);
	free(a->samples);
	free(a->hashes);
	a->series = NULL;
	a->samples = NULL;
	a->hashes = NULL;
	a->cap_series = a->cap_samples = a->cap_hashes = 0;
}

static void free_memory(struct promql_answer *a)
{
	free_scratch(a);
	arena_done(a->arena);
}

void promql_answer_detach(struct promql_answer *a)
{
	if (!a->budget)
		return;
	LIST_REMOVE(a, link);
	a->budget->used_bytes -= a->bytes;
	a->bytes = 0;
	a->budget = NULL;
}

static struct promql_answer *largest(const struct promql_budget *budget)
{
	struct promql_answer *most = LIST_FIRST(&budget->answers), *a;
	LIST_FOREACH(a, &budget->answers, link)
	if (a->bytes > most->bytes)
		most = a;
	return most;
}

// Sets the share of the answer to `bytes` and evicts the largest answers until it fits. Returns false when this answer
// is the largest, and evicted.
static bool hold(struct promql_answer *a, struct promql_budget *budget, size_t bytes)
{
	if (bytes <= SMALL_BYTES)
		return true;
	if (!a->budget)
		LIST_INSERT_HEAD(&budget->answers, a, link);
	a->budget = budget;
	budget->used_bytes += bytes - a->bytes; // unsigned arithmetic wraps, so the share may shrink
	a->bytes = bytes;
	while (a->budget && budget->used_bytes > budget->max_bytes) {
		struct promql_answer *most = largest(budget);
		most->lost_bytes = most->bytes;
		promql_answer_detach(most);
		free_memory(most);
	}
	return a->budget != NULL;
}

// ---- life ----

void promql_answer_done(struct promql_answer *a)
{
	promql_answer_detach(a);
	free_scratch(a);
}

void promql_answer_start(struct promql_answer *a, const struct promql_decoder_options *o)
{
	promql_answer_detach(a);
	if (a->cap_series > SCRATCH_KEPT || a->cap_samples > SCRATCH_KEPT || a->cap_hashes > DUPLICATES_KEPT)
		free_scratch(a);
	else if (a->hashes)
		memset(a->hashes, 0, a->cap_hashes * sizeof *a->hashes);
	arena_reset(a->arena);
	a->options = *o;
	a->options.max_series = o->max_series ? o->max_series : PROMQL_SERIES_MAX;
	a->lost_bytes = 0;
	a->n_warnings = 0;
	a->n_series = a->n_samples = 0;
}

// ---- memory ----

static int evicted(const struct promql_answer *a, struct err *e)
{
	return err_set(e, ERR_TOO_LARGE,
	               "the answers being read at the same time need more than the ceiling of %zu bytes, and this one "
	               "held most of it: %zu bytes; aggregate in the query",
	               a->options.budget->max_bytes, a->lost_bytes);
}

int promql_answer_check(const struct promql_answer *a, struct err *e)
{
	return a->lost_bytes ? evicted(a, e) : 0;
}

// Call this when more memory is used than before.
static int check_memory(struct promql_answer *a, struct err *e)
{
	size_t held = a->arena->held_bytes + a->cap_series * sizeof *a->series + a->cap_samples * sizeof *a->samples +
	              a->cap_hashes * sizeof *a->hashes;
	size_t max = a->options.max_bytes;
	if (max && held > max)
		return err_set(
		        e, ERR_TOO_LARGE,
		        "the answer needs %zu bytes of memory or more; the ceiling is %zu: aggregate in the query",
		        held, max);
	return !a->options.budget || hold(a, a->options.budget, held) ? 0 : evicted(a, e);
}

// The rest of promql_answer_alloc when the arena had no room (p is NULL) or had to grow. Apart from it, because
// inlined it costs every label more instructions than the allocation.
__attribute__((noinline)) static void *alloc_slowly(struct promql_answer *a, void *p, struct err *e)
{
	if (p)
		return check_memory(a, e) < 0 ? NULL : p;
	err_set(e, ERR_TOO_LARGE, "the decoded answer needs more than the ceiling of %zu bytes", a->arena->max_bytes);
	return NULL;
}

void *promql_answer_alloc(struct promql_answer *a, size_t bytes, struct err *e)
{
	size_t held = a->arena->held_bytes;
	void *p = arena_alloc(a->arena, bytes);
	return p && a->arena->held_bytes == held ? p : alloc_slowly(a, p, e);
}

const char *promql_answer_copy_text(struct promql_answer *a, const char *text, size_t len, struct err *e)
{
	char *copy = promql_answer_alloc(a, len + 1, e);
	if (copy)
		memcpy(copy, text, len);
	return copy;
}

// Makes room for one more element of a scratch array.
static int grow(struct promql_answer *a, void *array, size_t *cap, size_t size, struct err *e)
{
	if (alloc_reserve(array, *cap, cap, size, 8) < 0)
		return err_no_memory(e);
	return check_memory(a, e);
}

// ---- labels ----

// The name under which a label is kept; NULL and no error when it is not.
static const char *name_to_keep(const struct promql_answer *a, const char *text, size_t len)
{
	for (const char *const *name = a->options.labels; *name; name++)
		if (strncmp(*name, text, len) == 0 && (*name)[len] == '\0')
			return *name;
	return NULL;
}

// Apart from promql_answer_add_label_name, so that not every label pays for the protection of `line`.
__attribute__((noinline)) static int label_twice(const struct promql_answer *a, const char *text, size_t len,
                                                 struct err *e)
{
	char line[PROMQL_NAME_BYTES];
	promql_text_show(line, sizeof line, text, len < sizeof line ? len : sizeof line);
	return err_set(e, ERR_INPUT, "data.result[%zu].metric has the label %s twice", a->n_series, line);
}

int promql_answer_add_label_name(struct promql_answer *a, const char *text, size_t len, struct err *e)
{
	struct current_series *s = &a->current;
	if (s->n_labels == PROMQL_LABELS_MAX)
		return err_set(e, ERR_LIMIT, "data.result[%zu] has %d labels or more; the ceiling is %d", a->n_series,
		               PROMQL_LABELS_MAX + 1, PROMQL_LABELS_MAX);
	s->label_hash = hash_bytes(HASH_START, text, len);
	for (size_t i = 0; i < s->n_labels; i++)
		if (s->name_hashes[i] == s->label_hash)
			return label_twice(a, text, len, e);
	s->name_hashes[s->n_labels++] = s->label_hash;
	if (a->options.labels) {
		s->kept_name = name_to_keep(a, text, len);
		return 0;
	}
	s->kept_name = promql_answer_copy_text(a, text, len, e);
	return s->kept_name ? 0 : -1;
}

int promql_answer_add_label_value(struct promql_answer *a, const char *text, size_t len, struct err *e)
{
	struct current_series *s = &a->current;
	s->hash += hash_mix(hash_bytes(s->label_hash ^ 0xff, text, len));
	if (!s->kept_name)
		return 0;
	const char *value = promql_answer_copy_text(a, text, len, e);
	if (!value)
		return -1;
	s->labels[s->n_kept++] = (struct promql_label){s->kept_name, value};
	return 0;
}

// ---- samples ----

static int count_sample(struct promql_answer *a, struct err *e)
{
	if (a->n_samples == PROMQL_SAMPLES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the answer has %zu samples or more; the ceiling is %d",
		               a->n_samples + 1, PROMQL_SAMPLES_MAX);
	a->n_samples++;
	return 0;
}

int promql_answer_set_sample(struct promql_answer *a, const struct promql_sample *sample, struct err *e)
{
	if (count_sample(a, e) < 0)
		return -1;
	a->current.sample = *sample;
	return 0;
}

int promql_answer_append_sample(struct promql_answer *a, const struct promql_sample *sample, struct err *e)
{
	if (count_sample(a, e) < 0)
		return -1;
	size_t n = a->current.n_samples;
	if (n && sample->time_ms < a->samples[n - 1].time_ms)
		return err_set(e, ERR_PROTOCOL, "data.result[%zu].values[%zu]: the time goes back", a->n_series, n);
	if (n == a->cap_samples && grow(a, &a->samples, &a->cap_samples, sizeof *a->samples, e) < 0)
		return -1;
	a->samples[a->current.n_samples++] = *sample;
	return 0;
}

// ---- series ----

int promql_answer_begin_series(struct promql_answer *a, struct err *e)
{
	if (a->n_series == a->options.max_series)
		return err_set_code(e, ERR_TOO_LARGE, (int)a->n_series,
		                    "the answer has %zu series or more; the ceiling is %zu: aggregate in the query",
		                    a->n_series + 1, a->n_series);
	a->current.hash = 0;
	a->current.n_labels = a->current.n_kept = a->current.n_samples = 0;
	return 0;
}

const char *promql_answer_series_name(const struct promql_answer *a, char out[static PROMQL_TEXT_BYTES])
{
	const struct current_series *s = &a->current;
	char raw[PROMQL_TEXT_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < s->n_kept && used < sizeof raw; i++) {
		int n = snprintf(raw + used, sizeof raw - used, "%s%.60s=\"%.60s\"", i ? ", " : "{", s->labels[i].name,
		                 s->labels[i].value);
		used += n > 0 ? (size_t)n : 0;
	}
	if (used + 1 < sizeof raw)
		snprintf(raw + used, sizeof raw - used, s->n_kept ? "}" : "{}");
	return promql_text_show(out, PROMQL_TEXT_BYTES, raw, strlen(raw));
}

static int put_hash(uint64_t *hashes, size_t cap, uint64_t h)
{
	size_t i = (size_t)h & (cap - 1);
	while (hashes[i] && hashes[i] != h)
		i = (i + 1) & (cap - 1);
	if (hashes[i] == h)
		return -1;
	hashes[i] = h;
	return 0;
}

static int grow_hashes(struct promql_answer *a, struct err *e)
{
	size_t cap = a->cap_hashes ? a->cap_hashes * 2 : 16;
	uint64_t *hashes = calloc(cap, sizeof *hashes);
	if (!hashes)
		return err_no_memory(e);
	for (size_t i = 0; i < a->cap_hashes; i++)
		if (a->hashes[i])
			put_hash(hashes, cap, a->hashes[i]);
	free(a->hashes);
	a->hashes = hashes;
	a->cap_hashes = cap;
	return check_memory(a, e);
}

// Equal label sets are found by a hash of 64 bits: that two different ones of 5000 have the same one is less likely
// than 1 in 10^12, and then the answer is refused, not misread.
static int check_twice(struct promql_answer *a, struct err *e)
{
	uint64_t h = hash_mix(a->current.hash + a->current.n_labels);
	if (2 * (a->n_series + 1) > a->cap_hashes && grow_hashes(a, e) < 0)
		return -1;
	if (put_hash(a->hashes, a->cap_hashes, h ? h : 1) == 0)
		return 0;
	char name[PROMQL_TEXT_BYTES];
	return err_set(
	        e, ERR_INPUT,
	        "data.result[%zu]: the series %s is there twice; which of its values counts cannot be known: aggregate "
	        "in the query",
	        a->n_series, promql_answer_series_name(a, name));
}

static int put_series(struct promql_answer *a, const struct promql_sample *from, size_t n_samples, struct err *e)
{
	const struct current_series *s = &a->current;
	if (a->n_series == a->cap_series && grow(a, &a->series, &a->cap_series, sizeof *a->series, e) < 0)
		return -1;
	struct promql_label *labels = promql_answer_alloc(a, s->n_kept * sizeof *labels, e);
	struct promql_sample *samples = labels ? promql_answer_alloc(a, n_samples * sizeof *samples, e) : NULL;
	if (!samples)
		return -1;
	if (s->n_kept)
		memcpy(labels, s->labels, s->n_kept * sizeof *labels);
	if (n_samples)
		memcpy(samples, from, n_samples * sizeof *samples);
	a->series[a->n_series++] = (struct promql_series){labels, s->n_kept, samples, n_samples};
	return 0;
}

int promql_answer_end_series(struct promql_answer *a, enum promql_type type, struct err *e)
{
	if (check_twice(a, e) < 0)
		return -1;
	return type == PROMQL_VECTOR ? put_series(a, &a->current.sample, 1, e)
	                             : put_series(a, a->samples, a->current.n_samples, e);
}

// ---- warnings ----

int promql_answer_add_warning(struct promql_answer *a, const char *text, size_t len, struct err *e)
{
	if (a->n_warnings == PROMQL_WARNINGS_MAX)
		return 0;
	char line[PROMQL_TEXT_BYTES];
	promql_text_show(line, sizeof line, text, len);
	const char *copy = promql_answer_copy_text(a, line, strlen(line), e);
	if (!copy)
		return -1;
	a->warnings[a->n_warnings++] = copy;
	return 0;
}

// ---- the result ----

int promql_answer_list_series(struct promql_answer *a, struct promql_result *ret, struct err *e)
{
	struct promql_series *series = a->n_series ? promql_answer_alloc(a, a->n_series * sizeof *series, e) : NULL;
	if (a->n_series && !series)
		return -1;
	if (a->n_series)
		memcpy(series, a->series, a->n_series * sizeof *series);
	ret->series = series;
	ret->n_series = a->n_series;
	return 0;
}

int promql_answer_list_warnings(struct promql_answer *a, bool is_partial, struct promql_result *ret, struct err *e)
{
	size_t n = a->n_warnings + is_partial, i = 0;
	const char **list = n ? promql_answer_alloc(a, n * sizeof *list, e) : NULL;
	if (n && !list)
		return -1;
	if (is_partial)
		list[i++] = "the server marked the answer as partial: some of its storage is away";
	if (a->n_warnings)
		memcpy(list + i, a->warnings, a->n_warnings * sizeof *list);
	ret->warnings = list;
	ret->n_warnings = n;
	return 0;
}
