// SPDX-License-Identifier: Apache-2.0
// The commands check, top and list. Each reads pages of metrics (page_view.h) from a running exporter, a file or its
// own sampler; health_check.h reports on them and gpu_table.h prints them.
#ifndef GPUSCALE_EXPORTER_CMD_EXPORTER_CMD_H
#define GPUSCALE_EXPORTER_CMD_EXPORTER_CMD_H

#include <stddef.h>

struct buf;
struct clock;
struct err;
struct event_base;
struct exporter_options;
struct page_view;
struct sampler;

#define EXPORTER_CMD_PAGE_BYTES_MAX (20 * 1024 * 1024)
#define EXPORTER_CMD_TIMEOUT_MS     5000 // longest wait for a page

struct exporter_cmd {
	const struct exporter_options *options;
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	struct sampler *sampler;   // started, not owned; NULL: pages come from `from`
	const char *from;          // URL, path, or "-"
	struct buf *ret_errors;    // receives one line for each error in a file
};

// Writes the URL of an exporter that listens on `listen` to `out`: "http://127.0.0.1:9400/metrics". `size` must be at
// least 300.
void exporter_cmd_default_url(char *out, size_t size, const char *listen);
// Reads one page into `out`, which is emptied first, and decodes it. The caller frees the result with page_view_free().
// Returns NULL and fills `e` on failure.
struct page_view *exporter_cmd_read(struct exporter_cmd *c, struct buf *out, struct err *e);
// Runs the command of the options and returns its exit code. `first` is a page read earlier, or NULL; the function
// frees it.
int exporter_cmd_run(struct exporter_cmd *c, struct page_view *first, struct err *e);

#endif
