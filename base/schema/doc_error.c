// SPDX-License-Identifier: Apache-2.0
#include "base/schema/doc_error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/schema/doc.h"
#include "base/text.h"
#include "base/utf8.h"

#define NAME_SHOWN_BYTES 200 // a long path is truncated at its start

int doc_error(struct err *e, enum err_kind kind, const char *name, int line, int col, const char *fmt, ...)
{
	char what[ERR_MSG_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	size_t len = strlen(name);
	if (len > NAME_SHOWN_BYTES)
		name += len - NAME_SHOWN_BYTES;
	return err_set(e, kind, "%s:%d:%d: %s", name, line, col, what);
}

int doc_check_text(const char *name, const char *text, size_t len, struct err *e)
{
	if (len > DOC_BYTES_MAX)
		return doc_error(e, ERR_LIMIT, name, 1, 1, "%zu bytes, the ceiling is %d: split the file", len,
		                 DOC_BYTES_MAX);
	if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return doc_error(e, ERR_INPUT, name, 1, 1, "the text is UTF-16: save it as UTF-8");
	int line = 1, col = 1;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_char_len(text + i, len - i);
		if (n == 0)
			return doc_error(e, ERR_INPUT, name, line, col,
			                 "byte 0x%02x is not valid UTF-8: save the file as UTF-8",
			                 (unsigned)(unsigned char)text[i]);
		uint32_t cp = text_code_point(text + i, n);
		bool is_break = cp == '\n' || cp == '\r';
		if ((cp < 0x20 && !is_break && cp != '\t') || (cp >= 0x7f && cp < 0xa0 && cp != 0x85))
			return doc_error(e, ERR_INPUT, name, line, col,
			                 "control character 0x%02x is not allowed: remove it, "
			                 "or write \\x%02x in double quotes",
			                 (unsigned)cp, (unsigned)cp);
		if (cp == 0xfeff || (cp & 0xfffe) == 0xfffe)
			return doc_error(e, ERR_INPUT, name, line, col, "invisible character U+%04X: remove it",
			                 (unsigned)cp);
		i += n;
		if (cp == '\r' && i < len && text[i] == '\n')
			continue; // the line ends at the \n
		line += is_break;
		col = is_break ? 1 : col + 1;
	}
	return 0;
}

// The text of 1-based line `number`, or "" past the end.
static const char *find_line(const char *text, size_t len, int number, size_t *ret_len)
{
	const char *end = text + len;
	for (int n = 1;; n++) {
		const char *stop = text;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		if (n == number) {
			*ret_len = (size_t)(stop - text);
			return text;
		}
		if (stop == end)
			break;
		text = stop + (stop + 1 < end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1);
	}
	*ret_len = 0;
	return end;
}

// Is there nothing but spaces from column col (1-based) of the line to the end of the text?
static bool is_at_end(const char *text, size_t len, int line, int col)
{
	size_t n;
	const char *p = find_line(text, len, line, &n);
	p += (size_t)(col - 1) < n ? (size_t)(col - 1) : n;
	for (; p < text + len; p++)
		if (*p != ' ' && *p != '\t' && *p != '\n' && *p != '\r')
			return false;
	return true;
}

// The words of libyaml 0.2 and what a person can do about them. `at_context`: the place to look at is where the
// construct began, not where the parser gave up.
struct yaml_problem {
	const char *problem, *context; // context NULL = any
	bool at_context;
	const char *message;
};
static const struct yaml_problem problems[] = {
        {"found unexpected end of stream", "while scanning a quoted scalar", true,
         "this quoted text is never closed: add the closing quote"},
        {"found unexpected document indicator", NULL, true, "this quoted text is never closed: add the closing quote"},
        {"found unknown escape character", NULL, false,
         "unknown escape in double quotes: write \\\\ for a backslash, or use single quotes"},
        {"did not find expected hexdecimal number", NULL, false, "\\x, \\u and \\U need 2, 4 and 8 hexadecimal digits"},
        {"found invalid Unicode character escape code", NULL, false,
         "this escape is not a character of its own (half of a pair): write the character itself"},
        {"mapping values are not allowed in this context", NULL, false,
         "':' is not expected here: check the indentation and the ':' of the line before, "
         "or put text that holds ': ' in quotes"},
        {"block sequence entries are not allowed in this context", NULL, false,
         "'- ' is not expected here: start the list on a line of its own"},
        {"mapping keys are not allowed in this context", NULL, false, "'? ' is not expected here: write key: value"},
        {"could not find expected ':'", NULL, true,
         "':' is missing after this key: write key: value (on one line, keys up to 1024 characters)"},
        {"did not find expected key", NULL, false,
         "a key is expected here: check the indentation, and put the whole value in quotes if it begins with a quote"},
        {"did not find expected '-' indicator", NULL, false, "'- ' is expected here: check the indentation"},
        {"did not find expected ',' or ']'", NULL, false, "',' or ']' is missing before this"},
        {"did not find expected ',' or '}'", NULL, false, "',' or '}' is missing before this"},
        {"did not find expected node content", NULL, false,
         "a value is expected here: put text that begins with one of ,[]{} in quotes"},
        {"did not find expected <document start>", NULL, false,
         "text after the end of the document: write --- between documents, or key: value on each line"},
        {"found character that cannot start any token", NULL, false,
         "a value cannot begin with this character: put it in quotes"},
        {"did not find expected alphabetic or numeric character", NULL, true,
         "a value cannot begin with & or *: put it in quotes"},
        {"found undefined tag handle", NULL, false,
         "tags (!) are not supported: remove it, or put the value in quotes"},
        {"found an indentation indicator equal to 0", NULL, false,
         "the block indentation must be 1 to 9: remove the 0"},
        {"did not find expected comment or line break", NULL, false,
         "the text of a block (| or >) begins on the next line: move it there"},
        {"found unknown directive name", NULL, true, "unknown % directive: remove the line"},
        {"found incompatible YAML document", NULL, false, "only YAML 1.1 and 1.2 are read: remove the %YAML line"},
        {"found duplicate %YAML directive", NULL, false, "a second %YAML line: remove it"},
        {"found unexpected ':'", NULL, false, "':' is not expected here: put the text in quotes"},
};

static const char *find_message(const yaml_parser_t *parser, bool *ret_at_context)
{
	*ret_at_context = false;
	for (size_t i = 0; parser->problem && i < sizeof problems / sizeof problems[0]; i++) {
		const struct yaml_problem *p = &problems[i];
		if (strcmp(p->problem, parser->problem) != 0)
			continue;
		if (p->context && (!parser->context || strcmp(p->context, parser->context) != 0))
			continue;
		*ret_at_context = p->at_context && parser->context;
		return p->message;
	}
	return NULL;
}

int doc_yaml_error(const char *name, const char *text, size_t len, const struct yaml_parser_s *parser,
                   const struct doc_node *inside, struct err *e)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(e, ERR_INTERNAL, "%s: out of memory while reading YAML", name);
	int line = (int)parser->problem_mark.line + 1, col = (int)parser->problem_mark.column + 1;
	int from_line = (int)parser->context_mark.line + 1, from_col = (int)parser->context_mark.column + 1;

	// A tab among the spaces that begin the line explains more than whatever the scanner stumbled over.
	size_t line_len;
	const char *p = find_line(text, len, line, &line_len);
	size_t blanks = 0;
	while (blanks < line_len && p[blanks] == ' ')
		blanks++;
	if (parser->error == YAML_SCANNER_ERROR && blanks < line_len && p[blanks] == '\t')
		return doc_error(e, ERR_INPUT, name, line, (int)blanks + 1, "a tab cannot indent: use spaces");

	bool is_flow = parser->context && strncmp(parser->context, "while parsing a flow", 20) == 0;
	if (is_flow && inside && is_at_end(text, len, line, col)) {
		bool is_map = inside->kind == DOC_MAP;
		return doc_error(e, ERR_INPUT, name, inside->line, inside->col,
		                 "this '%c' is never closed: add '%c', or the file was cut off", is_map ? '{' : '[',
		                 is_map ? '}' : ']');
	}
	bool at_context;
	const char *message = find_message(parser, &at_context);
	if (at_context)
		line = from_line, col = from_col;
	if (message)
		return doc_error(e, ERR_INPUT, name, line, col, "%s", message);
	return doc_error(e, ERR_INPUT, name, line, col, "%s: check the YAML syntax here",
	                 parser->problem ? parser->problem : "cannot be read as YAML");
}
