// SPDX-License-Identifier: Apache-2.0
#include "cli/term/output.h"

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "base/json/yaml_out.h"
#include "base/print.h"

bool output_is_document(enum output_format format)
{
	return format == OUTPUT_JSON || format == OUTPUT_YAML;
}

void output_put_tree(struct json_writer *w, const cJSON *node)
{
	if (cJSON_IsObject(node) || cJSON_IsArray(node)) {
		bool is_object = cJSON_IsObject(node);
		if (is_object)
			json_write_object_begin(w);
		else
			json_write_array_begin(w);
		for (const cJSON *c = node->child; c; c = c->next) {
			if (is_object)
				json_write_key(w, c->string);
			output_put_tree(w, c);
		}
		if (is_object)
			json_write_object_end(w);
		else
			json_write_array_end(w);
	} else if (cJSON_IsString(node)) {
		json_write_str(w, node->valuestring);
	} else if (cJSON_IsNumber(node)) {
		json_write_f64(w, node->valuedouble);
	} else if (cJSON_IsBool(node)) {
		json_write_bool(w, cJSON_IsTrue(node));
	} else {
		json_write_null(w);
	}
}

int output_write(const struct buf *report, enum output_format format, struct err *e)
{
	struct buf yaml;
	buf_init(&yaml, report->max);
	bool converts = format == OUTPUT_YAML;
	int rc = report->failed || (converts && yaml_from_json(&yaml, buf_str(report), report->len) < 0) ? -1 : 0;
	if (rc == 0)
		rc = print_out(converts ? &yaml : report);
	buf_done(&yaml);
	return rc < 0 ? err_set(e, ERR_IO, "the output is too long or cannot be written") : 0;
}

int output_print(const char *command, const struct buf *report, enum output_format format)
{
	struct err e;
	int rc = output_write(report, format, &e);
	if (rc < 0)
		print_error("%s: %s\n", command, e.msg);
	return rc;
}
