// SPDX-License-Identifier: Apache-2.0
#include "cli/term/output.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json/yaml_out.h"
#include "base/print.h"

bool output_is_document(enum output_format format)
{
	return format == OUTPUT_JSON || format == OUTPUT_YAML;
}

int output_write(struct buf *report, enum output_format format, struct err *e)
{
	struct buf yaml = BUF(report->max);
	bool converts = format == OUTPUT_YAML;
	if (format == OUTPUT_JSON && report->len && buf_str(report)[report->len - 1] != '\n')
		buf_putc(report, '\n');
	int rc = report->failed || (converts && yaml_from_json(&yaml, buf_str(report), report->len) < 0) ? -1 : 0;
	if (rc == 0)
		rc = print_out(converts ? &yaml : report);
	buf_done(&yaml);
	buf_done(report);
	return rc < 0 ? err_set(e, ERR_IO, "the output is too long or cannot be written") : 0;
}

int output_print(const char *command, struct buf *report, enum output_format format)
{
	struct err e;
	int rc = output_write(report, format, &e);
	if (rc < 0)
		print_error("%s: %s\n", command, e.msg);
	return rc;
}
