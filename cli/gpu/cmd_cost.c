// SPDX-License-Identifier: Apache-2.0
// gpuscale cost: what the allocated GPUs cost, and how much of that was wasted.
#include <ctype.h>
#include <inttypes.h>

#include "base/csv_text.h"
#include "cli/gpu/cost_fetch.h"
#include "cli/objects/kube_pages.h"
#include "cli/replay/replay_fetch.h"
#include "cli/replay/replay_input.h"
#include "cli/term/cli.h"
#include "controller/tick/observe.h"
#include "insight/gpu_cost.h"
#include "k8s/client/scale.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"
#include "replay/backtest.h"
#include "replay/recording.h"

#define KEYS_MAX     ((size_t)256 * 1024 * 1024)
#define SINCE_MS     INT64_C(86400000)
#define SINCE_MAX_MS (400 * INT64_C(86400000))
#define LABEL_BYTES  317 // prefix, '/' and name of a label of Kubernetes
#define NONE         "<none>"
#define CELL_BYTES   48

enum cost_by { BY_NAMESPACE, BY_POD, BY_MODEL, BY_POLICY, BY_LABEL };
static const char *const by_names[] = {"namespace", "pod", "model", "policy", NULL};
enum cost_against { AGAINST_MAX, AGAINST_HPA };
static const char *const against_names[] = {"max", "hpa", NULL};

struct cost_args {
	struct prometheus_options prometheus;
	struct kube_options kube; // of the targets, for GPUs per replica
	struct path_options files;
	const char *prices, *discount, *by_text;
	int64_t since_ms, until_ms; // until_ms 0: now
	int by, against;            // against -1: not given
	enum output_format output;
	bool print_prices;
};

static void set_by(void *options, char *text, struct argp_state *state)
{
	struct cost_args *a = options;
	static const char label[] = "label=";
	a->by_text = text;
	a->by = BY_LABEL;
	if (strncmp(text, label, sizeof label - 1) != 0) {
		a->by = option_choice("--by", text, by_names, state);
		return;
	}
	size_t len = strlen(text) - (sizeof label - 1);
	if (len == 0 || len > LABEL_BYTES)
		print_usage(state,
		            "--by: expected label= and the name of a label of pods, as in label=team, got \"%s\"",
		            text);
}

static void set_until(void *until_ms, char *text, struct argp_state *state)
{
	struct err e;
	if (num_parse_rfc3339_ms(text, strlen(text), until_ms, &e) < 0)
		print_usage(state, "--until: %s", e.msg);
}

static void check(void *options, struct argp_state *state)
{
	struct cost_args *a = options;
	if (a->by == BY_POLICY && a->files.n == 0)
		print_usage(state, "--by policy needs the policies: -f FILE|DIR");
	if (a->by != BY_POLICY && a->files.n > 0)
		print_usage(state, "-f is only for --by policy");
	if (a->by != BY_POLICY && a->against >= 0)
		print_usage(state, "--against is only for --by policy");
	a->against = a->against < 0 ? AGAINST_MAX : a->against;
}

// clang-format off
#define FLAGS_OF struct cost_args
static const struct flag_set command = {
	.args = "",
	.about = "Show what the allocated GPUs cost: GPU-seconds times price, from the series of gpuscale-exporter or "
	         "dcgm-exporter, one sample a minute. Idle is the part in which nothing ran; fake load is the part in which "
	         "GPU_UTIL shows a busy GPU and SM_ACTIVE an idle one. The rows add up to the total, to the cent."
	         "\vExit status: 0 done, 1 failed, 2 wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_SINCE(1, since_ms, GPU_USE_STEP_S * 1000, SINCE_MAX_MS, "24h, at most 400d"),
		FLAG_CALL(1, 0, "until", "TIME", until_ms, set_until, "end of the period, as in 2026-11-01T00:00:00Z (default now)"),
		FLAG_TAKE(1, 0, "by", "namespace|pod|model|policy|label=NAME", set_by, "a row for each; NAME is a label of pods (default namespace)"),
		FLAG_FILES(1, "FILE|DIR", files, "policies for --by policy"),
		FLAG_CHOICE(1, 0, "against", "max|hpa", against, against_names, 0, "with --by policy: savings against max (maxReplicas all the time, the default), or hpa (what a Horizontal Pod Autoscaler would have run, by replay)"),
		FLAG_PRICES(1, prices),
		FLAG_TEXT(1, 0, "discount", "NAME", discount, "apply this discount of the price book to every price, as in 1-year or spot"),
		FLAG_SWITCH(1, 0, "print-prices", print_prices, "print the shipped prices, as a start for your own file"),
		FLAG_OUTPUT(1, output, OUTPUTS_REPORT | OUTPUT_SET(CSV), "table, wide, json, yaml or csv (default table)"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&kube_flags, kube, 0),
		FLAG_END}};
// clang-format on

// ---- what an HPA would have run ----

#define STEP_MS       15000
#define LONG_STEP_MS  60000
#define LONG_PERIOD_S (100 * INT64_C(86400)) // with the short step, a longer period has too many rows

static const struct backtest_row *find_row(const struct backtest *b, enum backtest_kind kind)
{
	for (size_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].kind == kind && (kind != BACKTEST_PEER || b->rows[i].is_best))
			return &b->rows[i];
	return NULL;
}

// Fills in what the policy of the row saved against the HPA on its demand in the period, with the settings of
// replay/peers.h: the cheapest one that keeps the objective of the policy (without one, at most 1 % of the requests
// wait longer than 10 s), otherwise the least late. Appends that HPA to `notes`, and to `missing` what is missing in
// the recording, one line each. Returns 0, or -1 and *e: as backtest_run(), ERR_NOT_FOUND when the replicas that ran
// are not recorded.
static int replay(const struct policy *policy, const struct recording *recording, int32_t gpus,
                  struct gpu_cost_row *row, struct buf *notes, struct buf *missing, struct err *e)
{
	struct backtest_config config = {.hpa_only = true, .per_replica = 1, .late_ratio = NAN, .wait_s = NAN};
	struct backtest *b = malloc(sizeof *b);
	if (!b)
		return err_no_memory(e);
	replay_config_complete(&config, policy, recording);
	int rc = backtest_run(&config, policy, recording, "Prometheus", b, e);
	const struct backtest_row *ran = rc == 0 ? find_row(b, BACKTEST_ACTUAL) : NULL;
	const struct backtest_row *hpa = rc == 0 ? find_row(b, BACKTEST_PEER) : NULL;
	if (rc == 0 && !ran)
		rc = err_set(e, ERR_NOT_FOUND, "the source has no record of the replicas in the period");
	if (rc == 0) {
		double more_s = hpa->score.replica_s - ran->score.replica_s, late = score_late_percent(&hpa->score);
		gpu_cost_set_saved(row, row->milli[GPU_ALLOCATED] + (int64_t)llround(more_s * 1000) * gpus);
		print_to(notes, "against %s, with %.2f%% of the requests late\n", hpa->name, isnan(late) ? 0 : late);
		if (b->recorded_share < 1)
			print_to(missing,
			         "replicas are recorded for %.3g%% of the time: the comparison with the HPA covers "
			         "only these\n",
			         100 * b->recorded_share);
	}
	backtest_done(b);
	free(b);
	return rc;
}

// ---- rows ----

// What the use counts for; NULL when memory is exhausted.
static const char *key_of(const struct cost_args *a, const struct file_set *set, const struct gpu_use *u,
                          struct arena *keys)
{
	const struct policy *p;
	switch (a->by) {
	case BY_MODEL:
		return u->model[0] ? u->model : NONE;
	case BY_POD:
		return arena_printf(keys, "%s/%s", u->namespace_name, u->part);
	case BY_LABEL:
		return u->part[0] ? u->part : NONE;
	case BY_POLICY:
		p = pod_policy_find(set->policies, set->n_policies, u->namespace_name, u->part);
		return p ? arena_printf(keys, "%s/%s", p->namespace_name, p->name) : NONE;
	default:
		return u->namespace_name;
	}
}

static int add_costs(const struct cost_args *a, const struct file_set *set, const struct gpu_use_set *use,
                     struct gpu_cost *cost, struct arena *keys)
{
	for (const struct gpu_use *u = use->rows; u; u = u->hh.next) {
		const char *key = u->namespace_name[0] ? key_of(a, set, u, keys) : NULL;
		if (u->namespace_name[0] && !key)
			return -1;
		gpu_cost_add(cost, key, u);
	}
	gpu_cost_close(cost);
	return cost->failed ? -1 : 0;
}

// The cluster that has the targets of the policies; opened when the first target is read.
struct targets {
	struct connections session;
	struct err broken; // no target can be read; ERR_NONE: not known
};

// Returns the GPUs of a replica: those of spec.gpus, or else those that the pod template of the target requests. 0 and
// *e: unknown.
static int32_t gpus_of(const struct cost_args *a, const struct policy *p, struct targets *t, struct err *e)
{
	struct scale_ref ref = binding_scale_ref(&policy_ref_of(p)->binding);
	int32_t n = 0;
	if (p->gpus.set)
		return p->gpus.per_replica;
	if (t->broken.kind == ERR_NONE && !t->session.k8s)
		connections_open(&t->session, NULL, &a->kube, NULL, NULL, &t->broken);
	*e = t->broken;
	if (e->kind == ERR_NONE)
		n = shape_read_gpus(&t->session, &ref, e);
	if (n == 0 && (e->kind == ERR_UNREACHABLE || e->kind == ERR_TIMEOUT || e->kind == ERR_TLS))
		t->broken = *e; // every other target would wait as long
	return n;
}

// Fills in what the policy of the row saved against what the HPA would have run. Where that is unknown, `notes` gets
// the reason.
static void save_against_hpa(const struct cost_args *a, const struct policy *p, int32_t gpus,
                             const struct cost_period *period, struct gpu_cost_row *row, struct buf *notes)
{
	int64_t since_s = period->end_s - period->start_s;
	const struct replay_fetch fetch = {.prometheus = &a->prometheus,
	                                   .policy = p,
	                                   .since_ms = since_s * 1000,
	                                   .until_ms = period->end_s * 1000,
	                                   .step_ms = since_s > LONG_PERIOD_S ? LONG_STEP_MS : STEP_MS};
	struct recording recording;
	struct err e;
	struct buf missing = BUF(REPORT_MAX);
	print_to(notes, "Savings of %s: ", row->key);
	if (replay_fetch(&fetch, &recording, &missing, &e) < 0 ||
	    replay(p, &recording, gpus, row, notes, &missing, &e) < 0)
		print_to(notes, "unknown: %s\n", e.msg);
	recording_done(&recording);
	for (const char *line = buf_str(&missing), *end; (end = strchr(line, '\n')); line = end + 1)
		print_to(notes, "Savings of %s: %.*s\n", row->key, (int)(end - line), line);
	buf_done(&missing);
}

// Fills in what each policy saved, against maxReplicas all the time or the HPA. Where that is unknown, `notes` gets the
// reason.
static void add_savings(const struct cost_args *a, const struct file_set *set, const struct cost_period *period,
                        struct gpu_cost *cost, struct buf *notes)
{
	struct targets targets = {.broken = {.kind = ERR_NONE}};
	struct err e;
	for (size_t i = 0; i < cost->n; i++)
		for (size_t k = 0; k < set->n_policies; k++) {
			const struct policy *p = set->policies[k];
			size_t len = strlen(p->namespace_name);
			const char *key = cost->rows[i].key;
			if (strncmp(key, p->namespace_name, len) != 0 || key[len] != '/' ||
			    strcmp(key + len + 1, p->name) != 0)
				continue;
			int32_t gpus = gpus_of(a, p, &targets, &e);
			if (gpus == 0)
				print_to(notes,
				         "Savings of %s: unknown: spec.gpus is not set, and the GPUs of a replica "
				         "cannot be read from the target: %s\n",
				         key, e.msg);
			else if (a->against == AGAINST_HPA)
				save_against_hpa(a, p, gpus, period, &cost->rows[i], notes);
			else
				gpu_cost_set_saved(&cost->rows[i], (int64_t)p->max_replicas * gpus *
				                                           (period->end_s - period->start_s) * 1000);
		}
	connections_close(&targets.session);
}

// ---- the report ----

struct cost_report {
	const struct gpu_cost *cost;
	const struct cost_use *use;
	const struct cost_args *args;
	const struct cost_period *period;
	const char *savings; // notes on how the savings came about, one per line; "": none
};

// The figures of a row, in the order of all formats. A name is NULL where a format does not have the figure.
enum figure_unit { SECONDS, MONEY, WASTED, SAVED, ENERGY, CO2 };
static const struct figure {
	const char *head, *json, *csv;
	enum figure_unit unit;
	int of; // SECONDS, ENERGY: enum gpu_measure; MONEY: enum gpu_amount
	bool is_wide;
} figures[] = {
        // clang-format off
        {"GPU-HOURS",   "gpuSeconds",         "gpu_seconds",          SECONDS, GPU_ALLOCATED,    false},
        {"COST",        "cost",               "cost",                 MONEY,   COST_TOTAL,       false},
        {"IDLE",        "idle",               "idle",                 MONEY,   COST_IDLE,        false},
        {"FAKE-LOAD",   "fakeLoad",           "fake_load",            MONEY,   COST_FAKE,        false},
        {"WASTED",      NULL,                 NULL,                   WASTED,  0,                false},
        {"SAVED",       NULL,                 NULL,                   SAVED,   0,                false},
        {NULL,          "measuredGPUSeconds", "measured_gpu_seconds", SECONDS, GPU_MEASURED,     false},
        {"KWH",         "kWh",                "kwh",                  ENERGY,  GPU_ENERGY,       true},
        {"ELECTRICITY", "electricity",        "electricity",          MONEY,   COST_ELECTRICITY, true},
        {"CO2(KG)",     "kgCO2",              NULL,                   CO2,     GPU_ENERGY,       true},
        // clang-format on
};
#define FIGURES (sizeof figures / sizeof *figures)

static bool has_figure(const struct cost_report *r, const struct figure *f)
{
	return f->unit == SAVED ? r->args->by == BY_POLICY
	       : f->unit == CO2 ? r->cost->book->electricity.has_grams_co2
	                        : true;
}

static const char *format_cents(char out[CELL_BYTES], int64_t cents)
{
	int64_t size = cents < 0 ? -cents : cents;
	snprintf(out, CELL_BYTES, "%s%" PRId64 ".%02d", cents < 0 ? "-" : "", size / 100, (int)(size % 100));
	return out;
}

// Thousandths.
static const char *format_milli(char out[CELL_BYTES], int64_t milli)
{
	snprintf(out, CELL_BYTES, "%" PRId64 ".%03d", milli / 1000, (int)(milli % 1000));
	return out;
}

static const char *format_hours(char out[CELL_BYTES], int64_t milli)
{
	snprintf(out, CELL_BYTES, "%.2f", (double)milli / 3.6e6);
	return out;
}

// "-" where it is unknown.
static const char *format_figure(char out[CELL_BYTES], const struct cost_report *r, const struct figure *f,
                                 const struct gpu_cost_row *row)
{
	int64_t wasted = row->milli[GPU_IDLE] + row->milli[GPU_FAKE], all = row->milli[GPU_MEASURED];
	double kwh = (double)row->milli[GPU_ENERGY] / 3.6e9;
	switch (f->unit) {
	case SECONDS:
		return format_milli(out, row->milli[f->of]);
	case MONEY:
		return format_cents(out, row->cents[f->of]);
	case WASTED:
		snprintf(out, CELL_BYTES, all ? "%.0f%%" : "-", all ? 100 * (double)wasted / (double)all : 0);
		break;
	case SAVED:
		return row->saved_cents != GPU_COST_UNKNOWN ? format_cents(out, row->saved_cents) : "-";
	case ENERGY:
		snprintf(out, CELL_BYTES, "%.2f", kwh);
		break;
	case CO2:
		snprintf(out, CELL_BYTES, "%.3f", kwh * r->cost->book->electricity.grams_co2_per_kwh / 1000);
		break;
	}
	return out;
}

static int64_t reported_gpus(const struct cost_report *r, const char *model)
{
	for (size_t i = 0; i < r->use->n_models; i++)
		if (strcmp(r->use->models[i].model, model) == 0)
			return r->use->models[i].gpus;
	return 0;
}

static int64_t unmeasured(const struct gpu_cost *c)
{
	return c->total.milli[GPU_ALLOCATED] - c->total.milli[GPU_MEASURED];
}

// The first and the last day on which the prices of the book were published.
static void price_days(const struct price_book *b, const char **ret_first, const char **ret_last)
{
	*ret_first = *ret_last = b->models[0].as_of;
	for (size_t i = 1; i < b->n_models; i++) {
		const char *day = b->models[i].as_of;
		*ret_first = strcmp(day, *ret_first) < 0 ? day : *ret_first;
		*ret_last = strcmp(day, *ret_last) > 0 ? day : *ret_last;
	}
}

// ---- notes ----

static void put_unpriced(const struct cost_report *r, const struct gpu_unpriced *u, struct buf *out)
{
	const struct price_book *b = r->cost->book;
	char hours[CELL_BYTES];
	int64_t gpus = reported_gpus(r, u->model);
	print_to(out, "No price: %" PRId64 " %s of model \"%s\", %s GPU-hours, ", gpus, gpus == 1 ? "GPU" : "GPUs",
	         u->model, format_hours(hours, u->milli));
	if (b->has_assumed)
		print_to(out, "counted at %.10g %s an hour (assumedPerGPUHour)", b->assumed_per_gpu_hour, b->currency);
	else
		buf_puts(out, "counted as 0");
	buf_puts(out, "; add the model to a file for --prices\n");
}

static void put_notes(const struct cost_report *r, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	char hours[CELL_BYTES], cost[CELL_BYTES];
	const char *first, *last;
	price_days(c->book, &first, &last);
	print_to(out, "Prices: %s, published %s to %s, %s\n", r->args->prices ? r->args->prices : "as shipped", first,
	         last, c->discount ? c->discount->name : "on demand");
	if (c->unallocated.milli[GPU_ALLOCATED] > 0)
		print_to(out, "Not allocated: %s GPU-hours that no pod held, %s %s\n",
		         format_hours(hours, c->unallocated.milli[GPU_ALLOCATED]),
		         format_cents(cost, c->unallocated.cents[COST_TOTAL]), c->book->currency);
	if (unmeasured(c) > 0)
		print_to(out, "No utilization: it is unknown how much of %s GPU-hours was wasted\n",
		         format_hours(hours, unmeasured(c)));
	for (size_t i = 0; i < c->n_unpriced; i++)
		put_unpriced(r, &c->unpriced[i], out);
	buf_puts(out, r->savings);
}

// ---- table ----

static void put_row(struct table *t, const char *name, const struct gpu_cost_row *row, const struct cost_report *r,
                    bool is_wide)
{
	char cell[CELL_BYTES];
	table_put(t, "%s", name);
	for (const struct figure *f = figures; f < figures + FIGURES; f++)
		if (f->head && has_figure(r, f) && (is_wide || !f->is_wide))
			table_put(t, "%s",
			          f->unit == SECONDS ? format_hours(cell, row->milli[f->of])
			                             : format_figure(cell, r, f, row));
}

static void print_table(const struct cost_report *r, bool is_wide, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	const char *by = r->args->by == BY_LABEL ? strchr(r->args->by_text, '=') + 1 : r->args->by_text;
	struct buf head = BUF(TABLE_CELL_BYTES);
	struct table t;
	for (size_t i = 0; by[i] && i + 1 < CELL_BYTES; i++)
		buf_putc(&head, by[i] == '\t' ? ' ' : (char)toupper((unsigned char)by[i])); // a tab starts a column
	for (const struct figure *f = figures; f < figures + FIGURES; f++) {
		bool has_currency = f->unit == MONEY && f->of == COST_TOTAL;
		if (f->head && has_figure(r, f) && (is_wide || !f->is_wide))
			print_to(&head, has_currency ? "\t%s(%s)" : "\t%s%s", f->head,
			         has_currency ? c->book->currency : "");
	}
	table_init(&t, buf_str(&head));
	buf_done(&head);
	for (size_t i = 0; i < c->n; i++)
		put_row(&t, c->rows[i].key, &c->rows[i], r, is_wide);
	put_row(&t, "TOTAL", &c->total, r, is_wide); // what it saved is not known: its policies may not be all
	table_finish(&t, out, 0, true);
	buf_putc(out, '\n');
	put_notes(r, out);
}

// ---- JSON ----

static void put_number(struct json_writer *w, const char *key, const char *number)
{
	json_write_key(w, key);
	json_write_raw(w, number);
}

static void put_figures(struct json_writer *w, const struct cost_report *r, const struct gpu_cost_row *row)
{
	char cell[CELL_BYTES];
	for (const struct figure *f = figures; f < figures + FIGURES; f++)
		if (f->json && has_figure(r, f))
			put_number(w, f->json, format_figure(cell, r, f, row));
}

static void print_json(const struct cost_report *r, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	char cell[CELL_BYTES];
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{currency:%s,from:%jd,to:%jd,by:%s", c->book->currency, r->period->start_s * 1000,
	                  r->period->end_s * 1000, r->args->by_text);
	if (r->args->by == BY_POLICY)
		json_write_member_str(&w, "savedAgainst", against_names[r->args->against]);
	json_write_format(&w, "discount:%s,rows:[", c->discount ? c->discount->name : NULL);
	for (size_t i = 0; i < c->n; i++) {
		json_write_format(&w, "{name:%s", c->rows[i].key);
		put_figures(&w, r, &c->rows[i]);
		if (c->rows[i].saved_cents != GPU_COST_UNKNOWN)
			put_number(&w, "saved", format_cents(cell, c->rows[i].saved_cents));
		json_write_object_end(&w);
	}
	json_write_format(&w, "],total:{");
	put_figures(&w, r, &c->total);
	json_write_format(&w, "},unallocated:{");
	put_figures(&w, r, &c->unallocated);
	json_write_format(&w, "},unpriced:[");
	for (size_t i = 0; i < c->n_unpriced; i++) {
		json_write_format(&w, "{model:%s,gpus:%ld", c->unpriced[i].model,
		                  reported_gpus(r, c->unpriced[i].model));
		put_number(&w, "gpuSeconds", format_milli(cell, c->unpriced[i].milli));
		json_write_object_end(&w);
	}
	json_write_format(&w, "]}");
}

// ---- CSV ----

static void print_csv(const struct cost_report *r, struct buf *out, struct buf *notes)
{
	const struct gpu_cost *c = r->cost;
	char cell[CELL_BYTES];
	bool has_savings = r->args->by == BY_POLICY;
	buf_puts(out, "name");
	for (const struct figure *f = figures; f < figures + FIGURES; f++)
		if (f->csv)
			print_to(out, ",%s", f->csv);
	buf_puts(out, has_savings ? ",currency,saved\n" : ",currency\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct gpu_cost_row *row = &c->rows[i];
		csv_put_text(out, row->key);
		for (const struct figure *f = figures; f < figures + FIGURES; f++)
			if (f->csv)
				print_to(out, ",%s", format_figure(cell, r, f, row));
		buf_putc(out, ',');
		csv_put_text(out, c->book->currency);
		if (has_savings && row->saved_cents == GPU_COST_UNKNOWN)
			buf_putc(out, ',');
		else if (has_savings)
			print_to(out, ",%s", format_cents(cell, row->saved_cents));
		buf_putc(out, '\n');
	}
	put_notes(r, notes);
}

// Notes that the format has no place for go to standard error: all notes of a CSV, and those on savings of the JSON.
static int print_report(const struct cost_report *r, struct err *e)
{
	struct buf out = BUF(OUTPUT_MAX), notes = BUF(REPORT_MAX);
	enum output_format format = r->args->output;
	if (output_is_document(format)) {
		print_json(r, &out);
		buf_puts(&notes, r->savings);
	} else if (format == OUTPUT_CSV) {
		print_csv(r, &out, &notes);
	} else {
		print_table(r, format == OUTPUT_WIDE, &out);
	}
	int rc = output_write(&out, format, e);
	print_notes(&notes);
	buf_done(&notes);
	return rc;
}

// ---- the run ----

static struct cost_period period_of(const struct cost_args *a, int64_t now_ms)
{
	int64_t end_s = (a->until_ms ? a->until_ms : now_ms) / 1000 / GPU_USE_STEP_S * GPU_USE_STEP_S;
	int64_t length_s = (a->since_ms / 1000 + GPU_USE_STEP_S - 1) / GPU_USE_STEP_S * GPU_USE_STEP_S;
	return (struct cost_period){end_s - length_s, end_s};
}

static int report(const struct cost_args *a, const struct file_set *set, const struct price_book *book,
                  const struct cost_use *use, const struct cost_period *period, struct err *e)
{
	struct gpu_cost cost;
	struct arena keys = ARENA(KEYS_MAX);
	struct buf savings = BUF(REPORT_MAX);
	if (!use->use.rows)
		return err_set(e, ERR_NOT_FOUND,
		               "no GPU reported in this period: check that gpuscale-exporter or dcgm-exporter is "
		               "scraped (DCGM_FI_DEV_FB_USED)");
	gpu_cost_init(&cost, book, a->discount ? price_book_discount(book, a->discount) : NULL);
	struct cost_report r = {.cost = &cost, .use = use, .args = a, .period = period};
	int rc = add_costs(a, set, &use->use, &cost, &keys);
	if (rc == 0 && a->by == BY_POLICY)
		add_savings(a, set, period, &cost, &savings);
	r.savings = buf_str(&savings);
	rc = rc < 0 ? err_set(e, ERR_INTERNAL, "out of memory for the report") : print_report(&r, e);
	buf_done(&savings);
	gpu_cost_done(&cost);
	arena_done(&keys);
	return rc;
}

static int run(const struct cost_args *a, const struct file_set *set, const struct price_book *book, struct err *e)
{
	struct prometheus_session session;
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	struct gpu_use_parts parts = {.by_pod = a->by == BY_POD || a->by == BY_POLICY};
	struct cost_period period = period_of(a, clock_wall_ms(&session.connections.clock));
	struct cost_use use;
	struct buf label = BUF(2 * LABEL_BYTES);
	if (a->by == BY_LABEL) {
		gpu_label_name(&label, strchr(a->by_text, '=') + 1);
		parts.label = buf_str(&label);
	}
	int rc = cost_fetch(&session, &period, &parts, &use, e);
	if (rc == 0)
		rc = report(a, set, book, &use, &period, e);
	gpu_use_done(&use.use);
	buf_done(&label);
	prometheus_session_close(&session);
	return rc;
}

static int load(const struct cost_args *a, struct arena *arena, struct price_book *ret_book, struct file_set *ret_set,
                struct err *e)
{
	struct buf text = BUF(REPORT_MAX);
	int rc = price_book_read(a->prices, arena, ret_book, &text, e);
	if (rc == 0 && a->discount && !price_book_discount(ret_book, a->discount))
		rc = err_set(e, ERR_INPUT, "--discount: the price book has no discount \"%s\": add it to `discounts`",
		             a->discount);
	if (rc == 0)
		rc = file_set_load(ret_set, a->files.paths, a->files.n, NULL, &text, e);
	if (rc == 0 && ret_set->n_errors > 0)
		rc = err_set(
		        e, ERR_INPUT,
		        "%zu errors in the policies: fix them, because the cost would be wrong without these policies",
		        ret_set->n_errors);
	print_notes(&text);
	buf_done(&text);
	return rc;
}

int cmd_cost(int argc, char **argv)
{
	struct cost_args args = {.since_ms = SINCE_MS, .by_text = by_names[BY_NAMESPACE], .against = -1};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	if (args.print_prices) {
		size_t len;
		const char *text = price_shipped_text(&len);
		return print_outn(text, len) == 0 ? EXIT_OK : EXIT_FAILED;
	}

	struct err e = {0};
	struct arena arena = ARENA(REPORT_MAX);
	struct price_book book;
	struct file_set set = {0};
	int rc = load(&args, &arena, &book, &set, &e);
	if (rc == 0)
		rc = run(&args, &set, &book, &e);
	int code = rc < 0 ? command_failed("gpuscale cost", &e) : EXIT_OK;
	file_set_done(&set);
	arena_done(&arena);
	return code;
}
