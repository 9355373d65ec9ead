// SPDX-License-Identifier: Apache-2.0
#include "base/print.h"

#include <argp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/xml_text.h"

#define MESSAGE_MAX ((size_t)1024 * 1024)
#define COLUMNS_MIN 20
#define COLUMNS_MAX 10000

// ---- formatted text ----

struct arguments {
	va_list ap; // in a struct, so that functions can take their arguments from it one after the other
	bool are_markup;
};

// One conversion: "%", flags, width, precision, length modifier and letter. "*" is replaced by its argument.
struct conversion {
	char spec[32]; // without the length modifier and the letter
	size_t len;
	int width, precision; // precision -1: none
	bool is_left, is_markup;
	char modifier; // 'l' also stands for ll, z, j and t, which have its size; 'h' for hh
	char letter;
};

static int take_number(struct conversion *c, const char **p, struct arguments *args)
{
	int n = 0;
	if (**p == '*') {
		n = va_arg(args->ap, int);
		(*p)++;
	} else {
		for (; **p >= '0' && **p <= '9'; (*p)++)
			n = 10 * n + (**p - '0');
		assert(n < 1000);
	}
	c->len += (size_t)snprintf(c->spec + c->len, sizeof c->spec - c->len, "%d", n);
	return n;
}

static struct conversion take_conversion(const char **p, struct arguments *args)
{
	struct conversion c = {.spec = "%", .len = 1, .precision = -1, .is_markup = args->are_markup};
	for ((*p)++; **p && strchr("-+ #0", **p); (*p)++) {
		assert(c.len < 8);
		c.spec[c.len++] = **p;
		c.is_left |= **p == '-';
	}
	if (**p == '*' || (**p >= '1' && **p <= '9'))
		c.width = take_number(&c, p, args);
	if (**p == '.') {
		(*p)++;
		c.spec[c.len++] = '.';
		c.precision = take_number(&c, p, args);
	}
	for (; **p && strchr("hlzjt", **p); (*p)++)
		c.modifier = **p == 'h' ? 'h' : 'l';
	_Static_assert(sizeof(long) == sizeof(long long) && sizeof(long) == sizeof(size_t) &&
	                       sizeof(long) == sizeof(intmax_t) && sizeof(long) == sizeof(ptrdiff_t),
	               "one length modifier stands for all of 64 bits");
	c.letter = **p;
	assert(c.letter && strchr("diouxXcsfFeEgGaA%", c.letter)); // a format is a literal of the program
	(*p)++;
	return c;
}

static void put_shown(struct buf *out, const struct conversion *c, const char *s, size_t len)
{
	if (c->is_markup) {
		xml_put_textn(out, s, len);
		return;
	}
	size_t start = out->len, width = 0, taken, wanted = (size_t)llabs(c->width);
	for (size_t i = 0; i < len; i += taken) {
		char shown[TEXT_CHAR_BYTES];
		size_t n = text_show_char(s + i, len - i, shown, &taken);
		buf_put(out, shown, n);
		width += shown[0] == '\\' ? n : 1; // an escaped character has one column per byte
	}
	if (width >= wanted || buf_reserve(out, wanted - width) < 0)
		return;
	bool is_left = c->is_left || c->width < 0;
	if (!is_left)
		memmove(out->data + start + (wanted - width), out->data + start, out->len - start);
	memset(out->data + (is_left ? out->len : start), ' ', wanted - width);
	out->len += wanted - width;
	out->data[out->len] = '\0';
}

static void put_string(struct buf *out, const struct conversion *c, const char *s)
{
	s = s ? s : "(null)";
	size_t len = c->precision >= 0 ? strnlen(s, (size_t)c->precision) : strlen(s);
	// The text cut by the precision does not stop inside a character; the bytes after it may not exist.
	for (size_t back = 1; len == (size_t)c->precision && back < 4 && back <= len; back++) {
		unsigned char start = (unsigned char)s[len - back];
		if (start >= 0xc0 && utf8_char_len(s + len - back, back) == 0)
			len -= back;
		if (start < 0x80 || start >= 0xc0)
			break;
	}
	put_shown(out, c, s, len);
}

static void put_conversion(struct buf *out, struct conversion *c, struct arguments *args)
{
	char one;
	if (c->letter == '%') {
		buf_putc(out, '%');
		return;
	}
	if (c->letter == 's') {
		put_string(out, c, va_arg(args->ap, const char *));
		return;
	}
	if (c->letter == 'c') {
		one = (char)va_arg(args->ap, int);
		put_shown(out, c, &one, 1);
		return;
	}
	bool is_double = strchr("fFeEgGaA", c->letter), is_long = c->modifier == 'l' && !is_double;
	snprintf(c->spec + c->len, sizeof c->spec - c->len, "%s%c",
	         is_long              ? "l"
	         : c->modifier == 'h' ? "h"
	                              : "",
	         c->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (is_double)
		buf_printf(out, c->spec, va_arg(args->ap, double));
	else if (is_long)
		buf_printf(out, c->spec, va_arg(args->ap, long));
	else
		buf_printf(out, c->spec, va_arg(args->ap, int));
#pragma GCC diagnostic pop
}

static void compose(struct buf *out, const char *fmt, va_list ap, bool is_markup)
{
	struct arguments args = {.are_markup = is_markup};
	va_copy(args.ap, ap);
	for (const char *p = fmt; *p;) {
		size_t len = strcspn(p, "%");
		buf_put(out, p, len);
		p += len;
		if (*p) {
			struct conversion c = take_conversion(&p, &args);
			put_conversion(out, &c, &args);
		}
	}
	va_end(args.ap);
}

int print_vto(struct buf *out, const char *fmt, va_list ap)
{
	compose(out, fmt, ap, false);
	return out->failed ? -1 : 0;
}

void print_xml(struct buf *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	compose(out, fmt, ap, true);
	va_end(ap);
}

int print_to(struct buf *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = print_vto(out, fmt, ap);
	va_end(ap);
	return rc;
}

// ---- the standard streams ----

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && value[0];
}

bool print_has_colour(void)
{
	const char *term = getenv("TERM");
	return is_set("CLICOLOR_FORCE") ||
	       (isatty(STDOUT_FILENO) && !is_set("NO_COLOR") && !(term && strcmp(term, "dumb") == 0));
}

size_t print_columns(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = {0};
	int64_t n;
	if (!isatty(STDOUT_FILENO))
		return 0;
	if (columns && num_parse_i64(columns, strlen(columns), COLUMNS_MIN, COLUMNS_MAX, &n, NULL) == 0)
		return (size_t)n;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS_MIN ? size.ws_col : 0;
}

// The length of an escape sequence for a colour ("\033[31m") at s[0..len), or 0.
static size_t colour_len(const char *s, size_t len)
{
	size_t n = 2;
	if (len < 3 || s[0] != '\033' || s[1] != '[')
		return 0;
	while (n < len && ((s[n] >= '0' && s[n] <= '9') || s[n] == ';'))
		n++;
	return n < len && s[n] == 'm' ? n + 1 : 0;
}

// Writes the parts between characters that must be escaped as they are.
static int put_composed(const char *s, size_t len, FILE *to)
{
	size_t from = 0, i = 0, taken;
	bool with_colour = to == stdout && print_has_colour();
	for (; i < len; i += taken) {
		char shown[TEXT_CHAR_BYTES];
		taken = 1;
		if ((s[i] >= ' ' && s[i] <= '~') || s[i] == '\n' || s[i] == '\t')
			continue;
		if (with_colour && (taken = colour_len(s + i, len - i)) > 0)
			continue;
		size_t n = text_show_char(s + i, len - i, shown, &taken);
		if (shown[0] != '\\')
			continue;
		fwrite(s + from, 1, i - from, to);
		fwrite(shown, 1, n, to);
		from = i + taken;
	}
	fwrite(s + from, 1, i - from, to);
	return fflush(to) == 0 && !ferror(to) ? 0 : -1;
}

int print_outn(const char *text, size_t len)
{
	return put_composed(text, len, stdout);
}

int print_out(const struct buf *text)
{
	return text->failed ? -1 : print_outn(buf_str(text), text->len);
}

void print_notes(const struct buf *text)
{
	put_composed(buf_str(text), text->len, stderr);
}

void print_clear_screen(void)
{
	fputs("\033[H\033[2J", stdout);
}

void print_clear_line(void)
{
	fputs("\r\033[K", stderr);
}

__attribute__((format(printf, 1, 0))) static void put_formatted(const char *fmt, va_list ap, FILE *to)
{
	struct buf text;
	buf_init(&text, MESSAGE_MAX);
	print_vto(&text, fmt, ap);
	fwrite(buf_str(&text), 1, text.len, to);
	buf_done(&text);
}

void print_line(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_formatted(fmt, ap, stdout);
	va_end(ap);
}

void print_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_formatted(fmt, ap, stderr);
	va_end(ap);
}

void print_usage(const struct argp_state *state, const char *fmt, ...)
{
	struct buf text;
	va_list ap;
	buf_init(&text, MESSAGE_MAX);
	va_start(ap, fmt);
	print_vto(&text, fmt, ap);
	va_end(ap);
	argp_error(state, "%s", buf_str(&text));
	buf_done(&text);
}
