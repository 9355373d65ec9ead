// SPDX-License-Identifier: Apache-2.0
// The output of `gpuscale-exporter top` and `list`: a table, JSON, a JSON object per line, or CSV.
#ifndef GPUSCALE_EXPORTER_CMD_GPU_TABLE_H
#define GPUSCALE_EXPORTER_CMD_GPU_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct exporter_options;
struct page_view;

// Appends the GPUs of `v` to `out`, in the format and with the columns that `o` requests. `wall_ms` is the time of the
// reading, for the column or member "time" of the CSV and the JSON lines of `top`. `with_head` requests the header line
// of the CSV, which is printed once before the first reading.
void gpu_table_put(const struct exporter_options *o, const struct page_view *v, int64_t wall_ms, bool with_head,
                   struct buf *out);

#endif
