// SPDX-License-Identifier: Apache-2.0
// One scalar: text -> C value, or the message that says what to write instead.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema_private.h"
#include "base/text.h"

#define CHOICES_BYTES 200
#define INT64_EXACT   ((int64_t)1 << 53)

void schema_fail(struct schema_decoder *d, const struct doc_node *node, const char *fmt, ...)
{
	assert(!d->in_default); // a default_text in the table does not pass its own field's checks
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(d->errors, node->line, node->col, d->path, fmt, ap);
	va_end(ap);
}

void schema_fail_memory(struct schema_decoder *d, const struct doc_node *node)
{
	schema_report(d->errors, node, d->path, "needs more than the %zu bytes set aside for it (%zu used): shorten it",
	              d->arena->max_bytes, d->arena->used_bytes);
}

const char *schema_describe(const struct doc_node *node, char *out)
{
	switch (node->kind) {
	case DOC_MAP:
		return "a map";
	case DOC_SEQ:
		return "a list";
	case DOC_NULL:
	case DOC_KIND__COUNT:
		return "nothing";
	case DOC_SCALAR:
		break;
	}
	char shown[SCHEMA_SHOWN_BYTES - 2];
	text_show(shown, sizeof shown, node->text, node->text_len);
	const char *quote = node->quoted || node->text_len == 0 ? "\"" : "";
	snprintf(out, SCHEMA_SHOWN_BYTES, "%s%s%s", quote, shown, quote);
	return out;
}

// "A, B, C", cut with "..." when they are too many.
static const char *list_choices(const char *const *names, char *out)
{
	char all[4 * CHOICES_BYTES];
	size_t used = 0;
	all[0] = '\0';
	for (size_t i = 0; names[i] && used < sizeof all; i++)
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
	text_show(out, CHOICES_BYTES, all, strlen(all));
	return out;
}

static const char *wanted(const struct schema_field *f, char *choices)
{
	const char *text = schema_type_info(f->type)->wanted;
	if (f->type != SCHEMA_ENUM)
		return text;
	memcpy(choices, text, 7);
	list_choices(f->enum_names, choices + 7);
	return choices;
}

// "must be ..., found ...", then the fix in the words of fmt ("" = none).
__attribute__((format(printf, 4, 5))) static void fail(struct schema_decoder *d, const struct schema_field *f,
                                                       const struct doc_node *node, const char *fmt, ...)
{
	char fix[CHOICES_BYTES], found[SCHEMA_SHOWN_BYTES], choices[CHOICES_BYTES + 8];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(fix, sizeof fix, fmt, ap);
	va_end(ap);
	schema_fail(d, node, "must be %s, found %s%s", wanted(f, choices), schema_describe(node, found), fix);
}

void schema_fail_kind(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node)
{
	fail(d, f, node, "%s", "");
}

static bool is_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static bool is_whole_number(const char *s)
{
	return is_digits(s + (*s == '-'));
}

static bool is_any_of(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], text) == 0)
			return true;
	return false;
}

// A boolean to YAML 1.1 readers (Kubernetes among them).
static bool is_yaml_true(const char *text)
{
	static const char *const words[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
	return is_any_of(text, words, sizeof words / sizeof words[0]);
}

static bool is_yaml_false(const char *text)
{
	static const char *const words[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
	return is_any_of(text, words, sizeof words / sizeof words[0]);
}

// A number to these readers: decimal, 0x, 0o, 0b, with "_" between digits, fraction, exponent, .inf, .nan.
static bool is_yaml_number(const char *s)
{
	s += *s == '-' || *s == '+';
	static const char *const specials[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
	if (is_any_of(s, specials, sizeof specials / sizeof specials[0]))
		return true;
	if (s[0] == '0' && s[1] && strchr("xob", s[1])) {
		const char *digits = s[1] == 'x' ? "0123456789abcdefABCDEF_" : s[1] == 'o' ? "01234567_" : "01_";
		return s[2] && s[2 + strspn(s + 2, digits)] == '\0';
	}
	if (!(*s >= '0' && *s <= '9') && !(*s == '.' && s[1] >= '0' && s[1] <= '9'))
		return false;
	s += strspn(s, "0123456789_");
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789_");
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (!is_digits(s))
			return false;
		s += strlen(s);
	}
	return *s == '\0';
}

static bool is_in_range(const struct schema_field *f, double value)
{
	return (f->min == 0 && f->max == 0) || (value >= f->min && value <= f->max);
}

static void fail_range(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node)
{
	char range[SCHEMA_RANGE_BYTES], found[SCHEMA_SHOWN_BYTES];
	schema_format_range(f, range);
	schema_fail(d, node, "must be %s, is %s", range, schema_describe(node, found));
}

static void decode_string(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                          void *slot)
{
	char shown[SCHEMA_SHOWN_BYTES];
	text_show(shown, sizeof shown, node->text, node->text_len);
	if (memchr(node->text, '\0', node->text_len)) {
		schema_fail(d, node, "holds the character \\0: remove it");
		return;
	}
	bool is_boolean = is_yaml_true(node->text) || is_yaml_false(node->text);
	if (!node->quoted && (is_boolean || is_yaml_number(node->text))) {
		schema_fail(d, node, "must be text, found the %s %s: write \"%s\"", is_boolean ? "boolean" : "number",
		            shown, shown);
		return;
	}
	if (!is_in_range(f, (double)node->text_len)) {
		char range[SCHEMA_RANGE_BYTES];
		if (node->text_len == 0)
			schema_fail(d, node, "must not be empty");
		else
			schema_fail(d, node, "must be %s, is %zu", schema_format_range(f, range), node->text_len);
		return;
	}
	const char *copy = arena_strndup(d->arena, node->text, node->text_len);
	if (!copy)
		schema_fail_memory(d, node);
	else
		memcpy(slot, &copy, sizeof copy);
}

// 010 is eight in YAML 1.1 and ten everywhere else: neither reading is accepted.
static bool refuse_octal(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node)
{
	const char *sign = node->text[0] == '-' ? "-" : "", *digits = node->text + strlen(sign);
	if (node->quoted || !is_digits(digits) || digits[0] != '0' || digits[1] == '\0')
		return false;
	digits += strspn(digits, "0");
	char shown[SCHEMA_SHOWN_BYTES];
	text_show(shown, sizeof shown, digits, strlen(digits));
	fail(d, f, node, ", which YAML may read as octal: write %s%s", shown[0] ? sign : "", shown[0] ? shown : "0");
	return true;
}

// INT32, INT64 and SECONDS_MS. Returns false after reporting.
static bool parse_whole_number(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                               int64_t *ret_value)
{
	const char *text = node->text;
	double as_double;
	int64_t as_duration_ms;
	if (refuse_octal(d, f, node))
		return false;
	if (is_whole_number(text)) {
		char shown[SCHEMA_SHOWN_BYTES];
		text_show(shown, sizeof shown, text, node->text_len);
		if (node->quoted) {
			fail(d, f, node, ": write %s without quotes", shown);
			return false;
		}
		int64_t lowest = f->type == SCHEMA_INT64 ? -INT64_EXACT : INT32_MIN;
		int64_t highest = f->type == SCHEMA_INT64 ? INT64_EXACT : INT32_MAX;
		if (num_parse_i64(text, node->text_len, lowest, highest, ret_value, NULL) < 0) {
			bool has_range = f->min != 0 || f->max != 0;
			double min = has_range ? fmax(f->min, (double)lowest) : (double)lowest;
			double max = has_range ? fmin(f->max, (double)highest) : (double)highest;
			schema_fail(d, node, "must be between %.0f and %.0f, is %s", min, max, shown);
			return false;
		}
		if (is_in_range(f, (double)*ret_value))
			return true;
		fail_range(d, f, node);
	} else if (num_parse_f64(text, node->text_len, &as_double, NULL) == 0 && fabs(as_double) <= INT32_MAX) {
		bool is_whole = as_double == floor(as_double);
		if (is_whole)
			fail(d, f, node, ": write %lld", (long long)as_double);
		else
			fail(d, f, node, ": write %lld or %lld", (long long)floor(as_double),
			     (long long)ceil(as_double));
	} else if (f->type == SCHEMA_SECONDS_MS &&
	           num_parse_duration_ms(text, node->text_len, &as_duration_ms, NULL) == 0 &&
	           as_duration_ms % 1000 == 0) {
		fail(d, f, node, ": write %lld", (long long)(as_duration_ms / 1000));
	} else {
		schema_fail_kind(d, f, node);
	}
	return false;
}

static void decode_whole_number(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                                void *slot)
{
	int64_t value;
	if (!parse_whole_number(d, f, node, &value))
		return;
	int32_t narrow = (int32_t)value;
	value *= f->type == SCHEMA_SECONDS_MS ? 1000 : 1;
	if (f->type == SCHEMA_INT32)
		memcpy(slot, &narrow, sizeof narrow);
	else
		memcpy(slot, &value, sizeof value);
}

static void decode_time(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node, void *slot)
{
	int64_t value_ms;
	if (num_parse_rfc3339_ms(node->text, node->text_len, &value_ms, NULL) == 0)
		memcpy(slot, &value_ms, sizeof value_ms);
	else
		schema_fail_kind(d, f, node);
}

static void decode_bool(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node, void *slot)
{
	bool is_true = strcmp(node->text, "true") == 0, is_false = strcmp(node->text, "false") == 0;
	if ((is_true || is_false) && !node->quoted)
		memcpy(slot, &is_true, sizeof is_true);
	else if (is_true || is_false)
		fail(d, f, node, ": write %s without quotes", node->text);
	else if (is_yaml_true(node->text))
		fail(d, f, node, ": write true");
	else if (is_yaml_false(node->text))
		fail(d, f, node, ": write false");
	else
		schema_fail_kind(d, f, node);
}

static void decode_quantity(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                            void *slot)
{
	double value;
	if (refuse_octal(d, f, node))
		return;
	if (num_parse_quantity(node->text, node->text_len, &value, NULL) < 0) {
		bool is_upper_k = node->text_len > 1 && node->text[node->text_len - 1] == 'K';
		fail(d, f, node, "%s", is_upper_k ? ": write k for 1000, Ki for 1024" : "");
		return;
	}
	// Kubernetes stores quantities as text; a bare float passes through binary on its way there.
	if (!node->quoted && is_yaml_number(node->text) && strpbrk(node->text, ".eE")) {
		char shown[SCHEMA_SHOWN_BYTES];
		text_show(shown, sizeof shown, node->text, node->text_len);
		schema_fail(d, node, "must be a quantity, found the unquoted float %s: write \"%s\"", shown, shown);
		return;
	}
	if (is_in_range(f, value))
		memcpy(slot, &value, sizeof value);
	else
		fail_range(d, f, node);
}

static void decode_duration(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                            void *slot)
{
	int64_t value_ms;
	double seconds;
	// 0 is a duration, but to the API server a number. A table may say so all the same.
	bool is_number = !node->quoted && !d->in_default && is_digits(node->text);
	if (!is_number && num_parse_duration_ms(node->text, node->text_len, &value_ms, NULL) == 0) {
		if (is_in_range(f, (double)value_ms))
			memcpy(slot, &value_ms, sizeof value_ms);
		else
			fail_range(d, f, node);
	} else if (is_digits(node->text) && node->text_len < 12) {
		fail(d, f, node, ": write %ss", node->text);
	} else if (num_parse_f64(node->text, node->text_len, &seconds, NULL) == 0 && seconds > 0 && seconds < 1e9) {
		char fix[NUM_TEXT_BYTES];
		num_format_duration_ms(fix, (int64_t)llround(seconds * 1000));
		fail(d, f, node, ": write %s", fix);
	} else {
		schema_fail_kind(d, f, node);
	}
}

static void decode_enum(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node, void *slot)
{
	size_t n = 0;
	for (; f->enum_names[n]; n++)
		if (strcmp(f->enum_names[n], node->text) == 0) {
			int index = (int)n;
			memcpy(slot, &index, sizeof index);
			return;
		}
	const char *closest = num_closest_name(node->text, f->enum_names, n);
	if (closest)
		fail(d, f, node, ": did you mean %s?", closest);
	else
		schema_fail_kind(d, f, node);
}

void schema_decode_scalar(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                          void *slot)
{
	static void (*const decoders[SCHEMA_TYPE__COUNT])(struct schema_decoder *, const struct schema_field *,
	                                                  const struct doc_node *, void *) = {
	        [SCHEMA_STRING] = decode_string,
	        [SCHEMA_INT32] = decode_whole_number,
	        [SCHEMA_INT64] = decode_whole_number,
	        [SCHEMA_BOOL] = decode_bool,
	        [SCHEMA_QUANTITY] = decode_quantity,
	        [SCHEMA_DURATION_MS] = decode_duration,
	        [SCHEMA_SECONDS_MS] = decode_whole_number,
	        [SCHEMA_TIME_MS] = decode_time,
	        [SCHEMA_ENUM] = decode_enum,
	};
	assert(decoders[f->type]);
	if (node->kind == DOC_SCALAR)
		decoders[f->type](d, f, node, slot);
	else
		schema_fail_kind(d, f, node);
}
