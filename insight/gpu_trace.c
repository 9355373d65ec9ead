// SPDX-License-Identifier: Apache-2.0
#include "insight/gpu_trace.h"

#include <math.h>

#include "base/base.h"

#define SPANS_FIRST  1024
#define SLOTS        64                   // slots of a gap: one bit each
#define ZERO_GAP_NS  INT64_C(60000000000) // events at 0 are isolated when the others start that much later,
#define ZERO_WINDOWS 100                  // and that many times as late as they last
#define NAMES_BYTES  ((size_t)64 * 1024 * 1024)
#define OTHER        "(other)"

// A gap as equal slots: bit k of covered[a] is set when activity a covered the middle of slot k. Nested operations and
// several threads therefore count once, in any order of events.
struct gpu_gap {
	int64_t start_ns, end_ns;
	uint64_t covered[TRACE_UNKNOWN];
	int32_t at; // in gpu_trace.longest, or -1
};

// ---- spans ----

static void span_set_done(struct span_set *s)
{
	free(s->spans);
	*s = (struct span_set){0};
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

// Sorts the spans and joins those that overlap or touch.
static void span_set_join(struct span_set *s)
{
	bool sorted = true;
	for (size_t i = 1; i < s->n && sorted; i++)
		sorted = s->spans[i - 1].start_ns <= s->spans[i].start_ns;
	if (!sorted)
		qsort(s->spans, s->n, sizeof *s->spans, by_start);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct span *x = &s->spans[i];
		if (n > 0 && x->start_ns <= s->spans[n - 1].end_ns) {
			if (x->end_ns > s->spans[n - 1].end_ns)
				s->spans[n - 1].end_ns = x->end_ns;
		} else {
			s->spans[n++] = *x;
		}
	}
	s->n = n;
}

// Joins first; grows only when that freed less than half.
static int make_room(struct span_set *s, struct err *e)
{
	span_set_join(s);
	if (s->cap > 0 && s->n < s->cap / 2)
		return 0;
	if (s->n >= GPU_TRACE_SPANS_MAX)
		return err_set(e, ERR_LIMIT,
		               "a GPU of this trace has more than %zu separate busy spans: record fewer "
		               "steps",
		               GPU_TRACE_SPANS_MAX);
	if (alloc_reserve(&s->spans, s->cap, &s->cap, sizeof *s->spans, SPANS_FIRST) < 0)
		return err_no_memory(e);
	return 0;
}

static int span_set_add(struct span_set *s, int64_t start_ns, int64_t end_ns, struct err *e)
{
	struct span *last = s->n > 0 ? &s->spans[s->n - 1] : NULL;
	if (last && start_ns >= last->start_ns && start_ns <= last->end_ns) { // the usual order of a trace
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return 0;
	}
	if (s->n == s->cap && make_room(s, e) < 0)
		return -1;
	s->spans[s->n++] = (struct span){start_ns, end_ns};
	return 0;
}

// Returns the length of a joined union.
static int64_t span_set_length_ns(const struct span_set *s)
{
	int64_t sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += s->spans[i].end_ns - s->spans[i].start_ns;
	return sum;
}

// ---- kernels ----

static void kernels_done(struct kernel_table *t)
{
	HASH_CLEAR(hh, t->by_name);
	free(t->rows);
	arena_done(&t->names);
}

// Counts one run of the kernel.
static int kernels_add(struct kernel_table *t, const char *name, int64_t ns, struct err *e)
{
	struct kernel_time *row;
	if (!t->rows) {
		arena_init(&t->names, NAMES_BYTES);
		t->rows = err_calloc((GPU_TRACE_KERNELS_MAX + 1) * sizeof *t->rows, e);
	}
	if (!t->rows)
		return -1;
	HASH_FIND_STR(t->by_name, name, row);
	const char *copy = !row && t->n < GPU_TRACE_KERNELS_MAX ? arena_strdup(&t->names, name) : NULL;
	if (!row && !copy)
		HASH_FIND_STR(t->by_name, OTHER, row);
	if (!row) {
		row = &t->rows[t->n++];
		row->name = copy ? copy : OTHER;
		HASH_ADD_KEYPTR(hh, t->by_name, row->name, strlen(row->name), row);
	}
	row->total_ns = ns > INT64_MAX - row->total_ns ? INT64_MAX : row->total_ns + ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	row->count++;
	return 0;
}

static int by_total(const void *a, const void *b)
{
	const struct kernel_time *x = a, *y = b;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

// Ends the counting: the table no longer finds its rows.
static void kernels_sort(struct kernel_table *t)
{
	HASH_CLEAR(hh, t->by_name);
	if (t->n > 0)
		qsort(t->rows, t->n, sizeof *t->rows, by_total);
}

// ---- the trace ----

void gpu_trace_init(struct gpu_trace *t, size_t n_longest)
{
	*t = (struct gpu_trace){.n_wanted = n_longest < GPU_TRACE_LONG_MAX ? n_longest : GPU_TRACE_LONG_MAX};
}

void gpu_trace_done(struct gpu_trace *t)
{
	for (size_t i = 0; i < t->n_gpus; i++) {
		span_set_done(&t->gpus[i]->spans);
		span_set_done(&t->gpus[i]->collectives);
		free(t->gpus[i]);
	}
	kernels_done(&t->kernels);
	free(t->gaps);
	*t = (struct gpu_trace){0};
}

int64_t gpu_trace_window_ns(const struct gpu_trace *t)
{
	return t->end_ns - t->start_ns;
}

double gpu_trace_idle_ratio(const struct gpu_trace *t, const struct trace_gpu *g)
{
	int64_t window_ns = gpu_trace_window_ns(t);
	return window_ns > 0 ? (double)(window_ns - g->busy_ns) / (double)window_ns : 0;
}

// ---- the first pass ----

const char *gpu_trace_name(const struct trace_gpu *g, char out[GPU_TRACE_TEXT])
{
	bool is_shared = g->is_shared_index && g->process[0];
	snprintf(out, GPU_TRACE_TEXT, "%s%s%d", is_shared ? g->process : "", is_shared ? "/" : "", (int)g->index);
	return out;
}

static int order_of(const struct trace_gpu *g, const struct trace_event *event)
{
	int order = strncmp(g->process, event->process ? event->process : "", GPU_TRACE_TEXT - 1);
	return g->index != event->gpu ? (g->index > event->gpu) - (g->index < event->gpu) : order;
}

static struct trace_gpu *gpu_of(struct gpu_trace *t, const struct trace_event *event, struct err *e)
{
	size_t i = 0;
	while (i < t->n_gpus && order_of(t->gpus[i], event) < 0)
		i++;
	if (i < t->n_gpus && order_of(t->gpus[i], event) == 0)
		return t->gpus[i];
	if (t->n_gpus == GPU_TRACE_GPUS_MAX) {
		err_set(e, ERR_LIMIT, "more than %d GPUs", GPU_TRACE_GPUS_MAX);
		return NULL;
	}
	struct trace_gpu *g = err_calloc(sizeof *g, e);
	if (!g)
		return NULL;
	g->index = event->gpu;
	snprintf(g->process, sizeof g->process, "%s", event->process ? event->process : "");
	memmove(&t->gpus[i + 1], &t->gpus[i], (t->n_gpus - i) * sizeof t->gpus[0]);
	t->gpus[i] = g;
	t->n_gpus++;
	return g;
}

// The record of a host's thread; NULL: too many threads.
static struct trace_thread *thread_of(struct gpu_trace *t, uint64_t key)
{
	size_t i = (key ^ key >> 32) % GPU_TRACE_THREADS;
	key += key == 0;
	while (t->threads[i].key && t->threads[i].key != key)
		i = (i + 1) % GPU_TRACE_THREADS;
	if (!t->threads[i].key && t->n_threads >= GPU_TRACE_THREADS / 2)
		return NULL;
	t->n_threads += !t->threads[i].key;
	t->threads[i].key = key;
	return &t->threads[i];
}

static void note_thread(struct gpu_trace *t, const struct trace_event *event)
{
	struct trace_thread *thread = thread_of(t, event->thread);
	if (!thread)
		return;
	thread->works |= !event->is_frame;
	thread->launches |= !event->is_frame && trace_is_launch(event->name);
	thread->pins |= !event->is_frame && trace_is_pin_operator(event->name);
	thread->is_pin_thread |= event->is_frame && trace_is_pin_thread(event->name);
	t->has_work |= thread->works && !thread->is_pin_thread;
	t->has_launches |= thread->launches;
}

// Whether an event explains no gap: it belongs to a thread that pins memory, or is a Python function of a thread that
// executes nothing else while other threads do.
static bool is_of_other_thread(struct gpu_trace *t, const struct trace_event *event)
{
	const struct trace_thread *thread = thread_of(t, event->thread);
	return thread && (thread->is_pin_thread || (thread->pins && !thread->launches && t->has_launches) ||
	                  (event->is_frame && !thread->works && t->has_work));
}

int gpu_trace_first(void *arg, const struct trace_event *event, struct err *e)
{
	struct gpu_trace *t = arg;
	if (event->place == TRACE_NOWHERE)
		return 0;
	if (event->place == TRACE_ON_HOST)
		note_thread(t, event);
	if (event->start_ns == 0) {
		t->n_zero++;
		t->zero_end_ns = event->end_ns > t->zero_end_ns ? event->end_ns : t->zero_end_ns;
	} else if (t->n_events++ == 0) {
		t->start_ns = event->start_ns;
		t->end_ns = event->end_ns;
	}
	if (event->start_ns != 0) {
		t->start_ns = event->start_ns < t->start_ns ? event->start_ns : t->start_ns;
		t->end_ns = event->end_ns > t->end_ns ? event->end_ns : t->end_ns;
	}
	if (event->place != TRACE_ON_GPU)
		return 0;
	struct trace_gpu *g = gpu_of(t, event, e);
	if (!g)
		return -1;
	struct span_set *spans = event->activity == TRACE_COLLECTIVE ? &g->collectives : &g->spans;
	return span_set_add(spans, event->start_ns, event->end_ns, e);
}

static void drop_zero(struct span_set *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->spans[i].start_ns != 0)
			s->spans[n++] = s->spans[i];
	s->n = n;
}

// Some programs write events at time 0 into a trace whose clock counts since 1970 or since the start of the machine.
// They are left out; those of a clock that starts with the trace are part of it.
static void decide_zeros(struct gpu_trace *t)
{
	int64_t gap_ns = t->start_ns - t->zero_end_ns, window_ns = t->end_ns - t->start_ns;
	if (t->n_events > 0 && t->n_zero > 0 && gap_ns > ZERO_GAP_NS && gap_ns / ZERO_WINDOWS > window_ns) {
		size_t n = 0;
		for (size_t i = 0; i < t->n_gpus; i++) {
			struct trace_gpu *g = t->gpus[i];
			drop_zero(&g->spans);
			drop_zero(&g->collectives);
			if (g->spans.n + g->collectives.n > 0) {
				t->gpus[n++] = g;
				continue;
			}
			span_set_done(&g->spans);
			span_set_done(&g->collectives);
			free(g);
		}
		t->n_gpus = n;
	} else if (t->n_zero > 0) {
		t->start_ns = t->n_events > 0 && t->start_ns < 0 ? t->start_ns : 0;
		t->end_ns = t->zero_end_ns > t->end_ns || t->n_events == 0 ? t->zero_end_ns : t->end_ns;
		t->n_zero = 0;
	}
}

// ---- gaps ----

typedef void gap_fn(void *arg, size_t gpu, int64_t start_ns, int64_t end_ns);

static void for_each_gap(const struct gpu_trace *t, gap_fn *fn, void *arg)
{
	for (size_t i = 0; i < t->n_gpus; i++) {
		const struct span_set *s = &t->gpus[i]->spans;
		int64_t from_ns = t->start_ns;
		for (size_t k = 0; k <= s->n; k++) {
			int64_t to_ns = k < s->n ? s->spans[k].start_ns : t->end_ns;
			if (to_ns > from_ns)
				fn(arg, i, from_ns, to_ns);
			from_ns = k < s->n ? s->spans[k].end_ns : from_ns;
		}
	}
}

struct gap_count {
	int64_t at_least_ns;
	size_t n;
};

static void count_gap(void *arg, size_t gpu, int64_t start_ns, int64_t end_ns)
{
	struct gap_count *c = arg;
	c->n += end_ns - start_ns >= c->at_least_ns;
}

static void keep_gap(void *arg, size_t gpu, int64_t start_ns, int64_t end_ns)
{
	struct gpu_trace *t = arg;
	struct trace_gpu *g = t->gpus[gpu];
	int64_t ns = end_ns - start_ns;
	g->longest_gap_ns = ns > g->longest_gap_ns ? ns : g->longest_gap_ns;
	if (ns >= t->unattributed_below_ns)
		t->gaps[t->n_gaps++] = (struct gpu_gap){.start_ns = start_ns, .end_ns = end_ns, .at = -1};
	else
		g->idle_ns[TRACE_UNKNOWN] += (double)ns;
	t->first_gap[gpu + 1] = t->n_gaps;
}

static int longer_first(const void *a, const void *b)
{
	const struct gpu_gap *x = *(struct gpu_gap *const *)a, *y = *(struct gpu_gap *const *)b;
	int64_t x_ns = x->end_ns - x->start_ns, y_ns = y->end_ns - y->start_ns;
	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int choose_longest(struct gpu_trace *t, struct err *e)
{
	struct gpu_gap **order = malloc((t->n_gaps + 1) * sizeof *order);
	if (!order)
		return err_no_memory(e);
	for (size_t i = 0; i < t->n_gaps; i++)
		order[i] = &t->gaps[i];
	qsort(order, t->n_gaps, sizeof *order, longer_first);
	t->n_longest = t->n_gaps < t->n_wanted ? t->n_gaps : t->n_wanted;
	for (size_t i = 0; i < t->n_longest; i++) {
		struct trace_gap *g = &t->longest[i];
		size_t at = (size_t)(order[i] - t->gaps), gpu = 0;
		while (t->first_gap[gpu + 1] <= at)
			gpu++;
		order[i]->at = (int32_t)i;
		*g = (struct trace_gap){.gpu = t->gpus[gpu],
		                        .start_ns = order[i]->start_ns - t->start_ns,
		                        .end_ns = order[i]->end_ns - t->start_ns,
		                        .host_ns = INT64_MAX};
	}
	free(order);
	return 0;
}

// Adds a span, in ns since the start of the window, to a timeline.
static void add_to_bins(const struct gpu_trace *t, double bins[GPU_TRACE_BINS], double from_ns, double to_ns)
{
	double bin_ns = (double)gpu_trace_window_ns(t) / GPU_TRACE_BINS, from = from_ns / bin_ns, to = to_ns / bin_ns;
	if (!(bin_ns > 0))
		return;
	for (size_t k = (size_t)from; k < GPU_TRACE_BINS && (double)k < to; k++)
		bins[k] += fmin(to, (double)k + 1) - fmax(from, (double)k);
}

int gpu_trace_find_gaps(struct gpu_trace *t, struct err *e)
{
	decide_zeros(t);
	if (t->n_gpus == 0 && t->other_device[0])
		return err_set(e, ERR_INPUT,
		               "the trace has device activity of \"%s\", which is not supported, and no "
		               "kernel, memcpy or memset of a GPU",
		               t->other_device);
	if (t->n_gpus == 0)
		return err_set(
		        e, ERR_INPUT,
		        "the trace has no kernel, memcpy or memset of a GPU: record it with the activities of the "
		        "device, such as ProfilerActivity.CUDA for NVIDIA and AMD, on a machine with a GPU");
	for (size_t i = 0; i < t->n_gpus; i++) {
		struct trace_gpu *g = t->gpus[i];
		for (size_t k = 0; k < t->n_gpus; k++)
			g->is_shared_index |= k != i && t->gpus[k]->index == g->index;
		span_set_join(&g->spans);
		int64_t other_ns = span_set_length_ns(&g->spans);
		for (size_t k = 0; k < g->collectives.n; k++)
			if (span_set_add(&g->spans, g->collectives.spans[k].start_ns, g->collectives.spans[k].end_ns,
			                 e) < 0)
				return -1;
		span_set_done(&g->collectives);
		span_set_join(&g->spans);
		g->busy_ns = span_set_length_ns(&g->spans);
		g->collective_ns = g->busy_ns - other_ns;
		for (size_t k = 0; k < g->spans.n; k++)
			add_to_bins(t, g->busy_ratio, (double)(g->spans.spans[k].start_ns - t->start_ns),
			            (double)(g->spans.spans[k].end_ns - t->start_ns));
	}
	struct gap_count c = {0, 0};
	for_each_gap(t, count_gap, &c);
	for (c.at_least_ns = 1; c.n > GPU_TRACE_GAPS_MAX; c.at_least_ns *= 2) {
		c.n = 0;
		t->unattributed_below_ns = c.at_least_ns;
		for_each_gap(t, count_gap, &c);
	}
	t->gaps = calloc(c.n + 1, sizeof *t->gaps);
	if (!t->gaps)
		return err_no_memory(e);
	for (size_t i = 0; i < t->n_gpus; i++)
		t->first_gap[i + 1] = 0;
	for_each_gap(t, keep_gap, t);
	for (size_t i = 0; i < t->n_gpus; i++) // a GPU without gaps
		t->first_gap[i + 1] = t->first_gap[i + 1] < t->first_gap[i] ? t->first_gap[i] : t->first_gap[i + 1];
	return choose_longest(t, e);
}

// ---- the second pass ----

// Returns the first gap of [low, high) that ends after `ns`.
static size_t first_after(const struct gpu_trace *t, size_t low, size_t high, int64_t ns)
{
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (t->gaps[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

// Marks the slots whose middle lies in the event.
static void cover(struct gpu_gap *gap, const struct trace_event *event)
{
	double slot_ns = (double)(gap->end_ns - gap->start_ns) / SLOTS;
	double from = ceil((double)(event->start_ns - gap->start_ns) / slot_ns - 0.5);
	double to = ceil((double)(event->end_ns - gap->start_ns) / slot_ns - 0.5);
	int first = from > 0 ? (int)from : 0, end = to < SLOTS ? (int)to : SLOTS;
	if (end <= first)
		return;
	uint64_t upto_end = end == SLOTS ? UINT64_MAX : (UINT64_C(1) << end) - 1;
	gap->covered[event->activity] |= upto_end & ~((UINT64_C(1) << first) - 1);
}

// Keeps the operation that says most about a gap.
static void name_host(struct trace_gap *g, const struct gpu_gap *gap, const struct trace_event *event)
{
	int64_t from_ns = event->start_ns > gap->start_ns ? event->start_ns : gap->start_ns;
	int64_t to_ns = event->end_ns < gap->end_ns ? event->end_ns : gap->end_ns;
	int64_t overlap_ns = to_ns - from_ns, ns = event->end_ns - event->start_ns;
	bool is_half = overlap_ns >= (gap->end_ns - gap->start_ns) / 2;
	bool was_half = g->overlap_ns >= (gap->end_ns - gap->start_ns) / 2;
	if (is_half != was_half ? was_half : is_half ? ns >= g->host_ns : overlap_ns <= g->overlap_ns)
		return;
	g->overlap_ns = overlap_ns;
	g->host_ns = ns;
	size_t len = strnlen(event->name, sizeof g->host - 1);
	while (len > 0 && ((unsigned char)event->name[len] & 0xc0) == 0x80)
		len--; // not inside of a character
	memcpy(g->host, event->name, len);
	g->host[len] = '\0';
}

int gpu_trace_second(void *arg, const struct trace_event *event, struct err *e)
{
	struct gpu_trace *t = arg;
	if (event->start_ns == 0 && t->n_zero > 0)
		return 0;
	if (event->place == TRACE_ON_GPU) {
		gpu_of(t, event, e)->n_events++;
		return kernels_add(&t->kernels, event->name, event->end_ns - event->start_ns, e);
	}
	if (event->place != TRACE_ON_HOST || event->end_ns == event->start_ns || is_of_other_thread(t, event))
		return 0;
	for (size_t i = 0; i < t->n_gpus; i++) {
		size_t end = t->first_gap[i + 1];
		for (size_t k = first_after(t, t->first_gap[i], end, event->start_ns);
		     k < end && t->gaps[k].start_ns < event->end_ns; k++) {
			if (event->activity < TRACE_UNKNOWN)
				cover(&t->gaps[k], event);
			if (t->gaps[k].at >= 0)
				name_host(&t->longest[t->gaps[k].at], &t->gaps[k], event);
		}
	}
	return 0;
}

// Splits a gap by activity and returns the one with the largest part.
static enum trace_activity split(const struct gpu_trace *t, const struct gpu_gap *gap, struct trace_gpu *g)
{
	double start_ns = (double)(gap->start_ns - t->start_ns);
	double slot_ns = (double)(gap->end_ns - gap->start_ns) / SLOTS;
	uint64_t rest = UINT64_MAX;
	int most = 0;
	enum trace_activity largest = TRACE_UNKNOWN;
	for (int a = 0; a <= TRACE_UNKNOWN; a++) {
		uint64_t mine = a < TRACE_UNKNOWN ? rest & gap->covered[a] : rest;
		int n = __builtin_popcountll(mine);
		g->idle_ns[a] += n * slot_ns;
		for (int k = 0; k < SLOTS && a < TRACE_UNKNOWN && n > 0; k++)
			if (mine >> k & 1)
				add_to_bins(t, g->idle_ratio[a], start_ns + k * slot_ns, start_ns + (k + 1) * slot_ns);
		rest &= ~mine;
		if (n > most) {
			most = n;
			largest = (enum trace_activity)a;
		}
	}
	return largest;
}

void gpu_trace_finish(struct gpu_trace *t)
{
	for (size_t i = 0; i < t->n_gpus; i++)
		for (size_t k = t->first_gap[i]; k < t->first_gap[i + 1]; k++) {
			enum trace_activity a = split(t, &t->gaps[k], t->gpus[i]);
			if (t->gaps[k].at >= 0)
				t->longest[t->gaps[k].at].activity = a;
		}
	kernels_sort(&t->kernels);
}
