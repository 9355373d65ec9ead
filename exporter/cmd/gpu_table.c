// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/gpu_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/text.h"
#include "base/utf8.h"
#include "exporter/cmd/exporter_options.h"
#include "exporter/cmd/page_view.h"

#define CELL_BYTES  (PAGE_VIEW_PODS_BYTES + 8)
#define COLUMNS_MAX 24
#define GAP         2

// The source of a cell: a label of the GPU, or a family of the page.
enum cell_kind { CELL_INDEX, CELL_TEXT, CELL_PODS, CELL_WHOLE, CELL_PERCENT };

struct column {
	const char *header; // of the table
	const char *key;    // of JSON and CSV
	enum cell_kind kind;
	size_t offset;      // CELL_TEXT: of the text in struct device
	const char *family; // CELL_WHOLE, CELL_PERCENT (a share of 0-1 shown as a percentage)
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
};
static const struct column list_columns[] = {
        {"GPU", "gpu", CELL_INDEX, 0, NULL, ""}, TEXT("UUID", "uuid", uuid),
        TEXT("MIG", "mig_id", mig_id),           TEXT("PROFILE", "mig_profile", mig_profile),
        TEXT("MODEL", "model", model),           TEXT("PCI", "pci_bus_id", pci_bus_id),
        TEXT("DEVICE", "device", node),          {"POD", "pods", CELL_PODS, 0, NULL, ""},
};
_Static_assert(sizeof top_columns / sizeof top_columns[0] <= COLUMNS_MAX, "columns fit");

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
	case CELL_WHOLE:
	case CELL_PERCENT:
		if (page_view_get(g, col->family, &v) && v > -1e15 && v < 1e15)
			snprintf(out, CELL_BYTES, "%.0f", col->kind == CELL_PERCENT ? v * 100 : v);
		break;
	}
	return out[0] != '\0';
}

static bool is_number(const struct column *col)
{
	return col->kind == CELL_INDEX || col->kind == CELL_WHOLE || col->kind == CELL_PERCENT;
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
	size_t pad = width > width_of(s) ? width - width_of(s) : 0;
	if (!right)
		buf_puts(out, s);
	for (size_t i = 0; i < pad && (right || !last); i++)
		buf_putc(out, ' ');
	if (right)
		buf_puts(out, s);
	for (int i = 0; i < GAP && !last; i++)
		buf_putc(out, ' ');
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

static void put_json(const struct column *columns, size_t n, const struct page_view *v, struct buf *out)
{
	struct json_writer w;
	char cell[CELL_BYTES];
	json_write_init(&w, out, 2);
	json_write_array_begin(&w);
	for (size_t i = 0; i < v->n; i++) {
		json_write_object_begin(&w);
		for (size_t k = 0; k < n; k++) {
			json_write_key(&w, columns[k].key);
			if (!get_cell(&columns[k], &v->gpus[i], cell))
				json_write_null(&w);
			else if (is_number(&columns[k]))
				json_write_raw(&w, cell);
			else
				json_write_str(&w, cell);
		}
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	buf_putc(out, '\n');
}

// RFC 4180. `time` is the first cell of every row; NULL leaves it out.
static void put_csv(const struct column *columns, size_t n, const struct page_view *v, const char *time, bool with_head,
                    struct buf *out)
{
	char cell[CELL_BYTES];
	for (size_t k = 0; with_head && k < n; k++)
		buf_printf(out, "%s%s", k ? "," : time ? "time," : "", columns[k].key);
	buf_puts(out, with_head ? "\n" : "");
	for (size_t i = 0; i < v->n; i++) {
		buf_puts(out, time ? time : "");
		for (size_t k = 0; k < n; k++) {
			get_cell(&columns[k], &v->gpus[i], cell);
			bool quote = strpbrk(cell, ",\"\r\n") != NULL;
			buf_puts(out, k || time ? "," : "");
			buf_puts(out, quote ? "\"" : "");
			for (const char *p = cell; *p; p++) {
				if (*p == '"')
					buf_putc(out, '"');
				buf_putc(out, *p);
			}
			buf_puts(out, quote ? "\"" : "");
		}
		buf_putc(out, '\n');
	}
}

void gpu_table_put(const struct exporter_options *o, const struct page_view *v, int64_t wall_ms, bool with_head,
                   struct buf *out)
{
	char time[NUM_TEXT_BYTES];
	bool top = o->command == COMMAND_TOP;
	const struct column *columns = top ? top_columns : list_columns;
	size_t n = top ? sizeof top_columns / sizeof top_columns[0] : sizeof list_columns / sizeof list_columns[0];
	if (o->output == OUTPUT_JSON)
		put_json(columns, n, v, out);
	else if (o->output == OUTPUT_CSV && top && num_format_rfc3339_ms(time, wall_ms) > 0)
		put_csv(columns, n, v, time, with_head, out);
	else if (o->output == OUTPUT_CSV)
		put_csv(columns, n, v, NULL, with_head, out);
	else if (v->n == 0)
		buf_puts(out, "no GPU\n");
	else
		put_table(columns, n, v, out);
}
