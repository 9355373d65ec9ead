// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/check_report.h"

#include <ctype.h>

#include "cli/term/cli.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define RULES_MAX       256 // further ones have no description
#define RULES_BYTES_MAX ((size_t)1024 * 1024)
#define NO_FIELD        "file" // the rule of a finding without a field

enum level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTE, LEVEL__COUNT };
static const char *const level_names[] = {"error", "warning", "note"}; // of SARIF
static const char *const github_names[] = {"error", "warning", "notice"};
_Static_assert(sizeof level_names / sizeof level_names[0] == LEVEL__COUNT, "one name per level");
_Static_assert(sizeof github_names / sizeof github_names[0] == LEVEL__COUNT, "one name per level");

struct text {
	const char *start;
	size_t len;
};

// One line of the report. Texts point into it.
struct finding {
	enum level level;
	struct text file, field, message; // file and field: may be empty
	int64_t line, col;                // 0: unknown
};

// ---- reading ----

// Reads ":N" at p and returns the position behind it; p when there is no number.
static const char *read_number(const char *p, int64_t *ret)
{
	size_t n = *p == ':' ? strspn(p + 1, "0123456789") : 0;
	return n && num_parse_i64(p + 1, n, 1, INT32_MAX, ret, NULL) == 0 ? p + 1 + n : p;
}

// Finds "file:line: " or "file:line:col: ", or "file: 36 more warnings", and returns the position behind it.
static const char *read_place(const char *line, const char *end, struct finding *f)
{
	for (const char *p = line; (p = memchr(p, ':', (size_t)(end - p))); p++) {
		const char *behind = read_number(p, &f->line);
		behind = behind > p ? read_number(behind, &f->col) : p;
		bool is_count = behind == p && p[1] == ' ' && isdigit((unsigned char)p[2]) && strstr(p, " more ");
		if (!is_count && (behind == p || behind[0] != ':' || behind[1] != ' '))
			f->line = f->col = 0;
		else {
			f->file = (struct text){line, (size_t)(p - line)};
			return (is_count ? p : behind) + 2;
		}
	}
	return line;
}

static void read_line(const char *line, const char *end, struct finding *f)
{
	static const struct {
		const char *mark;
		enum level level;
	} marks[] = {{"warning: ", LEVEL_WARNING}, {"info: ", LEVEL_NOTE}, {"fixed: ", LEVEL_NOTE}};
	*f = (struct finding){.level = LEVEL_ERROR};
	const char *p = read_place(line, end, f);
	p = p < end ? p : end;
	for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
		if (strncmp(p, marks[i].mark, strlen(marks[i].mark)) == 0) {
			f->level = marks[i].level;
			p += strlen(marks[i].mark);
		}
	size_t n = strcspn(p, " :\n");
	if (f->line && n > 0 && p[n] == ':' && p[n + 1] == ' ') {
		f->field = (struct text){p, n};
		p += n + 2;
	}
	f->message = (struct text){p, (size_t)(end - p)};
	bool is_count = f->file.len && !f->line; // "36 more warnings"
	if (is_count && memmem(p, f->message.len, "warning", strlen("warning")))
		f->level = LEVEL_WARNING;
	else if (is_count && memmem(p, f->message.len, "note", strlen("note")))
		f->level = LEVEL_NOTE;
}

// Reads the next finding and moves *report behind it. Returns false at the end.
static bool next_finding(const char **report, struct finding *f)
{
	while (**report) {
		const char *line = *report, *end = line + strcspn(line, "\n");
		*report = end + (*end == '\n');
		if (line < end && line[0] != ' ') { // no excerpt
			read_line(line, end, f);
			return true;
		}
	}
	return false;
}

// ---- JSON ----

static void write_text(struct json_writer *w, const char *key, struct text text)
{
	json_write_key(w, key);
	json_write_strn(w, text.start, text.len);
}

static void write_json(struct json_writer *w, const char *report, const struct check_counts *c)
{
	struct finding f;
	json_write_format(w, "{policies:%zu,pools:%zu,priceBooks:%zu,errors:%zu,warnings:%zu,findings:[", c->policies,
	                  c->pools, c->price_books, c->errors, c->warnings);
	while (next_finding(&report, &f)) {
		json_write_format(w, "{level:%s", level_names[f.level]);
		if (f.file.len)
			write_text(w, "file", f.file);
		if (f.line)
			json_write_member_i64(w, "line", f.line);
		if (f.col)
			json_write_member_i64(w, "column", f.col);
		if (f.field.len)
			write_text(w, "field", f.field);
		write_text(w, "message", f.message);
		json_write_object_end(w);
	}
	json_write_format(w, "]}");
}

// ---- SARIF ----

struct rules {
	struct arena arena;
	const char *ids[RULES_MAX];
	size_t n;
};

// Copies a field without the indices of its elements: "spec.signals[].query", with `brackets` "[]".
static const char *field_path(struct arena *a, struct text field, const char *brackets)
{
	char path[SCHEMA_PATH_BYTES];
	size_t n = 0;
	for (size_t i = 0; i < field.len && n + 3 < sizeof path; i++) {
		if (field.start[i] != '[') {
			path[n++] = field.start[i];
			continue;
		}
		n += (size_t)snprintf(path + n, sizeof path - n, "%s", brackets);
		while (i + 1 < field.len && field.start[i] != ']')
			i++;
	}
	return arena_strndup(a, path, n);
}

// The rule of a finding is its field; NULL when memory is exhausted.
static const char *rule_of(struct rules *r, const struct finding *f)
{
	const char *id = f->field.len ? field_path(&r->arena, f->field, "[]") : NO_FIELD;
	size_t i = 0;
	while (id && i < r->n && strcmp(r->ids[i], id) != 0)
		i++;
	if (id && i == r->n && r->n < RULES_MAX)
		r->ids[r->n++] = id;
	return id;
}

static const char *help_of(struct rules *r, const char *id)
{
	static const struct schema *const schemas[] = {&policy_schema, &pool_schema, &price_schema};
	const char *path = field_path(&r->arena, (struct text){id, strlen(id)}, "");
	const struct schema_field *f = NULL;
	for (size_t i = 0; path && i < sizeof schemas / sizeof schemas[0] && !f; i++)
		f = schema_find(schemas[i], path, NULL, NULL);
	return f && f->doc ? f->doc : "The file must be valid YAML or JSON with documents of gpuscale.dev.";
}

static void write_rules(struct json_writer *w, struct rules *r)
{
	json_write_member_array(w, "rules");
	for (size_t i = 0; i < r->n; i++)
		json_write_format(w, "{id:%s,shortDescription:{text:%s},help:{text:%s}}", r->ids[i], r->ids[i],
		                  help_of(r, r->ids[i]));
	json_write_array_end(w);
}

// A reference to a file (RFC 3986): bytes that are not unreserved are encoded.
static void write_uri(struct json_writer *w, struct text file)
{
	struct buf uri = BUF(4 * file.len + 16);
	buf_puts(&uri, file.start[0] == '/' ? "file://" : "");
	for (size_t i = 0; i < file.len; i++) {
		unsigned char c = (unsigned char)file.start[i];
		if (isalnum(c) || strchr("-._~/", c))
			buf_putc(&uri, (char)c);
		else
			buf_printf(&uri, "%%%02X", c);
	}
	json_write_member_str(w, "uri", buf_str(&uri));
	w->out->failed |= uri.failed;
	buf_done(&uri);
}

static void write_location(struct json_writer *w, const struct finding *f)
{
	json_write_format(w, "locations:[{physicalLocation:{artifactLocation:{");
	write_uri(w, f->file);
	json_write_object_end(w);
	if (f->line) {
		json_write_format(w, "region:{startLine:%ld", f->line);
		if (f->col)
			json_write_member_i64(w, "startColumn", f->col);
		json_write_object_end(w);
	}
	json_write_format(w, "}}]");
}

static void write_sarif(struct json_writer *w, const char *report)
{
	struct rules rules = {.arena = ARENA(RULES_BYTES_MAX)};
	struct finding f;
	json_write_format(w, "{$schema:%s,version:%s,runs:[{columnKind:%s,results:[",
	                  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
	                  "2.1.0", "unicodeCodePoints");
	while (next_finding(&report, &f)) {
		json_write_format(w, "{ruleId:%s,level:%s,message:{", rule_of(&rules, &f), level_names[f.level]);
		write_text(w, "text", f.message);
		json_write_object_end(w);
		if (f.file.len)
			write_location(w, &f);
		json_write_object_end(w);
	}
	json_write_format(w, "],tool:{driver:{name:%s,version:%s", "gpuscale", GPUSCALE_VERSION);
	write_rules(w, &rules);
	json_write_format(w, "}}}]}");
	arena_done(&rules.arena);
}

// ---- workflow commands ----

// Encodes what ends a command or a property of it. The report has no other control characters.
static void put_encoded(struct buf *out, struct text text, bool is_property)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.start[i];
		if (c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ',')))
			buf_printf(out, "%%%02X", (unsigned)c);
		else
			buf_putc(out, c);
	}
}

static void write_commands(struct buf *out, const char *report)
{
	struct finding f;
	while (next_finding(&report, &f)) {
		buf_puts(out, "::");
		buf_puts(out, github_names[f.level]);
		if (f.file.len) {
			buf_puts(out, " file=");
			put_encoded(out, f.file, true);
		}
		if (f.line)
			buf_printf(out, ",line=%lld", (long long)f.line);
		if (f.col)
			buf_printf(out, ",col=%lld", (long long)f.col);
		buf_puts(out, "::");
		put_encoded(out, f.field, false);
		buf_puts(out, f.field.len ? ": " : "");
		put_encoded(out, f.message, false);
		buf_putc(out, '\n');
	}
}

void check_report_write(struct buf *out, const char *report, const struct check_counts *counts,
                        enum output_format format)
{
	if (format == OUTPUT_GITHUB) {
		write_commands(out, report);
		return;
	}
	struct json_writer w = JSON_WRITER(out, 2);
	if (format == OUTPUT_SARIF)
		write_sarif(&w, report);
	else
		write_json(&w, report, counts);
	buf_putc(out, '\n');
}
