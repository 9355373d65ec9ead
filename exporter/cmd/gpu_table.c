// SPDX-License-Identifier: Apache-2.0
// The output of `gpuscale-exporter top` and `list`: a table, JSON, a JSON object per line, or CSV.
#include "exporter/cmd/exporter_cmd.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/csv_text.h"
#include "base/json/json_write.h"
#include "base/print.h"

#define CELL_BYTES  (PAGE_VIEW_PODS_BYTES + 8)
#define COLUMNS_MAX 28
#define GAP         2

// The source of a cell: a label of the GPU, or a family of the page.
enum cell_kind {
	CELL_INDEX,
	CELL_TEXT,
	CELL_PODS,
	CELL_REASONS, // why the clock is below its maximum
	CELL_XIDS,
	CELL_WHOLE,
	CELL_PERCENT,
	CELL_WINDOW,         // a statistic of the exporter's window
	CELL_WINDOW_PERCENT, // the same of a share of 0-1
};

struct column {
	const char *header; // column header of the table
	const char *key;    // key in JSON and CSV
	enum cell_kind kind;
	size_t offset;      // CELL_TEXT: of the text in struct device; CELL_WINDOW: enum page_window
	const char *family; // family of the numbers; CELL_PERCENT: a share of 0-1 shown as a percentage
	const char *unit;   // behind the value, in the table only
};
#define TEXT(header, key, member)                                                                                      \
	{                                                                                                              \
		header, key, CELL_TEXT, offsetof(struct device, member), NULL, ""                                      \
	}

static const struct column top_columns[] = {
        {"GPU", "gpu", CELL_INDEX, 0, NULL, ""},
        TEXT("MIG", "mig_id", mig_id),
        TEXT("MODEL", "model", model),
        {"TEMP", "temperature_celsius", CELL_WHOLE, 0, "DCGM_FI_DEV_GPU_TEMP", "C"},
        {"POWER", "power_watts", CELL_WHOLE, 0, "DCGM_FI_DEV_POWER_USAGE", "W"},
        {"LIMIT", "power_limit_watts", CELL_WHOLE, 0, "DCGM_FI_DEV_POWER_MGMT_LIMIT", "W"},
        {"UTIL", "gpu_util_percent", CELL_WHOLE, 0, "DCGM_FI_DEV_GPU_UTIL", "%"},
        {"SM", "sm_active_percent", CELL_PERCENT, 0, "DCGM_FI_PROF_SM_ACTIVE", "%"},
        {"TENSOR", "tensor_active_percent", CELL_PERCENT, 0, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "%"},
        {"DRAM", "dram_active_percent", CELL_PERCENT, 0, "DCGM_FI_PROF_DRAM_ACTIVE", "%"},
        {"USED", "memory_used_mib", CELL_WHOLE, 0, "DCGM_FI_DEV_FB_USED", "Mi"},
        {"FREE", "memory_free_mib", CELL_WHOLE, 0, "DCGM_FI_DEV_FB_FREE", "Mi"},
        {"POD", "pods", CELL_PODS, 0, NULL, ""},
        // The table has what follows only with -o wide.
        {"SMCLK", "sm_clock_mhz", CELL_WHOLE, 0, "DCGM_FI_DEV_SM_CLOCK", "MHz"},
        {"OF", "sm_clock_max_mhz", CELL_WHOLE, 0, "DCGM_FI_DEV_MAX_SM_CLOCK", "MHz"},
        {"MEMCLK", "memory_clock_mhz", CELL_WHOLE, 0, "DCGM_FI_DEV_MEM_CLOCK", "MHz"},
        {"THROTTLED", "throttle_reasons", CELL_REASONS, 0, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", ""},
        {"SBE", "ecc_corrected", CELL_WHOLE, 0, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ""},
        {"DBE", "ecc_uncorrectable", CELL_WHOLE, 0, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", ""},
        {"XID", "xids", CELL_XIDS, 0, NULL, ""},
#define WINDOW(header, key, kind, w, family, unit)                                                                     \
	{                                                                                                              \
		header, key, kind, PAGE_WINDOW_##w, family, unit                                                       \
	}
        WINDOW("UTIL-MAX", "gpu_util_window_max_percent", CELL_WINDOW, MAX, "DCGM_FI_DEV_GPU_UTIL", "%"),
        WINDOW("SM-MIN", "sm_active_window_min_percent", CELL_WINDOW_PERCENT, MIN, "DCGM_FI_PROF_SM_ACTIVE", "%"),
        WINDOW("SM-AVG", "sm_active_window_avg_percent", CELL_WINDOW_PERCENT, AVG, "DCGM_FI_PROF_SM_ACTIVE", "%"),
        WINDOW("SM-MAX", "sm_active_window_max_percent", CELL_WINDOW_PERCENT, MAX, "DCGM_FI_PROF_SM_ACTIVE", "%"),
        WINDOW("POWER-MIN", "power_window_min_watts", CELL_WINDOW, MIN, "DCGM_FI_DEV_POWER_USAGE", "W"),
        WINDOW("POWER-AVG", "power_window_avg_watts", CELL_WINDOW, AVG, "DCGM_FI_DEV_POWER_USAGE", "W"),
        WINDOW("POWER-MAX", "power_window_max_watts", CELL_WINDOW, MAX, "DCGM_FI_DEV_POWER_USAGE", "W"),
        WINDOW("TEMP-MAX", "temperature_window_max_celsius", CELL_WINDOW, MAX, "DCGM_FI_DEV_GPU_TEMP", "C"),
};
#define NARROW_COLUMNS 13
static const struct column list_columns[] = {
        {"GPU", "gpu", CELL_INDEX, 0, NULL, ""}, TEXT("UUID", "uuid", uuid),
        TEXT("MIG", "mig_id", mig_id),           TEXT("PROFILE", "mig_profile", mig_profile),
        TEXT("MODEL", "model", model),           TEXT("PCI", "pci_bus_id", pci_bus_id),
        TEXT("DEVICE", "device", node),          {"POD", "pods", CELL_PODS, 0, NULL, ""},
};
_Static_assert(sizeof top_columns / sizeof top_columns[0] <= COLUMNS_MAX, "columns fit");

// Bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS. Source: nvml.h, nvmlClocksEventReasons.
static const struct {
	unsigned bit;
	const char *name;
} reasons[] = {
        {0x01, "idle"},    {0x02, "app-clocks"}, {0x04, "power"},       {0x08, "hw"},       {0x10, "sync-boost"},
        {0x20, "thermal"}, {0x40, "hw-thermal"}, {0x80, "power-brake"}, {0x100, "display"},
};

static void put_reasons(double value, char out[CELL_BYTES])
{
	size_t len = 0;
	if (!(value >= 0 && value < 4294967296.0))
		return;
	unsigned bits = (unsigned)value;
	snprintf(out, CELL_BYTES, "none");
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (bits & reasons[i].bit)
			len += (size_t)snprintf(out + len, CELL_BYTES - len, "%s%s", len ? "+" : "", reasons[i].name);
}

// "48x2,79": the codes that occurred, with their count if it is not 1.
static void put_xids(const struct page_view_gpu *g, char out[CELL_BYTES])
{
	size_t len = 0;
	for (size_t i = 0; i < g->n_xids && len < CELL_BYTES - 64; i++) {
		const struct page_view_xid *x = &g->xids[i];
		if (x->count == 0)
			continue;
		if (x->code == XID_CODE_OTHER)
			len += (size_t)snprintf(out + len, CELL_BYTES - len, "%sother", len ? "," : "");
		else
			len += (size_t)snprintf(out + len, CELL_BYTES - len, "%s%" PRId32, len ? "," : "", x->code);
		if (x->count > 1)
			len += (size_t)snprintf(out + len, CELL_BYTES - len, "x%" PRIu64, x->count);
	}
}

// Writes the value without its unit. False if the GPU has none.
static bool get_cell(const struct column *col, const struct page_view_gpu *g, char out[CELL_BYTES])
{
	double v;
	out[0] = '\0';
	switch (col->kind) {
	case CELL_INDEX:
		if (g->device.index >= 0)
			snprintf(out, CELL_BYTES, "%" PRId32, g->device.index);
		break;
	case CELL_TEXT:
		snprintf(out, CELL_BYTES, "%s", (const char *)&g->device + col->offset);
		break;
	case CELL_PODS:
		snprintf(out, CELL_BYTES, "%s", g->pods);
		break;
	case CELL_REASONS:
		if (page_view_get(g, col->family, &v))
			put_reasons(v, out);
		break;
	case CELL_XIDS:
		put_xids(g, out);
		break;
	default: {
		bool is_window = col->kind == CELL_WINDOW || col->kind == CELL_WINDOW_PERCENT;
		bool is_share = col->kind == CELL_PERCENT || col->kind == CELL_WINDOW_PERCENT;
		bool has = is_window ? page_view_get_window(g, col->family, (enum page_window)col->offset, &v)
		                     : page_view_get(g, col->family, &v);
		if (has && v > -1e15 && v < 1e15)
			snprintf(out, CELL_BYTES, "%.0f", is_share ? v * 100 : v);
	}
	}
	return out[0] != '\0';
}

static bool is_number(const struct column *col)
{
	return col->kind == CELL_INDEX || col->kind >= CELL_WHOLE;
}

// Writes the cell of the table: safe for a terminal, with its unit; "-" if there is no value.
static void show_cell(const struct column *col, const struct page_view_gpu *g, char out[CELL_BYTES])
{
	char raw[CELL_BYTES];
	if (!get_cell(col, g, raw)) {
		snprintf(out, CELL_BYTES, "-");
		return;
	}
	size_t n = text_show(out, CELL_BYTES - 4, raw, strlen(raw));
	snprintf(out + n, CELL_BYTES - n, "%s", col->unit);
}

static size_t width_of(const char *s)
{
	size_t width = 0, len = strlen(s);
	for (size_t i = 0, n; i < len; i += n ? n : 1, width++)
		n = utf8_char_len(s + i, len - i);
	return width;
}

static void put_padded(struct buf *out, const char *s, size_t width, bool right, bool last)
{
	print_to(out, "%*s%*s", right ? (int)width : last ? 0 : -(int)width, s, last ? 0 : GAP, "");
}

static void put_table(const struct column *columns, size_t n, const struct page_view *v, struct buf *out)
{
	size_t width[COLUMNS_MAX], last = 0;
	bool used[COLUMNS_MAX];
	char cell[CELL_BYTES];
	for (size_t k = 0; k < n; k++) {
		width[k] = strlen(columns[k].header);
		used[k] = false;
		for (size_t i = 0; i < v->n; i++) {
			show_cell(&columns[k], &v->gpus[i], cell);
			used[k] = used[k] || strcmp(cell, "-") != 0;
			width[k] = width_of(cell) > width[k] ? width_of(cell) : width[k];
		}
		if (used[k])
			last = k; // a column without values is left out
	}
	for (size_t k = 0; k <= last; k++)
		if (used[k])
			put_padded(out, columns[k].header, width[k], is_number(&columns[k]), k == last);
	buf_putc(out, '\n');
	for (size_t i = 0; i < v->n; i++) {
		for (size_t k = 0; k <= last; k++) {
			if (!used[k])
				continue;
			show_cell(&columns[k], &v->gpus[i], cell);
			put_padded(out, cell, width[k], is_number(&columns[k]), k == last);
		}
		buf_putc(out, '\n');
	}
}

static bool is_on(const struct page_view_process *p, const struct page_view_gpu *g)
{
	return strcmp(p->uuid, g->device.uuid) == 0 && strcmp(p->mig_id, g->device.mig_id) == 0;
}

static void put_processes_json(struct json_writer *w, const struct page_view *v, const struct page_view_gpu *g)
{
	json_write_member_array(w, "processes");
	for (size_t i = 0; i < v->n_processes; i++) {
		const struct page_view_process *p = &v->processes[i];
		if (!is_on(p, g))
			continue;
		json_write_format(w, "{pid:%s,name:%s,memory_mib:%ld}", p->pid, p->name[0] ? p->name : NULL,
		                  (int64_t)(p->memory_bytes / 1048576));
	}
	json_write_array_end(w);
}

// One GPU as an object; `time` and `with_processes` add members.
static void put_gpu_json(struct json_writer *w, const struct column *columns, size_t n, const struct page_view *v,
                         const struct page_view_gpu *g, const char *time, bool with_processes)
{
	char cell[CELL_BYTES];
	json_write_object_begin(w);
	if (time)
		json_write_member_str(w, "time", time);
	for (size_t k = 0; k < n; k++) {
		json_write_key(w, columns[k].key);
		if (!get_cell(&columns[k], g, cell))
			json_write_null(w);
		else if (is_number(&columns[k]))
			json_write_raw(w, cell);
		else
			json_write_str(w, cell);
	}
	if (with_processes)
		put_processes_json(w, v, g);
	json_write_object_end(w);
}

// An array, or, with `is_lines`, a line for each GPU and reading.
static void put_json(const struct column *columns, size_t n, const struct page_view *v, const char *time,
                     bool with_processes, bool is_lines, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	if (!is_lines)
		json_write_array_begin(&w);
	for (size_t i = 0; i < v->n; i++) {
		if (is_lines)
			json_write_init(&w, out, 0);
		put_gpu_json(&w, columns, n, v, &v->gpus[i], time, with_processes);
		buf_puts(out, is_lines ? "\n" : "");
	}
	if (is_lines)
		return;
	json_write_array_end(&w);
	buf_putc(out, '\n');
}

// The processes below the table. NVML does not report the pod of a process: the pods are those of its GPU.
static void put_processes(const struct page_view *v, struct buf *out)
{
	if (v->n_processes == 0) {
		buf_puts(out, "\nno process: the exporter reports them with --processes and NVML\n");
		return;
	}
	print_to(out, "\n%3s  %3s  %8s  %9s  %-24s  %s\n", "GPU", "MIG", "PID", "MEMORY", "PROCESS", "POD");
	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < v->n_processes; k++) {
			const struct page_view_gpu *g = &v->gpus[i];
			const struct page_view_process *p = &v->processes[k];
			if (!is_on(p, g))
				continue;
			print_to(out, "%3" PRId32 "  %3s  %8s  %7.0fMi  %-24s  %s\n", g->device.index,
			         g->device.mig_id[0] ? g->device.mig_id : "-", p->pid, p->memory_bytes / 1048576,
			         p->name[0] ? p->name : "-", g->pods[0] ? g->pods : "-");
		}
	if (v->processes_left_out > 0)
		print_to(out, "left out: %zu processes above %d, or without a valid amount of memory\n",
		         v->processes_left_out, PAGE_VIEW_PROCESSES_MAX);
}

// `time` is the first cell of every row; NULL leaves it out.
static void put_csv(const struct column *columns, size_t n, const struct page_view *v, const char *time, bool with_head,
                    struct buf *out)
{
	char cell[CELL_BYTES];
	for (size_t k = 0; with_head && k < n; k++)
		print_to(out, "%s%s", k ? "," : time ? "time," : "", columns[k].key);
	buf_puts(out, with_head ? "\n" : "");
	for (size_t i = 0; i < v->n; i++) {
		buf_puts(out, time ? time : "");
		for (size_t k = 0; k < n; k++) {
			get_cell(&columns[k], &v->gpus[i], cell);
			buf_puts(out, k || time ? "," : "");
			if (is_number(&columns[k]))
				buf_puts(out, cell);
			else
				csv_put_text(out, cell);
		}
		buf_putc(out, '\n');
	}
}

void gpu_table_put(const struct exporter_options *o, const struct page_view *v, int64_t wall_ms, bool with_head,
                   struct buf *out)
{
	char time[NUM_TEXT_BYTES];
	bool top = o->command == COMMAND_TOP, processes = top && o->processes;
	const struct column *columns = top ? top_columns : list_columns;
	size_t n = top ? sizeof top_columns / sizeof top_columns[0] : sizeof list_columns / sizeof list_columns[0];
	num_format_rfc3339_ms(time, wall_ms);
	if (o->output == OUTPUT_JSON || o->output == OUTPUT_JSONL) {
		bool is_lines = o->output == OUTPUT_JSONL;
		put_json(columns, n, v, top && is_lines ? time : NULL, processes, is_lines, out);
		return;
	}
	if (o->output == OUTPUT_CSV) {
		put_csv(columns, n, v, top ? time : NULL, with_head, out);
		return;
	}
	if (v->n == 0)
		buf_puts(out, "no GPU\n");
	else
		put_table(columns, top && o->output == OUTPUT_TABLE ? NARROW_COLUMNS : n, v, out);
	if (processes)
		put_processes(v, out);
}
