// SPDX-License-Identifier: Apache-2.0
// Writes text for people: tables, notes, warnings and errors on a terminal. What a %s or %c stands for may come from
// outside (labels, names of objects and files, replies of servers, arguments): it is escaped as base/text.h does, so it
// stays on its line and cannot control the terminal. The format is the program's own and keeps its newlines. Other
// formats have writers of their own: base/csv_text.h, base/xml_text.h, base/json/json_write.h, base/exposition.h and
// base/process/log.h. `make lint` rejects output past them.
#ifndef GPUSCALE_BASE_PRINT_H
#define GPUSCALE_BASE_PRINT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct argp_state;
struct buf;

// Appends formatted text. Conversions: those of printf for %c, %s, integers and doubles; %n and %p are not supported.
// The width of %s counts characters as they are shown; its precision counts bytes of the argument. Returns 0, or -1
// when the buffer has failed.
int print_to(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int print_vto(struct buf *out, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
// Appends formatted markup: what a %s or %c stands for is escaped as base/xml_text.h does. A %s has no width.
void print_xml(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Writes formatted text to standard output, where the stream may keep it until its buffer is full.
void print_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// Writes formatted text to standard error.
void print_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// Reports a wrong argument and exits, as argp_error. Returns only if `state` says not to exit.
void print_usage(const struct argp_state *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Returns whether a report on standard output has colours: on a terminal other than a dumb one, unless the environment
// variable NO_COLOR is set. A CLICOLOR_FORCE that is set overrides both. The flag --color sets these variables.
bool print_has_colour(void);
// Returns the width of the terminal of standard output in characters: $COLUMNS, or what the terminal reports. 0:
// unknown, or standard output is not a terminal.
size_t print_columns(void);

// Writes a complete report to standard output and flushes it. The report's newlines and tabs are kept, and colours if
// print_has_colour(); whatever else is unsafe is escaped once more, in case a report was not composed by one of the
// writers. Returns 0, or -1 when `text` has failed or cannot be written.
int print_out(const struct buf *text);
int print_outn(const char *text, size_t len);
// Clears the terminal of standard output, for a report that is shown again and again, and the last line of that of
// standard error. For terminals only.
void print_clear_screen(void);
void print_clear_line(void);
// Writes composed text, such as the errors of a file, to standard error, as print_out.
void print_notes(const struct buf *text);

#endif
