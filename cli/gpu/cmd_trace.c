// SPDX-License-Identifier: Apache-2.0
// gpuscale trace: when the GPUs of a profiler trace were idle, and what the host did meanwhile.
#include <inttypes.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file_open.h"
#include "cli/replay/svg_chart.h"
#include "cli/term/cli.h"
#include "insight/gpu_trace.h"
#include "insight/trace_reader.h"

struct trace_report {
	struct gpu_trace *trace;
	size_t n_events;                // with a start and an end
	size_t n_negative, n_unmatched; // left out: they end before they start; "B" without "E", or "E" without "B"
	size_t n_kernels;               // at most
};

// ---- reading ----

#define PIECE_BYTES    ((unsigned)(256 * 1024))
#define TEXT_BYTES_MAX ((size_t)1024 * 1024 * 1024) // after decompression

struct input {
	gzFile gz;
	char *piece;
	size_t file_bytes; // compressed, if it is
	struct progress progress;
};

static int read_failed(gzFile gz, size_t at, struct err *e)
{
	int code;
	const char *message = gzerror(gz, &code);
	if (code == Z_BUF_ERROR)
		return err_set(e, ERR_INPUT, "byte %zu: the compressed file ends early", at);
	if (code == Z_DATA_ERROR)
		return err_set(e, ERR_INPUT, "byte %zu: the compressed data is damaged: %s", at, message);
	return err_set(e, ERR_IO, "byte %zu: %s", at, code == Z_ERRNO ? strerror(errno) : message);
}

static int read_pass(struct input *in, struct trace_reader *r, size_t pass, struct err *e)
{
	size_t bytes = 0;
	for (;;) {
		int n = gzread(in->gz, in->piece, PIECE_BYTES);
		if (n < 0)
			return read_failed(in->gz, bytes, e);
		if (n == 0)
			break;
		if ((size_t)n > TEXT_BYTES_MAX - bytes)
			return err_set(e, ERR_LIMIT,
			               "the text is longer than the ceiling of %zu bytes: record fewer steps",
			               TEXT_BYTES_MAX);
		bytes += (size_t)n;
		if (trace_reader_feed(r, in->piece, (size_t)n, e) < 0)
			return -1;
		progress_show(&in->progress, pass * in->file_bytes + (size_t)gzoffset(in->gz), 2 * in->file_bytes, "");
	}
	// A gzip file that ends early is reported here, not by gzread().
	int code;
	gzerror(in->gz, &code);
	return code == Z_OK ? trace_reader_finish(r, e) : read_failed(in->gz, bytes, e);
}

static int run_pass(struct input *in, struct trace_report *r, size_t pass, struct err *e)
{
	struct trace_reader reader;
	trace_reader_init(&reader, pass == 0 ? gpu_trace_first : gpu_trace_second, r->trace);
	reader.classes = r->trace->classes;
	int rc = read_pass(in, &reader, pass, e);
	memcpy(r->trace->other_device, reader.other_device, sizeof reader.other_device);
	r->n_events = reader.n_events - (pass == 0 ? 0 : r->trace->n_zero);
	r->n_negative = reader.n_negative;
	r->n_unmatched = reader.n_unmatched;
	trace_reader_done(&reader);
	return rc;
}

static int read_twice(struct input *in, struct trace_report *r, struct err *e)
{
	if (run_pass(in, r, 0, e) < 0 || gpu_trace_find_gaps(r->trace, e) < 0)
		return -1;
	if (gzrewind(in->gz) < 0)
		return read_failed(in->gz, 0, e);
	if (run_pass(in, r, 1, e) < 0)
		return -1;
	gpu_trace_finish(r->trace);
	return 0;
}

// Reads the regular file at `path`, plain or compressed with gzip, and analyses it. The error names the path and, for
// invalid text, the byte (from 0, of the decompressed text).
static int read_file(const char *path, struct trace_report *r, struct err *e)
{
	struct stat st;
	struct input in = {.progress = {.what = "reading"}};
	int rc = -1, fd = file_open(path, e);
	if (fd < 0)
		return -1; // names the path
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		in.file_bytes = (size_t)st.st_size;
	in.piece = malloc(PIECE_BYTES);
	in.gz = gzdopen(fd, "rb");
	if (in.gz && in.piece)
		rc = read_twice(&in, r, e);
	else
		err_no_memory(e);
	if (in.gz)
		gzclose(in.gz); // closes fd
	else
		close(fd);
	free(in.piece);
	progress_clear(&in.progress);
	return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

// ---- tables ----

#define NAME_WIDTH 60

// "1.234s", "56.7ms", "8.9us"
static struct table_text show_ns(double ns)
{
	struct table_text t;
	if (ns >= 1e9)
		snprintf(t.text, sizeof t.text, "%.3fs", ns / 1e9);
	else if (ns >= 1e6)
		snprintf(t.text, sizeof t.text, "%.3fms", ns / 1e6);
	else
		snprintf(t.text, sizeof t.text, "%.1fus", ns / 1e3);
	return t;
}

static double percent_of(double part, int64_t whole)
{
	return whole > 0 ? 100 * part / (double)whole : 0;
}

static size_t n_kernels(const struct trace_report *r)
{
	return r->trace->kernels.n < r->n_kernels ? r->trace->kernels.n : r->n_kernels;
}

static void put_gpus(const struct gpu_trace *t, struct buf *out)
{
	static const enum trace_activity order[] = {TRACE_DATA_LOADING, TRACE_COPY, TRACE_LAUNCH, TRACE_COLLECTIVE,
	                                            TRACE_UNKNOWN};
	_Static_assert(sizeof order / sizeof *order == TRACE_ACTIVITY__COUNT, "every activity has a column");
	int64_t window_ns = gpu_trace_window_ns(t);
	struct table table;
	char name[GPU_TRACE_TEXT];
	table_init(&table,
	           "GPU\tBUSY\tIDLE\tDATA-LOADING\tCOPY\tLAUNCH\tCOLLECTIVE\tUNKNOWN\tLONGEST-GAP\tCOLLECTIVE-KERNELS");
	for (size_t i = 0; i < t->n_gpus; i++) {
		const struct trace_gpu *g = t->gpus[i];
		table_put(&table, "%s\t%.1f%%\t%.1f%%", gpu_trace_name(g, name),
		          percent_of((double)g->busy_ns, window_ns), 100 * gpu_trace_idle_ratio(t, g));
		for (size_t a = 0; a < sizeof order / sizeof *order; a++)
			table_put(&table, "%.1f%%", percent_of(g->idle_ns[order[a]], window_ns));
		table_put(&table, "%s\t%.1f%% (%.1f%% of busy)", show_ns((double)g->longest_gap_ns).text,
		          percent_of((double)g->collective_ns, window_ns),
		          percent_of((double)g->collective_ns, g->busy_ns));
	}
	table_finish(&table, out, 0, true);
}

static void put_gaps(const struct gpu_trace *t, struct buf *out)
{
	struct table table;
	char name[GPU_TRACE_TEXT];
	table_init(&table, "GPU\tSTART\tLENGTH\tHOST-ACTIVITY\tHOST-OPERATION");
	for (size_t i = 0; i < t->n_longest; i++) {
		const struct trace_gap *g = &t->longest[i];
		table_put(&table, "%s\t+%s\t%s\t%s\t%.*s", gpu_trace_name(g->gpu, name),
		          show_ns((double)g->start_ns).text, show_ns((double)(g->end_ns - g->start_ns)).text,
		          trace_activity_names[g->activity], NAME_WIDTH, g->host[0] ? g->host : "-");
	}
	buf_puts(out, "\nLongest gaps\n");
	table_finish(&table, out, 0, true);
}

static int64_t busy_ns(const struct gpu_trace *t)
{
	int64_t sum = 0;
	for (size_t i = 0; i < t->n_gpus; i++)
		sum += t->gpus[i]->busy_ns;
	return sum;
}

static void put_kernels(const struct trace_report *r, struct buf *out)
{
	int64_t busy = busy_ns(r->trace);
	struct table table;
	table_init(&table, "TIME\tOF-BUSY\tCOUNT\tMEAN\tMAX\tKERNEL");
	for (size_t i = 0; i < n_kernels(r); i++) {
		const struct kernel_time *k = &r->trace->kernels.rows[i];
		table_put(&table, "%s\t%.1f%%\t%zu\t%s\t%s\t%.*s", show_ns((double)k->total_ns).text,
		          percent_of((double)k->total_ns, busy), k->count,
		          show_ns((double)k->total_ns / (double)k->count).text, show_ns((double)k->max_ns).text,
		          NAME_WIDTH, k->name);
	}
	buf_puts(out, "\nTop kernels\n");
	table_finish(&table, out, 0, true);
}

static void trace_report_table(const struct trace_report *r, struct buf *out)
{
	print_to(out, "%zu events in %s; percentages are shares of this window\n\n", r->n_events,
	         show_ns((double)gpu_trace_window_ns(r->trace)).text);
	put_gpus(r->trace, out);
	if (r->trace->n_longest > 0)
		put_gaps(r->trace, out);
	if (n_kernels(r) > 0)
		put_kernels(r, out);
}

// Appends a line for everything that was left out of the report.
static void trace_report_notes(const struct trace_report *r, struct buf *out)
{
	if (r->n_negative > 0)
		print_to(out, "%zu events were left out, because they end before they start\n", r->n_negative);
	if (r->n_unmatched > 0)
		print_to(out, "%zu events of phase B or E were left out, because their counterpart is missing\n",
		         r->n_unmatched);
	if (r->trace->n_zero > 0)
		print_to(out, "%zu events were left out, because they are at time 0, long before all others\n",
		         r->trace->n_zero);
	if (r->trace->unattributed_below_ns > 0)
		print_to(out, "gaps shorter than %s were not compared with the host: they count as unknown\n",
		         show_ns((double)r->trace->unattributed_below_ns).text);
}

// ---- JSON ----

static double ratio_of(double part, int64_t whole)
{
	return percent_of(part, whole) / 100;
}

static void begin_gpu(struct json_writer *w, const struct trace_gpu *g)
{
	json_write_format(w, "{gpu:%ld", (int64_t)g->index);
	if (g->is_shared_index)
		json_write_member_str(w, "process", g->process);
}

static void put_gpu_json(struct json_writer *w, const struct gpu_trace *t, const struct trace_gpu *g)
{
	int64_t window_ns = gpu_trace_window_ns(t);
	begin_gpu(w, g);
	json_write_format(w, "events:%zu,busySeconds:%g,idleRatio:%g", g->n_events, (double)g->busy_ns / 1e9,
	                  ratio_of((double)(window_ns - g->busy_ns), window_ns));
	json_write_format(w, "onlyCollectiveKernelsRatio:%g,onlyCollectiveKernelsOfBusyRatio:%g,longestGapSeconds:%g",
	                  ratio_of((double)g->collective_ns, window_ns), ratio_of((double)g->collective_ns, g->busy_ns),
	                  (double)g->longest_gap_ns / 1e9);
	json_write_format(w, "idleSecondsByHostActivity:{");
	for (int a = 0; a < TRACE_ACTIVITY__COUNT; a++)
		json_write_member_f64(w, trace_activity_names[a], g->idle_ns[a] / 1e9);
	json_write_format(w, "}}");
}

static void trace_report_json(const struct trace_report *r, struct buf *out)
{
	const struct gpu_trace *t = r->trace;
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{apiVersion:%s,kind:%s,windowSeconds:%g,events:%zu,eventsLeftOut:%zu,gpus:[",
	                  "gpuscale.dev/v1alpha1", "TraceReport", (double)gpu_trace_window_ns(t) / 1e9, r->n_events,
	                  r->n_negative + r->n_unmatched + t->n_zero);
	for (size_t i = 0; i < t->n_gpus; i++)
		put_gpu_json(&w, t, t->gpus[i]);
	json_write_format(&w, "],longestGaps:[");
	for (const struct trace_gap *g = t->longest; g < t->longest + t->n_longest; g++) {
		begin_gpu(&w, g->gpu);
		json_write_format(&w, "startSeconds:%g,lengthSeconds:%g,hostActivity:%s,hostOperation:%s}",
		                  (double)g->start_ns / 1e9, (double)(g->end_ns - g->start_ns) / 1e9,
		                  trace_activity_names[g->activity], g->host[0] ? g->host : NULL);
	}
	json_write_format(&w, "],topKernels:[");
	for (size_t i = 0; i < n_kernels(r); i++) {
		const struct kernel_time *k = &t->kernels.rows[i];
		json_write_format(&w, "{name:%s,totalSeconds:%g,maxSeconds:%g,count:%zu}", k->name,
		                  (double)k->total_ns / 1e9, (double)k->max_ns / 1e9, k->count);
	}
	json_write_format(&w, "]}");
}

// ---- the timeline ----

enum { BUSY = TRACE_ACTIVITY__COUNT, LAYERS }; // the causes of the gaps, then the GPU itself

struct timeline {
	double x[GPU_TRACE_BINS + 1], y[LAYERS][GPU_TRACE_BINS + 1];
	struct chart_series series[LAYERS];
};

// The mean share of the GPUs that is in this layer, in percent.
static double layer_of(const struct gpu_trace *t, size_t layer, size_t bin)
{
	double sum = 0;
	for (size_t i = 0; layer != TRACE_UNKNOWN && i < t->n_gpus; i++)
		sum += layer == BUSY ? t->gpus[i]->busy_ratio[bin] : t->gpus[i]->idle_ratio[layer][bin];
	for (size_t i = 0; layer == TRACE_UNKNOWN && i < LAYERS; i++) // the rest
		sum += i == TRACE_UNKNOWN ? (double)t->n_gpus : -layer_of(t, i, bin) / 100 * (double)t->n_gpus;
	return 100 * (sum > 0 ? sum : 0) / (double)t->n_gpus;
}

static void trace_report_svg(const struct trace_report *r, struct buf *out)
{
	static const enum chart_style styles[] = {CHART_HPA, CHART_DEMAND, CHART_KEDA,
	                                          CHART_WPA, CHART_OTHER,  CHART_POLICY};
	_Static_assert(sizeof styles / sizeof *styles == LAYERS, "one style per layer");
	const struct gpu_trace *t = r->trace;
	struct timeline *line = calloc(1, sizeof *line);
	char title[64] = "What the GPU did, and why it was idle", name[GPU_TRACE_TEXT + 4] = "GPU ";
	if (!line) {
		out->failed = true;
		return;
	}
	if (t->n_gpus > 1)
		snprintf(title, sizeof title, "What the GPUs did, and why they were idle (mean of %zu)", t->n_gpus);
	gpu_trace_name(t->gpus[0], name + 4);
	for (size_t k = 0; k <= GPU_TRACE_BINS; k++) {
		line->x[k] = (double)gpu_trace_window_ns(t) / 1e9 * (double)k / GPU_TRACE_BINS;
		for (size_t i = 0; i < LAYERS; i++)
			line->y[i][k] = layer_of(t, i, k < GPU_TRACE_BINS ? k : GPU_TRACE_BINS - 1);
	}
	for (size_t i = 0; i < LAYERS; i++)
		line->series[i] = (struct chart_series){.name = i < BUSY         ? trace_activity_names[i]
		                                                : t->n_gpus == 1 ? name
		                                                                 : "busy",
		                                        .style = styles[i],
		                                        .mark = CHART_AREA,
		                                        .x = line->x,
		                                        .y = line->y[i],
		                                        .n = GPU_TRACE_BINS + 1};
	const struct chart c = {.id = "trace",
	                        .title = title,
	                        .description = "The share of each interval in which a kernel, memcpy or memset ran, "
	                                       "and the shares in which none ran, by what the host did.",
	                        .x = {"seconds since the start of the trace", CHART_LINEAR, true},
	                        .y = {"% of the time", CHART_LINEAR, true},
	                        .series = line->series,
	                        .n_series = LAYERS,
	                        .height = 280};
	svg_chart_put_document(out, &c);
	free(line);
}

#define ROWS     10
#define ROWS_MAX GPU_TRACE_LONG_MAX

static void (*const formats[OUTPUT__COUNT])(const struct trace_report *, struct buf *) = {
        [OUTPUT_TABLE] = trace_report_table, [OUTPUT_WIDE] = trace_report_table, [OUTPUT_JSON] = trace_report_json,
        [OUTPUT_YAML] = trace_report_json,   [OUTPUT_SVG] = trace_report_svg,
};

// The idle shares by activity come first, in the order of enum trace_activity.
enum { FAIL_IDLE = TRACE_ACTIVITY__COUNT, FAIL_LONGEST_GAP, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {
        {"collective", FAIL_PERCENT},  {"data-loading", FAIL_PERCENT}, {"copy", FAIL_PERCENT},
        {"launch", FAIL_PERCENT},      {"unknown", FAIL_PERCENT},      {"idle", FAIL_PERCENT},
        {"longest-gap", FAIL_SECONDS},
};
_Static_assert(sizeof fail_metrics / sizeof *fail_metrics == FAIL_METRIC__COUNT, "one row per metric");

struct trace_args {
	const char *path;
	struct fail_options fail_on;
	size_t n_rows;
	struct trace_classes classes;
	enum output_format output;
};

static void add_class(void *classes, char *arg, struct argp_state *state)
{
	struct err e;
	if (trace_classes_add(classes, arg, &e) < 0)
		print_usage(state, "--class: %s", e.msg);
}

// clang-format off
#define FLAGS_OF struct trace_args
static const struct flag_set command = {
	.args = "FILE",
	.about = "Show when the GPUs of a profiler trace were idle, what the host did meanwhile, and which kernels took the most "
	         "time. FILE is a trace in Chrome's format from the torch profiler, or converted from Nsight Systems, plain or "
	         "compressed with gzip, up to 1 GiB after decompression. Overlapping streams count once."
	         "\vMetrics of CONDITION: idle, data-loading, copy, launch, collective, unknown (each a share of the time of "
	         "the trace), longest-gap.\n"
	         "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-on holds.",
	.surplus = ": one file at a time",
	.missing = "missing FILE: a trace of the torch profiler, as in trace.json or trace.json.gz",
	.flags = (const struct flag[]){
		FLAG_FAIL_ON(1, fail_on, "'idle > 20%' or 'longest-gap > 50ms', of a GPU"),
		FLAG_CALL(1, 0, "class", "REGEX=ACTIVITY", classes, add_class, "host events whose name matches belong to this activity, as in 'load_shard=data-loading' (repeatable)"),
		FLAG_I64(1, 0, "top", "N", n_rows, 0, ROWS_MAX, "number of gaps and kernels to list (default 10, at most 100)"),
		FLAG_OUTPUT(1, output, OUTPUTS_REPORT | OUTPUT_SET(SVG), "table, wide, json, yaml, or svg: a timeline with the causes of the gaps (default table)"),
		FLAG_ARGUMENT(path),
		FLAG_END}};
// clang-format on

static double metric_of(const struct gpu_trace *t, const struct trace_gpu *g, size_t metric)
{
	int64_t window_ns = gpu_trace_window_ns(t);
	if (metric == FAIL_IDLE)
		return 100 * gpu_trace_idle_ratio(t, g);
	if (metric == FAIL_LONGEST_GAP)
		return (double)g->longest_gap_ns / 1e9;
	return window_ns > 0 ? 100 * g->idle_ns[metric] / (double)window_ns : 0;
}

static int check_limits(const struct trace_args *a, const struct gpu_trace *t)
{
	int code = EXIT_OK;
	for (size_t k = 0; k < t->n_gpus; k++) {
		double values[FAIL_METRIC__COUNT];
		char name[GPU_TRACE_TEXT], who[GPU_TRACE_TEXT + 32];
		for (size_t i = 0; i < FAIL_METRIC__COUNT; i++)
			values[i] = metric_of(t, t->gpus[k], i);
		snprintf(who, sizeof who, "gpuscale trace: GPU %s", gpu_trace_name(t->gpus[k], name));
		if (fail_on_check(&a->fail_on, who, values) != EXIT_OK)
			code = EXIT_CHANGES;
	}
	return code;
}

static int print(const struct trace_args *a, const struct trace_report *r)
{
	struct buf out = BUF(OUTPUT_MAX), notes = BUF(OUTPUT_MAX);
	formats[a->output](r, &out);
	trace_report_notes(r, &notes);
	int rc = output_print("gpuscale trace", &out, a->output);
	print_notes(&notes);
	buf_done(&notes);
	return rc;
}

static int run(const struct trace_args *a)
{
	struct err e;
	struct gpu_trace *t = err_calloc(sizeof *t, &e);
	struct trace_report report = {.trace = t, .n_kernels = a->n_rows};
	if (!t)
		return command_failed("gpuscale trace", &e);
	gpu_trace_init(t, a->n_rows);
	t->classes = &a->classes;
	int rc = read_file(a->path, &report, &e);
	int code = rc < 0                  ? command_failed("gpuscale trace", &e)
	           : print(a, &report) < 0 ? EXIT_FAILED
	                                   : check_limits(a, t);
	gpu_trace_done(t);
	free(t);
	return code;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_args args = {.n_rows = ROWS, .fail_on = FAIL_OPTIONS(fail_metrics)};
	args_parse(&command, argc, argv, &args);
	int code = run(&args);
	trace_classes_done(&args.classes);
	return code;
}
