// SPDX-License-Identifier: Apache-2.0
// The commands check, top and list. Each reads pages of metrics (page_view.h) from a running exporter, a file or its
// own sampler; health_check.c reports on them and gpu_table.c prints them.
#ifndef GPUSCALE_EXPORTER_CMD_EXPORTER_CMD_H
#define GPUSCALE_EXPORTER_CMD_EXPORTER_CMD_H

#include "exporter/cmd/exporter_options.h"
#include "exporter/cmd/page_view.h"
#include "exporter/health_policy.h"

struct buf;
struct clock;
struct err;
struct event_base;
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

// ---- check ----

#define HEALTH_FINDINGS_MAX 512

struct health_finding {
	enum health_action action;
	const struct page_view_gpu *gpu;  // NULL: the node
	char reason[HEALTH_REASON_BYTES]; // CamelCase, for machines: "XID79", "RowRemapFailure"
	char text[160];
};

// Writes the findings about the page `v` at `wall_ms` to `ret_findings`, worst first; at most `max`. Returns their
// number.
size_t health_classify(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
                       struct health_finding *ret_findings, size_t max);

// Exit codes, as node-problem-detector reads them; 0 means healthy.
#define HEALTH_CHECK_PROBLEM 1
#define HEALTH_CHECK_UNKNOWN 2

// Appends the report on `v` to `out`, in the format that `o` requests, and returns the exit code. Without a page, `v`
// is NULL and `why` has the reason. `wall_ms` is the current time. Reads the XID policy file of `o`, if any; on
// errors in it, returns HEALTH_CHECK_UNKNOWN, fills `e` and appends a line for each error to `ret_errors`.
int health_check_run(const struct exporter_options *o, const struct page_view *v, const struct err *why,
                     int64_t wall_ms, struct buf *out, struct buf *ret_errors, struct err *e);

// ---- top and list ----

// Appends the GPUs of `v` to `out`, in the format and with the columns that `o` requests. `wall_ms` is the time of the
// reading, for the column or member "time" of the CSV and the JSON lines of `top`. `with_head` requests the header line
// of the CSV, which is printed once before the first reading.
void gpu_table_put(const struct exporter_options *o, const struct page_view *v, int64_t wall_ms, bool with_head,
                   struct buf *out);

#endif
