// SPDX-License-Identifier: Apache-2.0
#include "policies/test/junit.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xml_text.h"

void junit_init(struct junit *j, size_t max_bytes)
{
	*j = (struct junit){0};
	buf_init(&j->all, max_bytes);
	buf_init(&j->suite, max_bytes);
}

void junit_done(struct junit *j)
{
	buf_done(&j->all);
	buf_done(&j->suite);
	free(j->suite_name);
}

// In an attribute, where a line end would be read as a space.
static void put_attribute(struct buf *out, const char *name, const char *s, size_t len)
{
	buf_printf(out, " %s=\"", name);
	for (size_t from = 0; from < len;) {
		const char *nl = memchr(s + from, '\n', len - from);
		size_t n = nl ? (size_t)(nl - s) - from : len - from;
		xml_put_textn(out, s + from, n);
		if (nl)
			buf_puts(out, "&#10;");
		from += n + (nl ? 1 : 0);
	}
	buf_putc(out, '"');
}

void junit_begin_suite(struct junit *j, const char *name)
{
	assert(!j->suite_name);
	j->suite_name = strdup(name);
	if (!j->suite_name)
		j->all.failed = true;
	j->n = j->failed = j->skipped = 0;
	j->seconds = 0;
	buf_reset(&j->suite);
}

void junit_add(struct junit *j, const struct junit_case *c)
{
	struct buf *out = &j->suite;
	j->n++;
	j->seconds += c->seconds;
	buf_puts(out, "    <testcase");
	put_attribute(out, "name", c->name, strlen(c->name));
	put_attribute(out, "classname", c->file, strlen(c->file));
	put_attribute(out, "file", c->file, strlen(c->file));
	if (c->line > 0)
		buf_printf(out, " line=\"%d\"", c->line);
	buf_printf(out, " time=\"%.3f\"", c->seconds);
	if (c->outcome == JUNIT_PASSED) {
		buf_puts(out, "/>\n");
		return;
	}
	if (c->outcome == JUNIT_SKIPPED) {
		j->skipped++;
		buf_puts(out, "><skipped/></testcase>\n");
		return;
	}
	j->failed++;
	const char *detail = c->detail ? c->detail : "", *first = detail + strspn(detail, " \n");
	buf_puts(out, ">\n      <failure type=\"failure\"");
	put_attribute(out, "message", first, strcspn(first, "\n"));
	buf_putc(out, '>');
	xml_put_text(out, detail);
	buf_puts(out, "</failure>\n    </testcase>\n");
}

void junit_end_suite(struct junit *j)
{
	if (!j->suite_name)
		return;
	buf_puts(&j->all, "  <testsuite");
	put_attribute(&j->all, "name", j->suite_name, strlen(j->suite_name));
	buf_printf(&j->all, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n", j->n,
	           j->failed, j->skipped, j->seconds);
	buf_put(&j->all, buf_str(&j->suite), j->suite.len);
	buf_puts(&j->all, "  </testsuite>\n");
	j->all.failed |= j->suite.failed;
	j->all_n += j->n;
	j->all_failed += j->failed;
	j->all_skipped += j->skipped;
	j->all_seconds += j->seconds;
	free(j->suite_name);
	j->suite_name = NULL;
}

int junit_print(const struct junit *j, struct buf *out)
{
	assert(!j->suite_name);
	buf_printf(out,
	           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpuscale test\" tests=\"%zu\" "
	           "failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
	           j->all_n, j->all_failed, j->all_skipped, j->all_seconds);
	buf_put(out, buf_str(&j->all), j->all.len);
	buf_puts(out, "</testsuites>\n");
	return j->all.failed || out->failed ? -1 : 0;
}
