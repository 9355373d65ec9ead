// SPDX-License-Identifier: Apache-2.0
#include "insight/trace_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "base/file_open.h"
#include "insight/gpu_trace.h"
#include "insight/trace_reader.h"

#define PIECE_BYTES ((unsigned)(256 * 1024))

struct input {
	gzFile gz;
	char *piece;
	size_t file_bytes; // compressed, if it is
	trace_file_progress_fn *progress;
	void *arg;
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

static int read_pass(struct input *in, struct trace_reader *r, int pass, size_t *ret_bytes, struct err *e)
{
	size_t bytes = 0;
	for (;;) {
		int n = gzread(in->gz, in->piece, PIECE_BYTES);
		if (n < 0)
			return read_failed(in->gz, bytes, e);
		if (n == 0)
			break;
		if ((size_t)n > TRACE_FILE_BYTES_MAX - bytes)
			return err_set(e, ERR_LIMIT,
			               "the text is longer than the ceiling of %zu bytes: record fewer steps",
			               TRACE_FILE_BYTES_MAX);
		bytes += (size_t)n;
		if (trace_reader_feed(r, in->piece, (size_t)n, e) < 0)
			return -1;
		if (in->progress)
			in->progress(in->arg, (size_t)pass * in->file_bytes + (size_t)gzoffset(in->gz),
			             2 * in->file_bytes);
	}
	*ret_bytes = bytes;
	// A gzip file that ends early is reported here, not by gzread().
	int code;
	gzerror(in->gz, &code);
	return code == Z_OK ? trace_reader_finish(r, e) : read_failed(in->gz, bytes, e);
}

static int run_pass(struct input *in, struct gpu_trace *t, int pass, struct trace_file_counts *ret_counts,
                    struct err *e)
{
	struct trace_reader r;
	trace_reader_init(&r, pass == 0 ? gpu_trace_first : gpu_trace_second, t);
	r.classes = t->classes;
	int rc = read_pass(in, &r, pass, &ret_counts->bytes, e);
	memcpy(t->other_device, r.other_device, sizeof r.other_device);
	ret_counts->n_events = r.n_events - (pass == 0 ? 0 : t->n_zero);
	ret_counts->n_negative = r.n_negative;
	ret_counts->n_unmatched = r.n_unmatched;
	trace_reader_done(&r);
	return rc;
}

static int analyse(struct input *in, struct gpu_trace *t, struct trace_file_counts *ret_counts, struct err *e)
{
	if (run_pass(in, t, 0, ret_counts, e) < 0 || gpu_trace_find_gaps(t, e) < 0)
		return -1;
	if (gzrewind(in->gz) < 0)
		return read_failed(in->gz, 0, e);
	if (run_pass(in, t, 1, ret_counts, e) < 0)
		return -1;
	gpu_trace_finish(t);
	return 0;
}

int trace_file_analyse(const char *path, struct gpu_trace *t, trace_file_progress_fn *progress, void *arg,
                       struct trace_file_counts *ret_counts, struct err *e)
{
	struct stat st;
	struct input in = {.progress = progress, .arg = arg};
	int rc = -1, fd = file_open(path, e);
	if (fd < 0)
		return -1; // names the path
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		in.file_bytes = (size_t)st.st_size;
	in.piece = malloc(PIECE_BYTES);
	in.gz = gzdopen(fd, "rb");
	if (in.gz && in.piece)
		rc = analyse(&in, t, ret_counts, e);
	else
		err_no_memory(e);
	if (in.gz)
		gzclose(in.gz); // closes fd
	else
		close(fd);
	free(in.piece);
	return rc < 0 ? err_wrap(e, "%s", path) : 0;
}
