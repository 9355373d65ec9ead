// SPDX-License-Identifier: Apache-2.0
#include "base/json/yaml_out.h"

#include <ctype.h>
#include <strings.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"

// Plain style is kept for words that no YAML 1.1 or 1.2 reader turns into a number, boolean, null, date or syntax.
static bool is_plain(const char *s)
{
	static const char *const reserved[] = {"true", "false", "null", "yes", "no", "on",
	                                       "off",  "y",     "n",    "nan", "inf"};
	if (!isalpha((unsigned char)s[0]))
		return false;
	for (const char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_./", *p) && !(*p == ' ' && p[1]))
			return false;
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
		if (strcasecmp(s, reserved[i]) == 0)
			return false;
	return true;
}

// A JSON string is a YAML double-quoted scalar, but for noncharacters beyond the first plane: YAML knows no pairs.
void yaml_put_quoted(struct buf *out, const char *s)
{
	size_t len = strlen(s), taken;
	buf_putc(out, '"');
	for (size_t i = 0; i < len; i += taken) {
		char text[JSON_ESCAPED_BYTES_MAX];
		size_t n = json_escape_char(s + i, len - i, text, &taken);
		if (taken == 4 && text[0] == '\\')
			buf_printf(out, "\\U%08x", (unsigned)text_code_point(s + i, taken));
		else
			buf_put(out, text, n);
	}
	buf_putc(out, '"');
}

void yaml_put_string(struct buf *out, const char *s)
{
	if (is_plain(s))
		buf_puts(out, s);
	else
		yaml_put_quoted(out, s);
}

static void put_indent(struct buf *out, int depth)
{
	for (int i = 0; i < depth; i++)
		buf_puts(out, "  ");
}

static void put_node(struct buf *out, const cJSON *node, int depth, bool in_list);

static void put_scalar(struct buf *out, const cJSON *node)
{
	char text[NUM_TEXT_BYTES];
	if (cJSON_IsString(node))
		yaml_put_string(out, node->valuestring);
	else if (cJSON_IsNumber(node)) {
		num_format_f64(text, node->valuedouble);
		buf_puts(out, text);
	} else
		buf_puts(out, cJSON_IsTrue(node) ? "true" : cJSON_IsFalse(node) ? "false" : "null");
	buf_putc(out, '\n');
}

static bool is_block(const cJSON *node)
{
	return (cJSON_IsObject(node) || cJSON_IsArray(node)) && node->child;
}

static void put_value(struct buf *out, const cJSON *node, int depth)
{
	if (is_block(node)) {
		buf_putc(out, '\n');
		put_node(out, node, cJSON_IsArray(node) ? depth : depth + 1, false);
	} else if (cJSON_IsObject(node) || cJSON_IsArray(node)) {
		buf_puts(out, cJSON_IsObject(node) ? " {}\n" : " []\n");
	} else {
		buf_putc(out, ' ');
		put_scalar(out, node);
	}
}

// in_list: the first line continues behind a "- ".
static void put_node(struct buf *out, const cJSON *node, int depth, bool in_list)
{
	for (const cJSON *c = node->child; c; c = c->next) {
		if (!in_list || c != node->child)
			put_indent(out, depth);
		if (cJSON_IsObject(node)) {
			yaml_put_string(out, c->string);
			buf_putc(out, ':');
			put_value(out, c, depth);
		} else {
			buf_putc(out, '-');
			if (is_block(c)) {
				buf_putc(out, ' ');
				put_node(out, c, depth + 1, true);
			} else {
				put_value(out, c, depth);
			}
		}
	}
}

int yaml_from_json(struct buf *out, const char *json, size_t len)
{
	cJSON *root = json_read(json, len, NULL);
	if (!root)
		return -1;
	if (is_block(root))
		put_node(out, root, 0, false);
	else
		put_scalar(out, root);
	cJSON_Delete(root);
	return out->failed ? -1 : 0;
}
