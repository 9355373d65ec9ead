// SPDX-License-Identifier: Apache-2.0
// Walks a schema and a document side by side: scalars, objects, lists, defaults, cross-field rules.
#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema_private.h"

#define CHOICES_BYTES 200
#define INT64_EXACT   ((int64_t)1 << 53)

// The state of one schema_decode call.
struct schema_decoder {
	struct arena *arena;
	struct schema_errors *errors;
	struct schema_errors *unknown; // where fields go that the table does not know: `errors` when strict
	bool in_default;               // the decoded value comes from the table: any error is a bug
	int depth;
	size_t path_len;
	char path[SCHEMA_PATH_BYTES];
};

// ---- scalars: text -> C value, or the message that says what to write instead ----

// Reports at node's position and the decoder's path.
__attribute__((format(printf, 3, 4))) static void report(struct schema_decoder *d, const struct doc_node *node,
                                                         const char *fmt, ...)
{
	assert(!d->in_default); // a default_text in the table does not pass its own field's checks
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(d->errors, node->line, node->col, d->path, fmt, ap);
	va_end(ap);
}

// Reports that the arena is exhausted. Never an assertion, not even for a default.
static void report_memory(struct schema_decoder *d, const struct doc_node *node)
{
	schema_report(d->errors, node, d->path, "needs more than the %zu bytes set aside for it (%zu used): shorten it",
	              d->arena->max_bytes, d->arena->used_bytes);
}

// Describes `node` as its author sees it: a map, a list, nothing, 12, "text". out has SCHEMA_SHOWN_BYTES.
static const char *describe(const struct doc_node *node, char *out)
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
	report(d, node, "must be %s, found %s%s", wanted(f, choices), describe(node, found), fix);
}

// Reports "must be <what f wants>, found <node>".
static void fail_kind(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node)
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

// A boolean to YAML 1.1 readers (Kubernetes among them).
static bool is_yaml_true(const char *text)
{
	static const char *const words[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
	return text_is_one_of(text, words, sizeof words / sizeof words[0]);
}

static bool is_yaml_false(const char *text)
{
	static const char *const words[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
	return text_is_one_of(text, words, sizeof words / sizeof words[0]);
}

// A number to these readers: decimal, 0x, 0o, 0b, with "_" between digits, fraction, exponent, .inf, .nan.
static bool is_yaml_number(const char *s)
{
	s += *s == '-' || *s == '+';
	static const char *const specials[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
	if (text_is_one_of(s, specials, sizeof specials / sizeof specials[0]))
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
	report(d, node, "must be %s, is %s", range, describe(node, found));
}

static void decode_string(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                          void *slot)
{
	char shown[SCHEMA_SHOWN_BYTES];
	text_show(shown, sizeof shown, node->text, node->text_len);
	if (memchr(node->text, '\0', node->text_len)) {
		report(d, node, "holds the character \\0: remove it");
		return;
	}
	bool is_boolean = is_yaml_true(node->text) || is_yaml_false(node->text);
	if (!node->quoted && (is_boolean || is_yaml_number(node->text))) {
		report(d, node, "must be text, found the %s %s: write \"%s\"", is_boolean ? "boolean" : "number", shown,
		       shown);
		return;
	}
	if (!is_in_range(f, (double)node->text_len)) {
		char range[SCHEMA_RANGE_BYTES];
		if (node->text_len == 0)
			report(d, node, "must not be empty");
		else
			report(d, node, "must be %s, is %zu", schema_format_range(f, range), node->text_len);
		return;
	}
	const char *copy = arena_strndup(d->arena, node->text, node->text_len);
	if (!copy)
		report_memory(d, node);
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
			report(d, node, "must be between %.0f and %.0f, is %s", min, max, shown);
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
		fail_kind(d, f, node);
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
		fail_kind(d, f, node);
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
		fail_kind(d, f, node);
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
		report(d, node, "must be a quantity, found the unquoted float %s: write \"%s\"", shown, shown);
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
		fail_kind(d, f, node);
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
		fail_kind(d, f, node);
}

// Decodes one scalar (any type but object, lists and any) into *slot; reports and leaves the slot alone otherwise.
static void decode_scalar(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
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
		fail_kind(d, f, node);
}

// ---- objects ----

// Reports at node's key when it has one, else at node.
__attribute__((format(printf, 3, 4))) static void fail_at_key(struct schema_decoder *d, const struct doc_node *node,
                                                              const char *fmt, ...)
{
	assert(!d->in_default);
	bool has_key = node->key_line > 0;
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(d->errors, has_key ? node->key_line : node->line, has_key ? node->key_col : node->col,
	                  d->path, fmt, ap);
	va_end(ap);
}

void fault_add(struct fault_list *l, const char *field, int32_t index, const char *message)
{
	if (l->n < SCHEMA_FAULTS_MAX)
		l->faults[l->n++] = (struct schema_fault){field, index, message};
}

void fault_add_broken(struct fault_list *l, const struct fault_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rules[i].is_broken)
			fault_add(l, rules[i].field, -1, rules[i].message);
}

static size_t count_errors(const struct schema_decoder *d)
{
	return d->errors->n + d->errors->dropped;
}

// The path grows by one step and is cut back by pop_path(what push_path returned). Too long a path is cut.
__attribute__((format(printf, 2, 3))) static size_t push_path(struct schema_decoder *d, const char *fmt, ...)
{
	size_t before = d->path_len, room = sizeof d->path - before;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(d->path + before, room, fmt, ap);
	va_end(ap);
	d->path_len += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

static void pop_path(struct schema_decoder *d, size_t before)
{
	d->path_len = before;
	d->path[before] = '\0';
}

static const char *dot(const struct schema_decoder *d)
{
	return d->path_len ? "." : "";
}

static void decode_object(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                          unsigned char *base);

static void store_list(const struct schema_field *f, unsigned char *base, const void *items, size_t n)
{
	memcpy(base + f->offset, &items, sizeof items);
	memcpy(base + f->count_offset, &n, sizeof n);
}

static void decode_list(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                        unsigned char *base)
{
	if (node->kind != DOC_SEQ) {
		fail_kind(d, f, node);
		return;
	}
	bool is_text = f->type == SCHEMA_STRING_LIST;
	const struct schema_field element = {.name = f->name, .type = is_text ? SCHEMA_STRING : SCHEMA_OBJECT};
	size_t size = is_text ? sizeof(const char *) : f->child->struct_size;
	size_t n = node->n_children, max = f->max_items ? f->max_items : SCHEMA_LIST_ITEMS_MAX;
	if ((double)n < f->min)
		report(d, node, "must have at least %.0f element%s, has %zu", f->min, f->min == 1 ? "" : "s", n);
	if (n > max) {
		report(d, node, "has %zu elements, at most %zu are allowed", n, max);
		n = max; // the others are not looked at
	}
	unsigned char *items = arena_calloc(d->arena, n + 1, size);
	if (!items) {
		report_memory(d, node);
		return;
	}
	const struct doc_node *c = node->child;
	for (size_t i = 0; i < n; i++, c = c->next) {
		size_t before = push_path(d, "[%zu]", i);
		if (c->kind == DOC_NULL)
			report(d, c, "is empty: fill it in or remove it");
		else if (is_text)
			decode_scalar(d, &element, c, items + i * size);
		else if (c->kind != DOC_MAP)
			fail_kind(d, &element, c);
		else
			decode_object(d, f->child, c, items + i * size);
		pop_path(d, before);
	}
	store_list(f, base, items, n);
}

static void decode_value(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *node,
                         unsigned char *base)
{
	switch (f->type) {
	case SCHEMA_OBJECT:
		if (node->kind == DOC_MAP)
			decode_object(d, f->child, node, base + f->offset);
		else
			fail_kind(d, f, node);
		break;
	case SCHEMA_LIST:
	case SCHEMA_STRING_LIST:
		decode_list(d, f, node, base);
		break;
	case SCHEMA_ANY: // kept as it is: inside the default of a list its nodes would not live long enough
		assert(!d->in_default || f->default_text);
		*(const struct doc_node **)(void *)(base + f->offset) = node;
		break;
	default:
		assert(f->type <= SCHEMA_ENUM);
		decode_scalar(d, f, node, base + f->offset);
	}
}

// default_text as the node its author would have written: *scalar, or nodes in `a`.
static const struct doc_node *default_node(const struct schema_field *f, struct doc_node *scalar, struct arena *a)
{
	assert(f->type != SCHEMA_OBJECT); // an object's defaults are those of its fields
	if (f->type <= SCHEMA_ENUM) {
		*scalar = (struct doc_node){.kind = DOC_SCALAR, .text = f->default_text};
		scalar->text_len = strlen(f->default_text);
		scalar->quoted = f->type == SCHEMA_STRING || f->type == SCHEMA_QUANTITY;
		return scalar;
	}
	struct doc_file file;
	struct err e;
	if (doc_parse_yaml(a, f->name, f->default_text, strlen(f->default_text), &file, &e) < 0) {
		assert(e.kind != ERR_INPUT);
		return NULL;
	}
	assert(file.n_roots == 1);
	return file.roots[0];
}

static void apply_default(struct schema_decoder *d, const struct schema_field *f, unsigned char *base,
                          const struct doc_node *near)
{
	if (f->type == SCHEMA_OBJECT)
		decode_object(d, f->child, NULL, base + f->offset);
	if (!f->default_text)
		return;
	// The nodes are read once, and every value keeps a copy: they do not stay in the arena of the result.
	struct arena nodes;
	arena_init(&nodes, d->arena->max_bytes);
	struct doc_node scalar;
	bool was_in_default = d->in_default;
	d->in_default = true;
	const struct doc_node *node = default_node(f, &scalar, f->type == SCHEMA_ANY ? d->arena : &nodes);
	if (node)
		decode_value(d, f, node, base);
	else
		report_memory(d, near);
	d->in_default = was_in_default;
	arena_done(&nodes);
}

// `found` is the value of f's name in the object `parent` (NULL: none). parent NULL: the object is absent.
static void decode_field(struct schema_decoder *d, const struct schema_field *f, const struct doc_node *found,
                         const struct doc_node *parent, unsigned char *base)
{
	assert(f->min <= f->max || schema_is_list(f));
	bool is_set = found && found->kind != DOC_NULL;
	if (f->set_offset != SCHEMA_NO_OFFSET)
		memcpy(base + f->set_offset, &is_set, sizeof is_set);
	if (is_set && f->unsupported)
		fail_at_key(d, found, "not supported yet: remove it");
	else if (is_set)
		decode_value(d, f, found, base);
	else if (f->required && parent && !f->unsupported)
		fail_at_key(d, found ? found : parent, "required, but %s: add it (%s)", found ? "empty" : "missing",
		            schema_type_name(f->type));
	else if (!f->unsupported)
		apply_default(d, f, base, parent);
}

static bool is_ignored(const struct schema *schema, const char *key)
{
	const char *const *name = schema->ignored;
	while (name && *name && strcmp(*name, key) != 0)
		name++;
	return name && *name;
}

static void report_unknown(struct schema_decoder *d, const struct schema *schema, const struct doc_node *child)
{
	if (d->unknown->n == SCHEMA_ERRORS_MAX) { // will only be counted: spare the search
		d->unknown->dropped++;
		return;
	}
	assert(!d->in_default);
	bool has_key = child->key_line > 0;
	int line = has_key ? child->key_line : child->line, col = has_key ? child->key_col : child->col;
	char shown[SCHEMA_SHOWN_BYTES], known[SCHEMA_MESSAGE_BYTES];
	text_show(shown, sizeof shown, child->key, strlen(child->key));
	size_t before = push_path(d, "%s%s", dot(d), shown);
	const char *closest = schema_closest_field(schema, child->key);
	if (closest)
		schema_report_at(d->unknown, line, col, d->path, "unknown field: did you mean %s?", closest);
	else
		schema_report_at(d->unknown, line, col, d->path, "unknown field: known here are %s",
		                 schema_list_fields(schema, known, sizeof known));
	pop_path(d, before);
}

static void match_fields(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                         const struct doc_node **found)
{
	for (const struct doc_node *c = node->child; c; c = c->next) {
		const struct schema_field *f = schema_field_by_name(schema, c->key, strlen(c->key));
		if (!f) {
			if (!is_ignored(schema, c->key))
				report_unknown(d, schema, c);
			continue;
		}
		const struct doc_node **slot = &found[f - schema->fields];
		if (*slot) { // doc_parse_yaml refuses these; a tree made otherwise may have them
			size_t before = push_path(d, "%s%s", dot(d), f->name);
			fail_at_key(d, c, "is here a second time: remove one of them");
			pop_path(d, before);
		} else {
			*slot = c;
		}
	}
}

static void place_fault(struct schema_decoder *d, const struct doc_node *object, const struct schema_fault *fault)
{
	const struct doc_node *at = object;
	bool is_exact = true;
	for (const char *name = fault->field; is_exact && name && *name;) {
		size_t len = strcspn(name, ".");
		const struct doc_node *c = at->kind == DOC_MAP ? at->child : NULL;
		while (c && !(strncmp(c->key, name, len) == 0 && c->key[len] == '\0'))
			c = c->next;
		is_exact = c && c->kind != DOC_NULL;
		if (c)
			at = c;
		name += len + (name[len] == '.');
	}
	size_t before = d->path_len;
	if (fault->field)
		push_path(d, "%s%s", dot(d), fault->field);
	if (fault->index >= 0) {
		push_path(d, "[%d]", fault->index);
		const struct doc_node *c = is_exact && at->kind == DOC_SEQ ? at->child : NULL;
		for (int32_t i = 0; c && i < fault->index; i++)
			c = c->next;
		if (c)
			at = c;
	}
	if (is_exact && fault->field)
		report(d, at, "%s", fault->message);
	else
		fail_at_key(d, at, "%s", fault->message);
	pop_path(d, before);
}

static void check_rules(struct schema_decoder *d, void (*validate)(const void *value, struct fault_list *l),
                        const struct doc_node *node, const unsigned char *base)
{
	struct fault_list l = {.n = 0};
	validate(base, &l);
	for (size_t i = 0; i < l.n; i++)
		place_fault(d, node, &l.faults[i]);
}

// node NULL: the object is absent, and only defaults are filled in.
static void decode_object(struct schema_decoder *d, const struct schema *schema, const struct doc_node *node,
                          unsigned char *base)
{
	assert(schema->n_fields <= SCHEMA_FIELDS_MAX);
	assert(d->depth < DOC_DEPTH_MAX); // a schema that contains itself outside of a list has no end
	d->depth++;
	size_t errors_before = count_errors(d);
	const struct doc_node *found[SCHEMA_FIELDS_MAX] = {NULL};
	if (node)
		match_fields(d, schema, node, found);
	bool is_plain_good = true;
	for (size_t i = 0; i < schema->n_fields; i++) {
		size_t before = push_path(d, "%s%s", dot(d), schema->fields[i].name);
		size_t errors = count_errors(d);
		decode_field(d, &schema->fields[i], found[i], node, base);
		is_plain_good = is_plain_good && (schema->fields[i].child || count_errors(d) == errors);
		pop_path(d, before);
	}
	bool is_good = count_errors(d) == errors_before;
	if (node && schema->validate && is_good)
		check_rules(d, schema->validate, node, base);
	else if (node && schema->validate_plain && is_plain_good && !is_good)
		check_rules(d, schema->validate_plain, node, base);
	d->depth--;
}

int schema_decode(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                  struct schema_errors *errors, const char *path)
{
	return schema_decode_tolerant(schema, node, value, a, errors, errors, path);
}

int schema_decode_tolerant(const struct schema *schema, const struct doc_node *node, void *value, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown, const char *path)
{
	struct schema_decoder d = {.arena = a, .errors = errors, .unknown = unknown};
	push_path(&d, "%s", path);
	size_t before = count_errors(&d);
	if (node && node->kind == DOC_MAP) {
		decode_object(&d, schema, node, value);
	} else {
		char found[SCHEMA_SHOWN_BYTES];
		schema_report(errors, node, d.path, "must be a map, found %s",
		              node ? describe(node, found) : "nothing");
	}
	return count_errors(&d) > before ? -1 : 0;
}
