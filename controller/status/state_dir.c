// SPDX-License-Identifier: Apache-2.0
#include "controller/status/state_dir.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define LOCK_FILE    "lock"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define SUFFIX       ".state"
#define TEMPORARY    ".tmp" // suffix while the file is being written
#define MAGIC        "gpuscale-state "
#define DIGEST_TEXT  (2 * SHA256_DIGEST_LENGTH)

// ---- the format of a file ----

int state_file_name(char out[STATE_FILE_NAME_BYTES], const struct binding *binding, struct err *e)
{
	const struct policy *policy = binding->policy;
	int n = snprintf(out, STATE_FILE_NAME_BYTES, "%s_%s%s%s" SUFFIX, policy->namespace_name, policy->name,
	                 binding->key ? "/" : "", binding->key ? binding->key : "");
	for (char *slash = out; (slash = strchr(slash, '/'));)
		*slash = '_'; // which no part contains
	if (n > 0 && (size_t)n + sizeof TEMPORARY <= STATE_FILE_NAME_BYTES)
		return 0;
	return err_set(e, ERR_LIMIT,
	               "expected namespace and name of a policy to have at most %d characters together, so that a "
	               "file can be named after them, got %d: use a shorter name",
	               (int)(STATE_FILE_NAME_BYTES - sizeof TEMPORARY - sizeof "_.state" + 1),
	               n - (int)(sizeof "_.state" - 1));
}

static void digest_of(char out[DIGEST_TEXT + 1], const char *text, size_t len)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)text, len, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static void target_of(struct buf *out, const struct scale_target *t)
{
	buf_printf(out, "%s %s %s%s%s", t->api_version, t->kind, t->name, t->path ? " " : "", t->path ? t->path : "");
}

void state_file_seal(struct buf *out, const char *body, size_t len)
{
	char digest[DIGEST_TEXT + 1];
	digest_of(digest, body, len);
	buf_printf(out, MAGIC "%d %s\n", STATE_FILE_VERSION, digest);
	buf_put(out, body, len);
}

void state_file_write(struct buf *out, const struct binding *binding, const struct state_clock *clock,
                      const char *status)
{
	struct buf body, target;
	struct json_writer w;
	char offset[NUM_TEXT_BYTES];
	buf_init(&body, STATE_FILE_BYTES_MAX);
	buf_init(&target, STATE_FILE_BYTES_MAX);
	const struct policy *policy = binding->policy;
	target_of(&target, binding->target);
	snprintf(offset, sizeof offset, "%lld", (long long)clock->offset_ms);
	json_write_init(&w, &body, 0);
	// A file has no generation. The offset is a text, because JSON numbers are exact only up to 2^53.
	json_write_format(&w,
	                  "{apiVersion:%s,kind:%s,metadata:{namespace:%s,name:%s,generation:%d},target:%s,bootId:%s,"
	                  "clockOffsetMs:%s}",
	                  POLICY_API_VERSION, POLICY_KIND, policy->namespace_name, policy->name, 0, buf_str(&target),
	                  clock->boot_id, offset);
	// Merges the two objects into one.
	if (body.len > 0)
		body.data[--body.len] = '\0';
	buf_printf(&body, ",%s\n", status + 1);
	state_file_seal(out, buf_str(&body), body.len);
	out->failed = out->failed || body.failed || target.failed;
	buf_done(&target);
	buf_done(&body);
}

static int damaged(struct err *e, const char *what)
{
	return err_set(e, ERR_PROTOCOL, "%s: it was cut short or damaged", what);
}

// The first line identifies the format; the checksum verifies the rest.
int state_file_unseal(const char *text, size_t len, size_t *ret_body, struct err *e)
{
	const char *end = memchr(text, '\n', len);
	size_t magic = sizeof MAGIC - 1, line = end ? (size_t)(end - text) : 0;
	char expected[DIGEST_TEXT + 1];
	int64_t version;
	if (!end || line <= magic || memcmp(text, MAGIC, magic) != 0)
		return damaged(e, "expected a first line \"" MAGIC "VERSION CHECKSUM\"");
	const char *blank = memchr(text + magic, ' ', line - magic);
	if (!blank || num_parse_i64(text + magic, (size_t)(blank - text) - magic, 0, INT32_MAX, &version, e) < 0)
		return damaged(e, "expected a version number in the first line");
	if (version != STATE_FILE_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "expected format version %d, found %d: another release wrote it",
		               STATE_FILE_VERSION, (int)version);
	digest_of(expected, end + 1, len - line - 1);
	if ((size_t)(end - blank - 1) != DIGEST_TEXT || memcmp(blank + 1, expected, DIGEST_TEXT) != 0)
		return damaged(e, "the checksum does not match the content");
	*ret_body = line + 1;
	return 0;
}

static int check_owner(const cJSON *root, const struct binding *binding, struct err *e)
{
	const struct policy *p = binding->policy;
	const cJSON *metadata = json_get(root, "metadata");
	const char *namespace_name = json_get_str(metadata, "namespace", ""),
	           *name = json_get_str(metadata, "name", "");
	if (strcmp(namespace_name, p->namespace_name) != 0 || strcmp(name, p->name) != 0)
		return err_set(e, ERR_CONFLICT,
		               "expected the memory of policy %.63s/%.253s, found that of %.63s/%.253s",
		               p->namespace_name, p->name, namespace_name, name);
	struct buf target;
	buf_init(&target, STATE_FILE_BYTES_MAX);
	target_of(&target, binding->target);
	const char *found = json_get_str(root, "target", "");
	int rc = 0;
	if (strcmp(found, buf_str(&target)) != 0)
		rc = err_set(e, ERR_CONFLICT, "expected the memory of target %.200s, found that of %.200s",
		             buf_str(&target), found);
	buf_done(&target);
	return rc;
}

static int read_body(const cJSON *root, const struct binding *binding, struct state_clock *ret_clock, struct err *e)
{
	if (!cJSON_IsObject(root) || !cJSON_IsObject(json_get(root, "status")))
		return damaged(e, "expected an object with a status");
	if (check_owner(root, binding, e) < 0)
		return -1;
	const char *offset = json_get_str(root, "clockOffsetMs", ""), *boot_id = json_get_str(root, "bootId", "");
	*ret_clock = (struct state_clock){0};
	// Without both fields, the times are used unchanged.
	if (num_parse_i64(offset, strlen(offset), INT64_MIN / 4, INT64_MAX / 4, &ret_clock->offset_ms, NULL) == 0 &&
	    strlen(boot_id) < STATE_BOOT_ID_BYTES)
		snprintf(ret_clock->boot_id, sizeof ret_clock->boot_id, "%s", boot_id);
	return 0;
}

int state_file_read(const char *text, size_t len, const struct binding *binding, struct state_file *ret_file,
                    struct err *e)
{
	size_t body = 0;
	if (len > STATE_FILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "expected at most %d bytes, found %zu", STATE_FILE_BYTES_MAX, len);
	if (state_file_unseal(text, len, &body, e) < 0)
		return -1;
	cJSON *root = json_read(text + body, len - body, e);
	if (!root)
		return -1;
	int rc = read_body(root, binding, &ret_file->clock, e);
	cJSON_Delete(root);
	ret_file->json = text + body;
	ret_file->json_len = len - body;
	return rc;
}

// ---- the directory ----

struct state_write {
	struct state_write *prev, *next;
	char *name, *text; // owned; text NULL: remove the file
	size_t len;
	struct state_slot *slot; // NULL: no callback
	struct err error;        // kind ERR_NONE: done
};

struct state_dir {
	char *path;
	int dir_fd, lock_fd;
	int wake_fd; // signalled when the thread has finished a write
	struct event *wake;
	char boot_id[STATE_BOOT_ID_BYTES];
	pthread_t thread;
	bool has_thread;
	size_t n_files; // used only by the thread once it runs

	pthread_mutex_t mutex; // protects everything below, and slots and texts of the writes in the lists
	pthread_cond_t changed;
	struct state_write *queue, *busy, *done; // the thread reads the other fields of `busy` without the lock
	bool is_closing;
};

static void free_write(struct state_write *w)
{
	free(w->name);
	free(w->text);
	free(w);
}

// ---- the thread ----

static int fail(struct err *e, const struct state_dir *d, const char *what, const char *name)
{
	return err_set(e, errno == ENOSPC || errno == EDQUOT ? ERR_LIMIT : ERR_IO, "cannot %s %.500s/%s: %s", what,
	               d->path, name, strerror(errno));
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int make_room(struct state_dir *d, const struct state_write *w, struct err *e)
{
	if (faccessat(d->dir_fd, w->name, F_OK, 0) == 0)
		return 0;
	if (d->n_files >= STATE_DIR_FILES_MAX)
		return err_set(e, ERR_LIMIT,
		               "expected at most %d files in %.500s, and there are %zu: remove those of policies that "
		               "are gone",
		               STATE_DIR_FILES_MAX, d->path, d->n_files);
	d->n_files++;
	return 0;
}

static int write_one(struct state_dir *d, const struct state_write *w, struct err *e)
{
	char temporary[STATE_FILE_NAME_BYTES];
	snprintf(temporary, sizeof temporary, "%s" TEMPORARY, w->name);
	if (make_room(d, w, e) < 0)
		return -1;
	// Never the existing file of another user who may write in the directory, nor another name of a file elsewhere.
	unlinkat(d->dir_fd, temporary, 0);
	int fd = openat(d->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(e, d, "create", temporary);
	int rc = write_all(fd, w->text, w->len) == 0 && fsync(fd) == 0 ? 0 : fail(e, d, "write", temporary);
	if (close(fd) < 0 && rc == 0)
		rc = fail(e, d, "write", temporary);
	if (rc == 0 && renameat(d->dir_fd, temporary, d->dir_fd, w->name) < 0)
		rc = fail(e, d, "rename", temporary);
	if (rc < 0)
		unlinkat(d->dir_fd, temporary, 0);
	return rc;
}

static int remove_one(struct state_dir *d, const struct state_write *w, struct err *e)
{
	if (unlinkat(d->dir_fd, w->name, 0) == 0)
		d->n_files--;
	else if (errno != ENOENT)
		return fail(e, d, "remove", w->name);
	return 0;
}

static void write_batch(struct state_dir *d)
{
	struct state_write *w;
	DL_FOREACH(d->busy, w)
	if ((w->text ? write_one : remove_one)(d, w, &w->error) == 0)
		w->error.kind = ERR_NONE;
	if (fsync(d->dir_fd) == 0)
		return;
	int why = errno;
	DL_FOREACH(d->busy, w)
	{
		errno = why;
		fail(&w->error, d, "sync", "");
	}
}

static void take_batch(struct state_dir *d)
{
	for (int n = 0; d->queue && n < STATE_DIR_BATCH_MAX; n++) {
		struct state_write *w = d->queue;
		DL_DELETE(d->queue, w);
		if (w->slot)
			w->slot->queued = NULL;
		DL_APPEND(d->busy, w);
	}
}

static void *run(void *arg)
{
	struct state_dir *d = arg;
	const uint64_t one = 1;
	pthread_mutex_lock(&d->mutex);
	for (;;) {
		while (!d->queue && !d->is_closing)
			pthread_cond_wait(&d->changed, &d->mutex);
		if (!d->queue)
			break;
		take_batch(d);
		pthread_mutex_unlock(&d->mutex);
		write_batch(d);
		pthread_mutex_lock(&d->mutex);
		DL_CONCAT(d->done, d->busy);
		d->busy = NULL;
		pthread_cond_broadcast(&d->changed);
		// A full counter means that a wake-up is already pending.
		(void)!write(d->wake_fd, &one, sizeof one);
	}
	pthread_mutex_unlock(&d->mutex);
	return NULL;
}

// ---- called from the loop ----

static struct state_write *take_done(struct state_dir *d, state_written_fn **ret_fn, void **ret_arg)
{
	pthread_mutex_lock(&d->mutex);
	struct state_write *w = d->done;
	if (w)
		DL_DELETE(d->done, w);
	*ret_fn = w && w->slot ? w->slot->fn : NULL;
	*ret_arg = w && w->slot ? w->slot->arg : NULL;
	pthread_mutex_unlock(&d->mutex);
	return w;
}

static void call_back(struct state_dir *d)
{
	state_written_fn *fn;
	void *arg;
	for (struct state_write *w; (w = take_done(d, &fn, &arg));) {
		if (fn)
			fn(arg, w->error.kind == ERR_NONE ? NULL : &w->error);
		free_write(w);
	}
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;
	(void)!read(fd, &n, sizeof n);
	call_back(arg);
}

void state_dir_drain(struct state_dir *d)
{
	pthread_mutex_lock(&d->mutex);
	while (d->queue || d->busy)
		pthread_cond_wait(&d->changed, &d->mutex);
	pthread_mutex_unlock(&d->mutex);
	call_back(d);
}

static void append(struct state_dir *d, struct state_write *w)
{
	DL_APPEND(d->queue, w);
	pthread_cond_broadcast(&d->changed);
}

void state_dir_put(struct state_dir *d, struct state_slot *slot, const char *name, const char *text, size_t len,
                   state_written_fn *fn, void *arg)
{
	char *copy = must_alloc(malloc(len ? len : 1));
	memcpy(copy, text, len);
	pthread_mutex_lock(&d->mutex);
	slot->dir = d;
	slot->fn = fn;
	slot->arg = arg;
	if (slot->queued) {
		free(slot->queued->text);
	} else {
		slot->queued = must_alloc(calloc(1, sizeof *slot->queued));
		slot->queued->name = must_alloc(strdup(name));
		slot->queued->slot = slot;
		append(d, slot->queued);
	}
	slot->queued->text = copy;
	slot->queued->len = len;
	pthread_mutex_unlock(&d->mutex);
}

void state_dir_remove(struct state_dir *d, const char *name)
{
	struct state_write *w = must_alloc(calloc(1, sizeof *w));
	w->name = must_alloc(strdup(name));
	pthread_mutex_lock(&d->mutex);
	append(d, w);
	pthread_mutex_unlock(&d->mutex);
}

static void forget_slot(struct state_write *list, const struct state_slot *slot)
{
	struct state_write *w;
	DL_FOREACH(list, w)
	if (w->slot == slot)
		w->slot = NULL;
}

void state_slot_cancel(struct state_slot *slot)
{
	struct state_dir *d = slot->dir;
	if (!d)
		return;
	pthread_mutex_lock(&d->mutex);
	forget_slot(d->queue, slot);
	forget_slot(d->busy, slot);
	forget_slot(d->done, slot);
	pthread_mutex_unlock(&d->mutex);
	*slot = (struct state_slot){0};
}

// Returns whether a write for that name is pending. All writes for a name use the same queue, so none overtakes
// another.
static bool is_pending(const struct state_dir *d, const char *name)
{
	const struct state_write *w;
	const struct state_write *const lists[] = {d->queue, d->busy};
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		DL_FOREACH(lists[i], w)
	if (strcmp(w->name, name) == 0)
		return true;
	return false;
}

int state_dir_read(struct state_dir *d, const char *name, struct buf *out, struct err *e)
{
	struct stat st;
	pthread_mutex_lock(&d->mutex);
	while (is_pending(d, name)) // rare: a policy that is removed and added again at once
		pthread_cond_wait(&d->changed, &d->mutex);
	pthread_mutex_unlock(&d->mutex);
	int fd = file_open_in(d->dir_fd, name, &st, e);
	if (fd >= 0 && buf_read_opened(out, fd, name, e) == 0)
		return 1;
	return e->kind == ERR_NOT_FOUND ? 0 : err_wrap(e, "%.500s", d->path);
}

// ---- start and stop ----

static void read_boot_id(struct state_dir *d)
{
	struct buf text;
	struct err unused;
	buf_init(&text, STATE_BOOT_ID_BYTES - 1);
	if (buf_read_file(&text, BOOT_ID_FILE, &unused) == 0)
		snprintf(d->boot_id, sizeof d->boot_id, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
	buf_done(&text);
}

static int lock(struct state_dir *d, struct err *e)
{
	char pid[32] = "";
	d->lock_fd = openat(d->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock_fd < 0)
		return fail(e, d, "create", LOCK_FILE);
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return fail(e, d, "lock", LOCK_FILE);
		ssize_t n = pread(d->lock_fd, pid, sizeof pid - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strspn(pid, "0123456789")] = '\0';
		return err_set(e, ERR_CONFLICT,
		               "the state directory %.500s is used by another process (%s%s): each needs its own",
		               d->path, pid[0] ? "pid " : "unknown", pid);
	}
	int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, pid, (size_t)n, 0) != n)
		return fail(e, d, "write", LOCK_FILE);
	return 0;
}

// Deletes temporary files that a killed process left half written.
static int count_files(struct state_dir *d, struct err *e)
{
	int fd = openat(d->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const size_t suffix = sizeof SUFFIX - 1, temporary = sizeof TEMPORARY - 1;
	if (!dir) {
		fail(e, d, "list", "");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	for (const struct dirent *f; (f = readdir(dir));) {
		size_t n = strlen(f->d_name);
		if (n > suffix && strcmp(f->d_name + n - suffix, SUFFIX) == 0)
			d->n_files++;
		if (n > suffix + temporary && strcmp(f->d_name + n - suffix - temporary, SUFFIX TEMPORARY) == 0)
			unlinkat(d->dir_fd, f->d_name, 0);
	}
	closedir(dir);
	return 0;
}

static int open_folder(struct state_dir *d, struct err *e)
{
	if (mkdir(d->path, 0700) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, "cannot create the state directory %.500s: %s", d->path, strerror(errno));
	d->dir_fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0)
		return err_set(e, ERR_IO, "cannot open the state directory %.500s: %s", d->path, strerror(errno));
	return lock(d, e) < 0 ? -1 : count_files(d, e);
}

// Blocks signals in the thread: the loop handles them.
static int start_thread(struct state_dir *d, struct err *e)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&d->thread, NULL, run, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	d->has_thread = rc == 0;
	return rc == 0 ? 0 : err_set(e, ERR_INTERNAL, "cannot start a thread: %s", strerror(rc));
}

static int start(struct state_dir *d, struct event_base *loop, struct err *e)
{
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->wake = d->wake_fd < 0 ? NULL : event_new(loop, d->wake_fd, EV_READ | EV_PERSIST, on_wake, d);
	if (!d->wake || event_add(d->wake, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "cannot create an event");
	return start_thread(d, e);
}

struct state_dir *state_dir_open(const char *path, struct event_base *loop, struct err *e)
{
	struct state_dir *d = must_alloc(calloc(1, sizeof *d));
	d->dir_fd = d->lock_fd = d->wake_fd = -1;
	d->path = must_alloc(strdup(path));
	pthread_mutex_init(&d->mutex, NULL);
	pthread_cond_init(&d->changed, NULL);
	read_boot_id(d);
	if (open_folder(d, e) == 0 && start(d, loop, e) == 0)
		return d;
	state_dir_close(d);
	return NULL;
}

void state_dir_close(struct state_dir *d)
{
	if (!d)
		return;
	if (d->has_thread) {
		pthread_mutex_lock(&d->mutex);
		d->is_closing = true;
		pthread_cond_broadcast(&d->changed);
		pthread_mutex_unlock(&d->mutex);
		pthread_join(d->thread, NULL);
	}
	assert(!d->queue && !d->busy);
	struct state_write *w, *next;
	DL_FOREACH_SAFE(d->done, w, next)
	free_write(w);
	if (d->wake)
		event_free(d->wake);
	const int fds[] = {d->wake_fd, d->lock_fd, d->dir_fd}; // closing the descriptor releases the lock
	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->mutex);
	free(d->path);
	free(d);
}

const char *state_dir_boot_id(const struct state_dir *d)
{
	return d->boot_id;
}
