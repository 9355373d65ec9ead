// SPDX-License-Identifier: Apache-2.0
#include "cli/term/line_filter.h"

#include "base/file_open.h"
#include "cli/term/cli.h"

#define READ_BYTES      (64 * 1024)
#define ANSWERS_MAX     (64 * 1024 * 1024)
#define OUTPUT_HELD_MAX (64 * 1024) // answers wait for each other up to here, while more lines are already there

// The input, split into lines. data[start..end) was read and is not answered yet; there is no newline before
// `searched`.
struct lines {
	const struct line_filter *filter;
	int fd;
	char *data;
	size_t start, searched, end;
	bool skipping; // inside a line that is too long and was answered
	struct buf out;
	unsigned long long n_lines, n_bad, first_bad;
	struct err first_error;
};

static int flush(struct lines *l)
{
	const char *p = buf_str(&l->out), *end = p + l->out.len;
	while (p < end) {
		ssize_t n = write(STDOUT_FILENO, p, (size_t)(end - p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			print_error("%s: standard output: %s\n", l->filter->command, strerror(errno));
			return -1;
		}
		p += n;
	}
	buf_reset(&l->out);
	return 0;
}

static int answer(struct lines *l, const char *line, size_t len)
{
	struct err e;
	l->n_lines++;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (l->filter->answer(l->filter->context, line, len, &l->out, &e) < 0 && l->n_bad++ == 0) {
		l->first_bad = l->n_lines;
		l->first_error = e;
	}
	if (l->out.failed) {
		print_error("%s: out of memory\n", l->filter->command);
		return -1;
	}
	return l->out.len > OUTPUT_HELD_MAX ? flush(l) : 0;
}

// Answers every complete line in the buffer.
static int answer_lines(struct lines *l)
{
	for (;;) {
		char *nl = memchr(l->data + l->searched, '\n', l->end - l->searched);
		if (!nl)
			break;
		size_t from = l->start;
		l->start = l->searched = (size_t)(nl - l->data) + 1;
		if (l->skipping)
			l->skipping = false;
		else if (answer(l, l->data + from, (size_t)(nl - l->data) - from) < 0)
			return -1;
	}
	l->searched = l->end;
	if (!l->skipping && l->end - l->start > l->filter->line_bytes_max) {
		if (answer(l, l->data + l->start, l->end - l->start) < 0) // answers that the line is too long
			return -1;
		l->skipping = true;
	}
	if (l->skipping)
		l->start = l->end;
	return 0;
}

static int run(struct lines *l)
{
	for (;;) {
		memmove(l->data, l->data + l->start, l->end - l->start);
		l->searched -= l->start;
		l->end -= l->start;
		l->start = 0;
		ssize_t n = read(l->fd, l->data + l->end, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			print_error("%s: %s: %s\n", l->filter->command,
			            l->fd == STDIN_FILENO ? "standard input" : l->filter->path, strerror(errno));
			return -1;
		}
		if (n == 0)
			break;
		l->end += (size_t)n;
		if (answer_lines(l) < 0 || flush(l) < 0)
			return -1;
	}
	if (!l->skipping && l->end > 0 && answer(l, l->data, l->end) < 0) // a last line without a newline
		return -1;
	if (l->filter->finish)
		l->filter->finish(l->filter->context, &l->out);
	return flush(l);
}

int line_filter_run(const struct line_filter *filter)
{
	bool is_stdin = !filter->path || strcmp(filter->path, "-") == 0;
	struct err e;
	int fd = is_stdin ? STDIN_FILENO : file_open_argument(filter->path, &e);
	if (fd < 0) {
		print_error("%s: %s\n", filter->command, e.msg);
		return EXIT_FAILED;
	}
	struct lines l = {.filter = filter, .fd = fd, .data = malloc(filter->line_bytes_max + 1 + READ_BYTES)};
	buf_init(&l.out, ANSWERS_MAX);
	int code = EXIT_FAILED;
	if (!l.data)
		print_error("%s: out of memory\n", filter->command);
	else if (run(&l) == 0)
		code = l.n_bad ? EXIT_FAILED : EXIT_OK;
	if (l.n_bad)
		print_error("%s: %llu of %llu lines could not be used; the first, line %llu: %s\n", filter->command,
		            l.n_bad, l.n_lines, l.first_bad, l.first_error.msg);
	buf_done(&l.out);
	free(l.data);
	if (!is_stdin)
		close(fd);
	return code;
}
