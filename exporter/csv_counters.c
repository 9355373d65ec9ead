// SPDX-License-Identifier: Apache-2.0
#include "exporter/csv_counters.h"

#include <stdarg.h>

#include "base/base.h"
#include "base/print.h"

#define COLUMNS         3
#define SHOWN_BYTES     80
#define DRIVER_VERSION  "DCGM_FI_DRIVER_VERSION"
#define SYSTEM_VERSION  "DCGM_FI_SYSTEM_DRIVER_VERSION" // its name since 4.9
#define EXPORTER_PREFIX "DCGM_EXP_"
#define BLANKS          " \t"

// The parser's state: one line, split into columns in place.
struct reader {
	struct csv_counters *c;
	const char *name;
	struct buf *remarks;
	int line;
	int first_line[FIELD__COUNT]; // line that defines the field; 0: none yet
	int version_line;
	char text[CSV_COUNTERS_LINE_BYTES_MAX + 1]; // the line, later its columns
};

__attribute__((format(printf, 2, 3))) static void skip_row(struct reader *r, const char *fmt, ...)
{
	if (++r->c->skipped > CSV_COUNTERS_REMARKS_MAX)
		return;
	va_list ap;
	va_start(ap, fmt);
	print_to(r->remarks, "%s:%d: ", r->name, r->line);
	print_vto(r->remarks, fmt, ap);
	buf_putc(r->remarks, '\n');
	va_end(ap);
}

// Removes the next column from `*rest` and terminates it. NULL if a quote is not closed or text follows it.
static char *cut_column(char **rest)
{
	char *p = *rest, *begin, *end;
	p += strspn(p, BLANKS);
	if (*p == '"') {
		begin = end = ++p;
		while (*p && (*p != '"' || p[1] == '"')) {
			p += *p == '"'; // two quotes represent one
			*end++ = *p++;
		}
		if (*p++ != '"')
			return NULL;
		p += strspn(p, BLANKS);
		if (*p && *p != ',')
			return NULL;
	} else {
		begin = p;
		p += strcspn(p, ",");
		end = p;
		while (end > begin && strchr(BLANKS, end[-1]))
			end--;
	}
	*rest = *p == ',' ? p + 1 : NULL;
	*end = '\0';
	return begin;
}

// Splits a line into at most COLUMNS + 1 columns; 0 if its quotes do not match.
static size_t cut_line(char *line, char *columns[COLUMNS + 1])
{
	size_t n = 0;
	while (line && n < COLUMNS + 1) {
		columns[n] = cut_column(&line);
		if (!columns[n++])
			return 0;
	}
	return n;
}

static bool find_type(const char *text, enum metric_type *ret_type)
{
	*ret_type = strcmp(text, "counter") == 0 ? METRIC_COUNTER : METRIC_GAUGE;
	return *ret_type == METRIC_COUNTER || strcmp(text, "gauge") == 0;
}

static void take_label(struct reader *r, const char *field, const char *shown)
{
	if (strcmp(field, DRIVER_VERSION) != 0 && strcmp(field, SYSTEM_VERSION) != 0)
		skip_row(r, "%s: not supported as a label; only %s is", shown, DRIVER_VERSION);
	else if (r->version_line)
		skip_row(r, "%s: already defined in line %d", shown, r->version_line);
	else {
		r->version_line = r->line;
		r->c->driver_version = true;
	}
}

static void skip_unknown(struct reader *r, const char *field, const char *shown)
{
	// Remarks above the limit are only counted and need no suggestion: a file with nothing else would take seconds.
	bool reported = r->c->skipped < CSV_COUNTERS_REMARKS_MAX;
	const char *closest = reported ? family_closest_name(field) : NULL;
	if (strncmp(field, EXPORTER_PREFIX, sizeof EXPORTER_PREFIX - 1) == 0)
		skip_row(r, "%s: not supported: a metric of dcgm-exporter about itself", shown);
	else
		skip_row(r, "%s: unknown field%s%s%s", shown, closest ? "; did you mean " : "", closest ? closest : "",
		         closest ? "?" : "");
}

static int take_row(struct reader *r, char *columns[COLUMNS], struct err *e)
{
	char shown[SHOWN_BYTES], shown_type[SHOWN_BYTES];
	text_show(shown, sizeof shown, columns[0], strlen(columns[0]));
	text_show(shown_type, sizeof shown_type, columns[1], strlen(columns[1]));
	enum metric_type type;
	double factor;
	enum field f = naming_find(columns[0], &factor);
	if (strcmp(columns[1], "label") == 0)
		take_label(r, columns[0], shown);
	else if (f == FIELD__COUNT)
		skip_unknown(r, columns[0], shown);
	else if (family_of(f)->dcgm_id == 0)
		skip_row(r, "%s: always served, the row has no effect", shown);
	else if (!find_type(columns[1], &type))
		skip_row(r, "%s: type \"%s\": must be gauge, counter or label", shown, shown_type);
	else if (r->first_line[f])
		skip_row(r, "%s: already defined in line %d", shown, r->first_line[f]);
	else {
		r->first_line[f] = r->line;
		const char *help = columns[2][0] ? arena_strdup(&r->c->arena, columns[2]) : family_of(f)->help;
		if (!help)
			return err_no_memory(e);
		r->c->rows[r->c->n++] = (struct counter_row){.field = f, .type = type, .help = help};
	}
	return 0;
}

static int take_line(struct reader *r, const char *line, size_t len, struct err *e)
{
	char *columns[COLUMNS + 1];
	if (len > 0 && line[len - 1] == '\r')
		len--;
	while (len > 0 && memchr(BLANKS, line[0], strlen(BLANKS)))
		line++, len--;
	if (len == 0 || line[0] == '#')
		return 0;
	if (len > CSV_COUNTERS_LINE_BYTES_MAX) {
		skip_row(r, "a line of %zu bytes, the ceiling is %d", len, CSV_COUNTERS_LINE_BYTES_MAX);
		return 0;
	}
	memcpy(r->text, line, len);
	r->text[len] = '\0';
	size_t n = cut_line(r->text, columns);
	if (n == 0)
		skip_row(r, "unbalanced quotes: write \"..\" around a whole column, and \"\" for a quote in it");
	else if (n != COLUMNS)
		skip_row(r, "%s columns than three: expected FIELD, type, help%s", n < COLUMNS ? "fewer" : "more",
		         n > COLUMNS ? "; a help text with a comma needs quotes" : "");
	else
		return take_row(r, columns, e);
	return 0;
}

void csv_counters_init_builtin(struct csv_counters *c)
{
	*c = (struct csv_counters){.driver_version = true, .n = FIELD__COUNT};
	arena_init(&c->arena, CSV_COUNTERS_BYTES_MAX);
	for (int f = 0; f < FIELD__COUNT; f++) {
		const struct family *fam = family_of((enum field)f);
		c->rows[f] = (struct counter_row){.field = (enum field)f, .type = fam->type, .help = fam->help};
	}
}

int csv_counters_parse(struct csv_counters *c, const char *name, const char *text, size_t len, struct buf *ret_remarks,
                       struct err *e)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct reader r = {.c = c, .name = name, .remarks = ret_remarks};
	*c = (struct csv_counters){.n = 0};
	if (len > CSV_COUNTERS_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s: %zu bytes, the ceiling is %d", name, len, CSV_COUNTERS_BYTES_MAX);
	if (len > 0 && memchr(text, '\0', len))
		return err_set(e, ERR_INPUT, "%s: holds a NUL byte: not a counters file", name);
	// The copy of a help text is not longer than its line, but its size is rounded up.
	arena_init(&c->arena, (size_t)2 * CSV_COUNTERS_BYTES_MAX);
	const char *p = text, *end = text + len;
	if (len >= sizeof bom - 1 && memcmp(text, bom, sizeof bom - 1) == 0)
		p += sizeof bom - 1;
	int rc = 0;
	for (const char *stop; rc == 0 && p < end; p = stop + 1) {
		stop = memchr(p, '\n', (size_t)(end - p));
		stop = stop ? stop : end;
		r.line++;
		rc = take_line(&r, p, (size_t)(stop - p), e);
	}
	if (rc == 0 && c->skipped > CSV_COUNTERS_REMARKS_MAX)
		print_to(ret_remarks, "%s: %zu more rows are skipped\n", name, c->skipped - CSV_COUNTERS_REMARKS_MAX);
	if (rc == 0 && c->n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no row names a field that can be served", name);
	if (rc < 0)
		csv_counters_done(c);
	return rc;
}

int csv_counters_read(struct csv_counters *c, const char *path, struct buf *ret_remarks, struct err *e)
{
	struct buf text;
	*c = (struct csv_counters){.n = 0};
	buf_init(&text, CSV_COUNTERS_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = csv_counters_parse(c, path, buf_str(&text), text.len, ret_remarks, e);
	buf_done(&text);
	return rc;
}

void csv_counters_done(struct csv_counters *c)
{
	if (c->arena.max_bytes)
		arena_done(&c->arena);
	*c = (struct csv_counters){.n = 0};
}
