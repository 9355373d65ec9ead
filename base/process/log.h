// SPDX-License-Identifier: Apache-2.0
// Structured logging for the shells (controller/, exporter/); libraries never log.
// Messages are constant text; what varies is in key/values with lowerCamelCase keys. Formats: klog text or JSON lines.
// A line is built on the stack and goes out with one write(2): nothing is allocated, and threads may share a log.
#ifndef GPUSCALE_BASE_PROCESS_LOG_H
#define GPUSCALE_BASE_PROCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct log;

#define LOG_LINE_BYTES_MAX 8192 // longer lines are cut inside a value, keep their framing and end with truncated=true

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT__COUNT };
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_LEVEL__COUNT };

enum log_kv_type { LOG_KV_STR, LOG_KV_I64, LOG_KV_F64, LOG_KV_BOOL };
struct log_kv {
	const char *key; // NULL: the field is left out
	enum log_kv_type type;
	const char *s; // NULL prints null
	int64_t i;
	double f; // NaN and Inf print as such in text, as null in JSON
};
#define LOG_S(k, v) ((struct log_kv){.key = (k), .type = LOG_KV_STR, .s = (v)})
#define LOG_I(k, v) ((struct log_kv){.key = (k), .type = LOG_KV_I64, .i = (v)})
#define LOG_F(k, v) ((struct log_kv){.key = (k), .type = LOG_KV_F64, .f = (v)})
#define LOG_B(k, v) ((struct log_kv){.key = (k), .type = LOG_KV_BOOL, .i = (v)})

// Writes to fd (not closed by log_free), lines below min_level dropped. `clock` must outlive the log. NULL when memory
// ends.
struct log *log_new(int fd, enum log_format format, enum log_level min_level, const struct clock *clock);
void log_free(struct log *lg);
// lg NULL = drop. `file` may be a path: its last part is shown. Times are UTC.
// text: `I0105 09:00:00.123000    4711 loop.c:12] "message" policy="a/b" replicas=3` (klog; DEBUG is an I, as in klog)
// json: `{"ts":1767603600.123,"level":"info","caller":"loop.c:12","msg":"message","policy":"a/b","replicas":3}`
void log_write(struct log *lg, enum log_level level, const char *file, int line, const char *message,
               const struct log_kv *kv, size_t n);
// False when a line of this level would be dropped: to spare what only the line needs. lg may be NULL.
bool log_takes(const struct log *lg, enum log_level level);

// LOG(lg, LOG_INFO, "Scaled target", LOG_S("policy", name), LOG_I("replicas", n));  at least one key/value.
#define LOG(lg, level, message, ...)                                                                                   \
	log_write((lg), (level), __FILE__, __LINE__, (message), (const struct log_kv[]){__VA_ARGS__},                  \
	          sizeof((const struct log_kv[]){__VA_ARGS__}) / sizeof(struct log_kv))

#endif
