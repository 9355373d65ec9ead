// SPDX-License-Identifier: Apache-2.0
// Prints a struct conversion as YAML for people to edit: comments in their places, flow style for short parts.

#include "base/base.h"
#include "base/json/yaml_out.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"
#include "policies/schema/policy_schema.h"

#define KEY_BYTES_MAX 64

// The length of the character at `s` if it can be used unescaped in single quotes and in a comment; 0 if it ends a
// line (YAML knows more than
// ), is rejected by readers, or does harm on a terminal.
static size_t safe_char_len(const char *s)
{
	size_t n = utf8_char_len(s, strnlen(s, 4));
	return n > 0 && !text_is_unsafe(text_code_point(s, n)) ? n : 0;
}

// Prints text of several lines unchanged, on its own lines; its final newlines have no meaning in PromQL.
static void put_lines(struct buf *out, const char *indent, const char *s, size_t len)
{
	buf_printf(out, "|-\n%s", indent);
	for (size_t i = 0; i < len; i++) {
		buf_putc(out, s[i]);
		if (s[i] == '\n' && s[i + 1] != '\n')
			buf_puts(out, indent);
	}
}

// Puts PromQL in single quotes, where its special characters need no escape.
static void put_query(struct buf *out, const char *indent, const char *s)
{
	size_t len = strlen(s), n;
	while (len > 0 && strchr(" \n", s[len - 1]))
		len--;
	bool is_plain = s[0] != ' ' && s[0] != '\n';
	for (size_t i = 0; i < len && is_plain; i += n) {
		n = s[i] == '\n' ? 1 : safe_char_len(s + i);
		is_plain = n > 0;
	}
	if (!is_plain) {
		yaml_put_quoted(out, s);
	} else if (memchr(s, '\n', len)) {
		put_lines(out, indent, s, len);
	} else if (memchr(s, '\'', len)) {
		yaml_put_quoted(out, s);
	} else {
		buf_putc(out, '\'');
		buf_put(out, s, len);
		buf_putc(out, '\'');
	}
}

static bool is_whole(const char *s)
{
	return s[0] && strspn(s, "0123456789") == strlen(s);
}

// Prints a whole number unchanged, other text as a string, which `gpuscale check` reports.
static void put_number(struct buf *out, const char *s)
{
	if (is_whole(s))
		buf_puts(out, s);
	else
		yaml_put_quoted(out, s);
}

// Prints "45s" unchanged, other text as a string.
static void put_duration(struct buf *out, const char *s)
{
	size_t n = strspn(s, "0123456789");
	if (n > 0 && strcmp(s + n, "s") == 0)
		buf_puts(out, s);
	else
		yaml_put_quoted(out, s);
}

typedef void put_fn(struct buf *out, const char *value);

// Prints a value between two texts; nothing for NULL.
static void part(struct buf *out, const char *before, put_fn *put, const char *value, const char *after)
{
	if (!value)
		return;
	buf_puts(out, before);
	put(out, value);
	buf_puts(out, after);
}

// Prints a field on a line of its own; nothing for NULL.
static void line(struct buf *out, const char *key, put_fn *put, const char *value)
{
	part(out, key, put, value, "\n");
}

static void put_pair(struct buf *out, const char *up, const char *down)
{
	part(out, ": {up: ", put_duration, up, "");
	part(out, ", down: ", put_duration, down, "}\n");
}

static void comment(struct buf *out, const char *indent, const char *bullet, const char *text)
{
	buf_printf(out, "%s# %s", indent, bullet);
	for (const char *p = text; *p;) {
		size_t n = safe_char_len(p);
		if (n > 0)
			buf_put(out, p, n);
		else if ((*p & 0xc0) != 0x80) // one blank for the whole character
			buf_putc(out, ' ');
		p += n > 0 ? n : 1;
	}
	buf_putc(out, '\n');
}

// A note above a field of the policy; NULL = none.
static void field_note(struct buf *out, const char *note)
{
	if (note)
		comment(out, "  ", "", note);
}

// The key is scaleUp; in an annotation of autoscaling/v1 it is ScaleUp. Both in one map stay separate.
static void put_key(struct buf *out, const struct doc_node *map, const char *key)
{
	char name[KEY_BYTES_MAX];
	if (strlen(key) >= sizeof name) { // not a field of a policy; a key without "?" may have 1024 characters
		buf_puts(out, "? ");
		yaml_put_quoted(out, key);
		buf_puts(out, " : ");
		return;
	}
	memcpy(name, key, strlen(key) + 1);
	if (name[0] >= 'A' && name[0] <= 'Z')
		name[0] = (char)(name[0] - 'A' + 'a');
	yaml_put_string(out, doc_get(map, name) ? key : name);
	buf_puts(out, ": ");
}

// Prints a subtree of the source in flow style; unquoted numbers stay numbers, null is omitted.
static void put_flow(struct buf *out, const struct doc_node *n)
{
	if (n->kind == DOC_MAP || n->kind == DOC_SEQ) {
		buf_putc(out, n->kind == DOC_MAP ? '{' : '[');
		bool any = false;
		for (const struct doc_node *c = n->child; c; c = c->next) {
			if (n->kind == DOC_MAP && c->kind == DOC_NULL)
				continue;
			buf_puts(out, any ? ", " : "");
			any = true;
			if (n->kind == DOC_MAP)
				put_key(out, n, c->key);
			put_flow(out, c);
		}
		buf_putc(out, n->kind == DOC_MAP ? '}' : ']');
	} else if (n->kind == DOC_SCALAR && !n->quoted && is_whole(n->text)) {
		buf_puts(out, n->text);
	} else if (n->kind == DOC_SCALAR) {
		yaml_put_string(out, n->text);
	} else {
		buf_puts(out, "null");
	}
}

// Prints the rules of one direction. An annotation of autoscaling/v1 writes their keys with a capital.
static void put_rules(struct buf *out, const struct doc_node *rules, const char *text, bool is_disabled)
{
	bool any = is_disabled;
	if (!is_disabled && text) {
		buf_puts(out, text);
		return;
	}
	if (!is_disabled && rules->kind != DOC_MAP) {
		put_flow(out, rules);
		return;
	}
	buf_puts(out, is_disabled ? "{selectPolicy: Disabled" : "{");
	for (const struct doc_node *r = rules ? rules->child : NULL; r; r = r->next) {
		bool is_select = strcmp(r->key, "selectPolicy") == 0 || strcmp(r->key, "SelectPolicy") == 0;
		if (r->kind == DOC_NULL || !r->key[0] || (is_disabled && is_select))
			continue;
		buf_puts(out, any ? ", " : "");
		any = true;
		put_key(out, rules, r->key);
		put_flow(out, r);
	}
	buf_putc(out, '}');
}

static void write_behavior(struct buf *out, const struct conversion *c)
{
	static const char *const directions[] = {"scaleUp", "scaleDown"}, *const upper[] = {"ScaleUp", "ScaleDown"};
	const char *const texts[] = {c->scale_up, c->scale_down};
	const bool disabled[] = {c->is_up_disabled, c->is_down_disabled};
	if (!c->behavior && !c->scale_up && !c->scale_down && !c->is_up_disabled && !c->is_down_disabled)
		return;
	buf_puts(out, "  behavior:\n");
	for (int i = 0; i < 2; i++) {
		const struct doc_node *rules = doc_get(c->behavior, directions[i]);
		if (!rules)
			rules = doc_get(c->behavior, upper[i]);
		if (rules && rules->kind == DOC_NULL)
			rules = NULL;
		if (!rules && !texts[i] && !disabled[i])
			continue;
		buf_printf(out, "    %s: ", directions[i]);
		put_rules(out, rules, texts[i], disabled[i]);
		buf_putc(out, '\n');
	}
}

static void write_signal(struct buf *out, const struct conversion_signal *s)
{
	if (s->note)
		comment(out, "  ", "", s->note);
	part(out, "  - name: ", yaml_put_string, s->name, "");
	buf_puts(out, s->formula ? "\n    formula: " : "\n    query: ");
	put_query(out, "      ", s->formula ? s->formula : s->query ? s->query : "");
	buf_putc(out, '\n');
	line(out, "    source: ", yaml_put_string, s->source);
	if (s->target_type) {
		buf_printf(out, "    target: {type: %s", s->target_type);
		if (strcmp(s->target_type, "Replicas") != 0)
			part(out, ", value: ", yaml_put_quoted, s->target_value ? s->target_value : "", "");
		buf_puts(out, "}\n");
	} else if (!s->is_input) {
		part(out, "    watermarks: {high: ", yaml_put_quoted, s->high ? s->high : "", "");
		part(out, ", low: ", yaml_put_quoted, s->low ? s->low : "", "");
		part(out, ", tolerance: ", yaml_put_quoted, s->tolerance, "");
		buf_printf(out, ", algorithm: %s}\n", s->algorithm);
	}
	part(out, "    window: {duration: ", put_duration, s->window_seconds, "}\n");
	if (s->sustain_up || s->sustain_down) {
		buf_puts(out, "    sustain");
		put_pair(out, s->sustain_up ? s->sustain_up : "0s", s->sustain_down ? s->sustain_down : "0s");
	}
	line(out, "    onMissing: ", yaml_put_string, s->on_missing);
}

static void write_schedules(struct buf *out, const struct conversion *c)
{
	field_note(out, c->schedules_note);
	if (c->n_schedules > 0)
		buf_puts(out, "  schedules:\n");
	for (size_t i = 0; i < c->n_schedules; i++) {
		const struct conversion_schedule *s = &c->schedules[i];
		part(out, "  - {name: ", yaml_put_string, s->name, "");
		part(out, ", start: ", yaml_put_quoted, s->start, "");
		part(out, ", end: ", yaml_put_quoted, s->end, "");
		part(out, ", timeZone: ", yaml_put_string, s->time_zone, "");
		part(out, ", minReplicas: ", put_number, s->min_replicas, "");
		part(out, ", maxReplicas: ", put_number, s->max_replicas, "");
		buf_puts(out, s->is_max ? ", combine: Max}\n" : "}\n");
	}
}

static void write_idle(struct buf *out, const struct conversion *c)
{
	field_note(out, c->idle_note);
	if (!c->idle_after)
		return;
	buf_puts(out, "  idle:\n");
	line(out, "    after: ", put_duration, c->idle_after);
	line(out, "    replicas: ", put_number, c->idle_replicas);
	line(out, "    initialCooldown: ", put_duration, c->idle_initial);
	buf_puts(out, c->n_activations > 1 ? "    activation: {anyOf: [" : "    activation: ");
	for (size_t i = 0; i < c->n_activations; i++) {
		part(out, i > 0 ? ", {signal: " : "{signal: ", yaml_put_string, c->activations[i].signal, "");
		part(out, ", above: ", yaml_put_quoted, c->activations[i].above, "}");
	}
	buf_puts(out, c->n_activations > 1 ? "]}\n" : "\n");
}

// A fallback for each signal that asks for replicas.
static bool has_several(const struct conversion *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n_signals; i++)
		n += !c->signals[i].is_input;
	return n > 1;
}

static void write_rest(struct buf *out, const struct conversion *c)
{
	field_note(out, c->combine_note);
	line(out, "  combine: ", yaml_put_quoted, c->combine);
	write_behavior(out, c);
	if (c->cooldown_up) {
		buf_puts(out, "  cooldown");
		put_pair(out, c->cooldown_up, c->cooldown_down);
	}
	write_schedules(out, c);
	write_idle(out, c);
	if (c->panic_signal) {
		buf_puts(out, "  panic:\n");
		line(out, "    signal: ", yaml_put_string, c->panic_signal);
		line(out, "    window: ", put_duration, c->panic_window);
		line(out, "    threshold: ", yaml_put_string, c->panic_threshold);
	}
	field_note(out, c->fallback_note);
	if (c->fallback_threshold) {
		buf_puts(out, "  fallback:\n");
		line(out, "    failureThreshold: ", put_number, c->fallback_threshold);
		line(out, "    replicas: ", put_number, c->fallback_replicas);
		line(out, "    behavior: ", yaml_put_string, c->fallback_behavior);
		if (has_several(c))
			buf_puts(out, "    when: Any\n");
	}
	line(out, "  guards:\n    minAvailablePercent: ", put_number, c->min_available_percent);
}

void convert_write(struct buf *out, const struct conversion *c)
{
	buf_puts(out, "---\n");
	comment(out, "", "From the ", c->from);
	if (c->n_notes > 0)
		buf_puts(out, "# To look at:\n");
	for (size_t i = 0; i < c->n_notes; i++)
		comment(out, "", "- ", c->notes[i]);
	if (c->is_full)
		buf_puts(out, "# - and more\n");
	buf_puts(out, "apiVersion: " POLICY_API_VERSION "\nkind: " POLICY_KIND "\nmetadata:\n");
	line(out, "  name: ", yaml_put_string, c->name);
	line(out, "  namespace: ", yaml_put_string, c->namespace_name);
	part(out, "spec:\n  scaleTargetRef: {apiVersion: ", yaml_put_string, c->target_api_version, "");
	part(out, ", kind: ", yaml_put_string, c->target_kind, "");
	part(out, ", name: ", yaml_put_string, c->target_name, "}\n");
	line(out, "  minReplicas: ", put_number, c->min_replicas);
	line(out, "  maxReplicas: ", put_number, c->max_replicas);
	line(out, "  interval: ", put_duration, c->interval);
	line(out, "  replicaMultiple: ", put_number, c->replica_multiple);
	if (c->dry_run)
		buf_puts(out, "  dryRun: true\n");
	if (c->paused)
		buf_puts(out, "  paused: true\n");
	if (c->n_signals == 0)
		buf_puts(out, "  signals: []   # at least one is needed\n");
	else
		buf_puts(out, "  signals:\n");
	for (size_t i = 0; i < c->n_signals; i++)
		write_signal(out, &c->signals[i]);
	write_rest(out, c);
}
