// SPDX-License-Identifier: Apache-2.0
#include "base/process/log.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/json/json_write.h"

struct log {
	int fd;
	enum log_format format;
	enum log_level min_level;
	const struct clock *clock;
};

static const struct {
	char letter;
	const char *name;
} levels[] = {
        [LOG_DEBUG] = {'I', "debug"},
        [LOG_INFO] = {'I', "info"},
        [LOG_WARNING] = {'W', "warning"},
        [LOG_ERROR] = {'E', "error"},
};
_Static_assert(sizeof levels / sizeof levels[0] == LOG_LEVEL__COUNT, "one row per log level");

// Always free at the end of a line: closing quote, the mark that it was cut, bracket and line feed.
#define TAIL_BYTES 32

struct line {
	char text[LOG_LINE_BYTES_MAX];
	size_t len;
	bool cut;
};

struct log *log_new(int fd, enum log_format format, enum log_level min_level, const struct clock *clock)
{
	assert(format < LOG_FORMAT__COUNT && min_level < LOG_LEVEL__COUNT);
	struct log *lg = malloc(sizeof *lg);
	if (!lg)
		return NULL;
	lg->fd = fd;
	lg->format = format;
	lg->min_level = min_level;
	lg->clock = clock;
	return lg;
}

void log_free(struct log *lg)
{
	free(lg);
}

bool log_takes(const struct log *lg, enum log_level level)
{
	return lg && level >= lg->min_level;
}

// A closing quote may already stand in the tail: then there is no room, not a negative one.
static size_t room(const struct line *l)
{
	const size_t end = sizeof l->text - TAIL_BYTES;
	return l->len < end ? end - l->len : 0;
}

// All of it or nothing; after the first nothing, the line takes no more.
static bool put(struct line *l, const char *s, size_t len)
{
	if (l->cut || len > room(l)) {
		l->cut = true;
		return false;
	}
	memcpy(l->text + l->len, s, len);
	l->len += len;
	return true;
}

// May use the tail.
static void put_tail(struct line *l, const char *s)
{
	size_t len = strlen(s);
	assert(len <= sizeof l->text - l->len);
	memcpy(l->text + l->len, s, len);
	l->len += len;
}

// Go's strconv.Quote, as klog uses it: \n \t \r \" \\, \xNN for control bytes and for what is not UTF-8.
static size_t quote_char(const char *s, size_t len, char *out, size_t *ret_taken)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = utf8_char_len(s, len);
	if (n == 0 || (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f) {
		static const char hex[] = "0123456789abcdef";
		const char x[] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
		memcpy(out, x, sizeof x);
		*ret_taken = 1;
		return sizeof x;
	}
	return json_escape_char(s, len, out, ret_taken);
}

static void put_quoted(const struct log *lg, struct line *l, const char *s)
{
	if (!put(l, "\"", 1))
		return;
	for (size_t i = 0, len = strlen(s), taken; i < len; i += taken) {
		char text[JSON_ESCAPED_BYTES_MAX];
		size_t n = lg->format == LOG_FORMAT_JSON ? json_escape_char(s + i, len - i, text, &taken)
		                                         : quote_char(s + i, len - i, text, &taken);
		if (!put(l, text, n))
			break;
	}
	put_tail(l, "\"");
}

// "," or " ", key, ":" or "=", in one piece: a cut never leaves a key without the start of its value.
static bool put_key(const struct log *lg, struct line *l, const char *key)
{
	size_t start = l->len;
	bool json = lg->format == LOG_FORMAT_JSON, fits;
	if (json) {
		fits = put(l, ",", 1);
		if (fits)
			put_quoted(lg, l, key);
		fits = put(l, ":", 1);
	} else {
		fits = put(l, " ", 1) && put(l, key, strlen(key)) && put(l, "=", 1);
	}
	if (!fits || room(l) < NUM_TEXT_BYTES) {
		l->len = start;
		l->cut = true;
	}
	return !l->cut;
}

static void put_kv(const struct log *lg, struct line *l, const struct log_kv *kv)
{
	if (!put_key(lg, l, kv->key))
		return;
	char text[NUM_TEXT_BYTES];
	switch (kv->type) {
	case LOG_KV_STR:
		if (kv->s)
			put_quoted(lg, l, kv->s);
		else
			put(l, "null", 4);
		break;
	case LOG_KV_I64:
		put(l, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)kv->i));
		break;
	case LOG_KV_F64:
		if (lg->format == LOG_FORMAT_JSON && !isfinite(kv->f))
			put(l, "null", 4);
		else
			put(l, text, num_format_f64(text, kv->f));
		break;
	case LOG_KV_BOOL:
		put(l, kv->i ? "true" : "false", kv->i ? 4 : 5);
		break;
	}
}

static void put_header(const struct log *lg, struct line *l, enum log_level level, const char *file, int line_number,
                       const char *message)
{
	const char *slash = strrchr(file, '/');
	file = slash ? slash + 1 : file;
	int64_t wall_ms = clock_wall_ms(lg->clock);
	char text[160];
	int n;
	if (lg->format == LOG_FORMAT_JSON) {
		int64_t s = wall_ms / 1000, ms = wall_ms % 1000;
		n = snprintf(text, sizeof text,
		             "{\"ts\":%lld.%03lld,\"level\":\"%s\",\"caller\":\"%.64s:%d\",\"msg\":", (long long)s,
		             (long long)ms, levels[level].name, file, line_number);
	} else {
		char stamp[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00.123Z
		num_format_rfc3339_ms(stamp, wall_ms);
		n = snprintf(text, sizeof text, "%c%.2s%.2s %.8s.%03d000 %7d %.64s:%d] ", levels[level].letter,
		             stamp + 5, stamp + 8, stamp + 11, (int)(wall_ms % 1000), (int)getpid(), file, line_number);
	}
	put(l, text, (size_t)n);
	put_quoted(lg, l, message);
}

void log_write(struct log *lg, enum log_level level, const char *file, int line, const char *message,
               const struct log_kv *kv, size_t n)
{
	if (!log_takes(lg, level))
		return;
	struct line l;
	l.len = 0;
	l.cut = false;
	put_header(lg, &l, level, file, line, message);
	for (size_t i = 0; i < n && !l.cut; i++)
		if (kv[i].key)
			put_kv(lg, &l, &kv[i]);
	if (l.cut)
		put_tail(&l, lg->format == LOG_FORMAT_JSON ? ",\"truncated\":true" : " truncated=true");
	put_tail(&l, lg->format == LOG_FORMAT_JSON ? "}\n" : "\n");

	// A pipe may take less than all; then the rest follows, so that at worst one line is torn, not all after it.
	for (size_t done = 0; done < l.len;) {
		ssize_t wrote = write(lg->fd, l.text + done, l.len - done);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return; // broken or full: there is nowhere else to report that
		done += (size_t)wrote;
	}
}
