// SPDX-License-Identifier: Apache-2.0
// The price book of the controller: the shipped one, or a file that is read again when it changes. When a changed file
// cannot be used, an error is logged and the previous prices stay in use.
#include "base/base.h"
#include "controller/controller.h"

#include "base/arena.h"
#include "base/file_open.h"
#include "base/process/log.h"
#include "policies/price/price_book.h"

#define ARENA_MAX  ((size_t)16 * 1024 * 1024)
#define REPORT_MAX ((size_t)64 * 1024)
#define CHECK_MS   1000

struct priced {
	struct arena arena; // of the book
	struct price_book book;
};

struct price_follower {
	const char *path;
	struct log *log;
	struct file_stamp stamp; // of the file just before it was read
	int64_t checked_ms;
	struct priced *priced; // NULL: not read yet
};

static void priced_free(struct priced *p)
{
	if (!p)
		return;
	arena_done(&p->arena);
	free(p);
}

// Replaces the prices, or leaves them and sets *e, with the first faults of the file.
static int read_prices(struct price_follower *f, struct err *e)
{
	struct priced *p = must_alloc(calloc(1, sizeof *p));
	struct buf report;
	arena_init(&p->arena, ARENA_MAX);
	buf_init(&report, REPORT_MAX);
	if (f->path)
		f->stamp = file_stamp_of(f->path);
	int rc = price_book_read(f->path, &p->arena, &p->book, &report, e);
	if (rc < 0 && report.len > 0)
		err_set(e, ERR_INPUT, "%.*s", (int)report.len - 1, buf_str(&report)); // without its last line end
	buf_done(&report);
	if (rc < 0) {
		priced_free(p);
		return -1;
	}
	priced_free(f->priced);
	f->priced = p;
	return 0;
}

struct price_follower *price_follower_new(const char *path, struct log *log, struct err *e)
{
	struct price_follower *f = must_alloc(calloc(1, sizeof *f));
	f->path = path;
	f->log = log;
	if (path && read_prices(f, e) < 0) {
		price_follower_free(f);
		return NULL;
	}
	return f;
}

void price_follower_free(struct price_follower *f)
{
	if (!f)
		return;
	priced_free(f->priced);
	free(f);
}

static void follow(struct price_follower *f)
{
	struct file_stamp now = file_stamp_of(f->path);
	struct err e;
	if (file_stamp_is_same(&now, &f->stamp))
		return;
	if (read_prices(f, &e) == 0)
		LOG(f->log, LOG_INFO, "Reloaded prices", LOG_S("file", f->path));
	else
		LOG(f->log, LOG_ERROR, "Cannot use changed prices; keeping the previous ones", LOG_S("err", e.msg));
}

const struct price_book *price_follower_book(struct price_follower *f, int64_t now_ms)
{
	struct err e;
	if (!f->priced) {
		read_prices(f, &e);
	} else if (f->path && (now_ms >= f->checked_ms + CHECK_MS || now_ms < f->checked_ms)) {
		f->checked_ms = now_ms;
		follow(f);
	}
	return f->priced ? &f->priced->book : NULL;
}
