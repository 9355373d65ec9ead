// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/fix_file.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file_open.h"
#include "cli/term/cli.h"
#include "policies/lint/lint_names.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

// ---- replacing ----

// A program may save the file meanwhile: no save is lost, and a crash leaves the old file or the new one. Two files
// exchange their names (renameat2), and what was displaced is compared with what was read: only then is it known that
// nothing was saved in between. A program that writes into the file instead of replacing it is held off by a lease
// (fcntl, F_SETLEASE); when one waits, the exchange is undone, and the program writes into the file that it opened.

// A file that was opened to be replaced.
struct replace_file {
	char path[PATH_MAX]; // of the file itself, where the given path is a symbolic link
	int fd;              // open for reading; -1: not open
	bool has_lease;      // a program that opens the file for writing waits
	unsigned links;      // names of the file
};

#define EXCHANGES_MAX 64
#define LEASE_TRIES   200
#define LEASE_NAP_NS  5000000

static int fail(const char *path, const char *what, struct err *e)
{
	int why = errno;
	return err_set_code(e, ERR_IO, why, "%s: %s: %s", path, what, strerror(why));
}

// A program that opens the file for writing waits from now on. Returns -1 when one has it open.
static int take_lease(struct replace_file *f)
{
	signal(SIGIO, SIG_IGN); // sent when another program waits
	for (int i = 0; i < LEASE_TRIES; i++) {
		f->has_lease = fcntl(f->fd, F_SETLEASE, F_RDLCK) == 0;
		if (f->has_lease || errno != EAGAIN)
			return 0; // or the file system has no leases
		nanosleep(&(struct timespec){.tv_nsec = LEASE_NAP_NS}, NULL);
	}
	return -1;
}

// Opens the regular file at `path` and appends its content to `text`. Where the file system permits leases, other
// programs that open the file for writing wait until `f->fd` is closed. Returns 0, or -1 and *e: the errors of
// file_open() (base/file_open.h), ERR_LIMIT, ERR_IO, ERR_REJECTED when another program keeps the file open for writing
// for a second. The caller closes `f->fd`, unless it is -1, in both cases.
static int replace_file_open(struct replace_file *f, const char *path, struct buf *text, struct err *e)
{
	struct stat st;
	f->fd = -1;
	f->has_lease = false;
	if (!realpath(path, f->path))
		return err_set_code(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open %s: %s", path,
		                    strerror(errno));
	f->fd = file_open(f->path, e);
	if (f->fd < 0)
		return -1;
	if (fstat(f->fd, &st) < 0)
		return fail(path, "cannot be read", e);
	f->links = (unsigned)st.st_nlink;
	if (take_lease(f) < 0)
		return err_set(e, ERR_REJECTED, "%s: another program has the file open for writing: close it there",
		               path);
	char chunk[16384];
	ssize_t n;
	while ((n = read(f->fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && buf_put(text, chunk, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "%s is larger than the limit of %zu bytes", path, text->max);
	return n < 0 ? fail(path, "cannot be read", e) : 0;
}

// Returns whether the file at `path` is the one of `fd` and contains `text`.
static bool is_file_with(const char *path, int fd, const struct buf *text)
{
	struct stat at, open;
	char chunk[16384];
	if (lstat(path, &at) < 0 || fstat(fd, &open) < 0 || at.st_ino != open.st_ino || at.st_dev != open.st_dev ||
	    at.st_size != (off_t)text->len)
		return false;
	for (size_t done = 0; done < text->len;) {
		ssize_t n = pread(fd, chunk, sizeof chunk, (off_t)done);
		if (n <= 0 || (size_t)n > text->len - done || memcmp(chunk, text->data + done, (size_t)n) != 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool is_waited_for(const struct replace_file *f)
{
	return f->has_lease && fcntl(f->fd, F_GETLEASE) != F_RDLCK;
}

static int write_all(int fd, const struct buf *text)
{
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->data + done, text->len - done);
		if (n < 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

// Creates the file `temporary` next to the old one, complete and on disk. It has no name before, where the file system
// can do so, so that a process that is killed leaves none. Returns its descriptor.
static int create(const struct replace_file *f, const char *temporary, const struct buf *text, struct err *e)
{
	char folder[PATH_MAX], link[64];
	struct stat st;
	snprintf(folder, sizeof folder, "%s", f->path);
	bool is_named = false;
	int fd = open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		is_named = fd >= 0;
	}
	if (fd < 0)
		return fail(f->path, "its folder cannot be written", e);
	int rc = fstat(f->fd, &st) < 0 ? fail(f->path, "cannot be read", e) : 0;
	if (rc == 0 && fchown(fd, st.st_uid, st.st_gid) < 0)
		rc = err_set_code(e, ERR_REJECTED, errno,
		                  "%s: the owner %u:%u cannot be kept (%s): run the command as that user", f->path,
		                  (unsigned)st.st_uid, (unsigned)st.st_gid, strerror(errno));
	if (rc == 0 && (write_all(fd, text) < 0 || fchmod(fd, st.st_mode & 07777) < 0 || fsync(fd) < 0))
		rc = fail(f->path, "the new text cannot be written", e);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (rc == 0 && !is_named && linkat(AT_FDCWD, link, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) < 0)
		rc = fail(f->path, "the new file cannot be named", e);
	if (rc == 0)
		return fd;
	if (is_named)
		unlink(temporary);
	close(fd);
	return -1;
}

// Gives the new file, of `fd`, the name of the old one. Returns 0; 1 when the file was saved meanwhile; or -1 and *e.
// Nothing is left under the name `temporary`, unless an error says so.
static int exchange(const struct replace_file *f, const char *temporary, int fd, const struct buf *was,
                    const struct buf *text, struct err *e)
{
	struct stat new_file, displaced, put = {0}, put_before;
	int rc = -1;
	if (fstat(fd, &new_file) < 0 || lstat(temporary, &displaced) < 0) {
		fail(f->path, "the new file cannot be read", e);
	} else {
		for (int i = 0; i < EXCHANGES_MAX; i++) {
			put_before = put;
			put = displaced; // `path` names it after the exchange
			rc = renameat2(AT_FDCWD, temporary, AT_FDCWD, f->path, RENAME_EXCHANGE);
			if (rc < 0 && errno == ENOENT) { // removed: what was saved last goes back, unless there is more
				rc = i == 0 ||
				                     renameat2(AT_FDCWD, temporary, AT_FDCWD, f->path,
				                               RENAME_NOREPLACE) == 0 ||
				                     errno == EEXIST
				             ? 1
				             : -1;
				break;
			}
			if (rc < 0 && i == 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
				// Names cannot be exchanged here: a save between this check and the rename is not
				// noticed.
				rc = !is_file_with(f->path, f->fd, was) || is_waited_for(f)
				             ? 1
				             : rename(temporary, f->path);
				put = new_file;
				break;
			}
			if (rc < 0 || (i == 0 && is_file_with(temporary, f->fd, was) && !is_waited_for(f)))
				break;
			// What was put before is not needed any more, unless it was written to. Everything else is a
			// save, and goes back.
			rc = -1;
			if (lstat(temporary, &displaced) < 0)
				break;
			if (i > 0 && displaced.st_ino == put_before.st_ino &&
			    (displaced.st_ino != new_file.st_ino || is_file_with(temporary, fd, text))) {
				rc = 1;
				break;
			}
		}
		if (rc < 0 && put.st_ino != new_file.st_ino)
			return err_set(e, ERR_CONFLICT,
			               "%s: another program saves the file all the time; one of its saves is in %s",
			               f->path, temporary);
		if (rc < 0)
			fail(f->path, "cannot be replaced", e);
	}
	unlink(temporary);
	return rc;
}

// Writes `text` to a new file with the owner, group and mode of the old one, and gives it the old one's name. Signals
// wait meanwhile, so no temporary file is left. Returns 0; 1 when another program has saved the file since it was
// opened, which is then as that program left it: open it again; or -1 and *e, when the file is as it was: ERR_REJECTED
// when the owner cannot be kept, ERR_IO. `was` is the text that replace_file_open() read.
static int replace_file_write(struct replace_file *f, const struct buf *was, const struct buf *text, struct err *e)
{
	char temporary[PATH_MAX];
	if (snprintf(temporary, sizeof temporary, "%s.%d.tmp", f->path, (int)getpid()) >= (int)sizeof temporary)
		return err_set(e, ERR_IO, "%s: the path is longer than %d bytes", f->path, PATH_MAX);
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	int fd = create(f, temporary, text, e), rc = -1;
	if (fd >= 0) {
		rc = exchange(f, temporary, fd, was, text, e);
		close(fd);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

// ---- fixing ----

#define FIX_ARENA_MAX  (64 * 1024 * 1024)
#define NAME_BYTES_MIN 4  // no metric of the table has a shorter name
#define SAVES_MAX      50 // by another program, while the file is fixed

static int by_offset(const void *a, const void *b)
{
	const struct lint_edit *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static size_t line_of(const char *text, size_t offset)
{
	size_t line = 1;
	for (size_t i = 0; i < offset; i++)
		line += text[i] == '\n';
	return line;
}

static size_t collect(const struct doc_file *doc, struct arena *a, const char *path, const char *text,
                      struct lint_edit *edits, size_t max)
{
	size_t n = 0;
	struct schema_errors *errors = malloc(sizeof *errors);
	for (size_t i = 0; errors && i < doc->n_roots; i++) {
		struct policy_document document = {0};
		if (strcmp(doc_get_text(doc->roots[i], "kind", ""), POLICY_KIND) != 0)
			continue;
		schema_errors_init(errors, path);
		if (policy_decode(doc->roots[i], &document, a, errors) == 0 && errors->n == 0)
			n += lint_rename_edits(&document.policy, doc->roots[i], text, edits + n, max - n);
	}
	free(errors);
	return n;
}

// Appends `text` with the edits to `ret_fixed`, and a line for each to `report`.
static void apply(const char *path, const struct buf *text, struct lint_edit *edits, size_t n, struct buf *ret_fixed,
                  struct buf *report)
{
	size_t from = 0;
	qsort(edits, n, sizeof edits[0], by_offset);
	for (size_t i = 0; i < n; i++) {
		// Two nodes of one document may be one place of the file (an anchor and its alias).
		if (i > 0 && edits[i - 1].offset == edits[i].offset)
			continue;
		const char *old = buf_str(text) + edits[i].offset;
		buf_put(ret_fixed, buf_str(text) + from, edits[i].offset - from);
		buf_puts(ret_fixed, edits[i].new_name);
		from = edits[i].offset + edits[i].len;
		print_to(report, "%s:%zu: fixed: %.*s is now %s\n", path, line_of(buf_str(text), edits[i].offset),
		         (int)edits[i].len, old, edits[i].new_name);
	}
	buf_put(ret_fixed, buf_str(text) + from, text->len - from);
}

// Returns 0; 1 when the file was saved meanwhile and is to be read again; or -1 and *e.
static int fix_once(const char *path, struct replace_file *f, struct buf *report, struct err *e)
{
	struct arena a = ARENA(FIX_ARENA_MAX);
	struct buf text = BUF(DOC_BYTES_MAX), fixed = BUF(2 * DOC_BYTES_MAX);
	struct doc_file doc = {0};
	struct err unparsed;
	int rc = replace_file_open(f, path, &text, e);
	// Errors of the format are reported by the check that follows.
	if (rc == 0 && doc_parse_yaml(&a, path, buf_str(&text), text.len, &doc, &unparsed) == 0) {
		size_t max = text.len / NAME_BYTES_MIN + 1;
		struct lint_edit *edits = calloc(max, sizeof *edits);
		size_t n = edits ? collect(&doc, &a, path, buf_str(&text), edits, max) : 0;
		if (n > 0)
			apply(path, &text, edits, n, &fixed, report);
		if (!edits || fixed.failed)
			rc = err_set(e, ERR_INTERNAL, "%s: out of memory", path);
		else if (n > 0)
			rc = replace_file_write(f, &text, &fixed, e);
		free(edits);
	}
	if (f->fd >= 0)
		close(f->fd); // releases the lease
	buf_done(&fixed);
	buf_done(&text);
	arena_done(&a);
	return rc;
}

int fix_file(const char *path, struct buf *out, struct err *e)
{
	struct replace_file f;
	struct buf report = BUF(REPORT_MAX);
	int rc = 1;
	for (int i = 0; i < SAVES_MAX && rc == 1; i++) {
		buf_reset(&report);
		rc = fix_once(path, &f, &report, e);
	}
	if (rc == 1)
		rc = err_set(e, ERR_CONFLICT, "%s: another program saves the file all the time: stop it and try again",
		             path);
	if (rc == 0 && report.len > 0) {
		buf_put(out, buf_str(&report), report.len);
		if (f.links > 1)
			print_to(out,
			         "%s: note: the file has %u names (hard links), and the others keep the old text\n",
			         path, f.links);
	}
	buf_done(&report);
	return rc;
}
