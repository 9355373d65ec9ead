// SPDX-License-Identifier: Apache-2.0
// Test results as JUnit XML.
#include "base/base.h"
#include "base/xml_text.h"
#include "policies/test/test_report.h"

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
	j->of_suite = (struct junit_totals){0};
	buf_reset(&j->suite);
}

void junit_add(struct junit *j, const struct junit_case *c)
{
	struct buf *out = &j->suite;
	j->of_suite.n++;
	j->of_suite.seconds += c->seconds;
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
		j->of_suite.skipped++;
		buf_puts(out, "><skipped/></testcase>\n");
		return;
	}
	j->of_suite.failed++;
	const char *detail = c->detail ? c->detail : "", *first = detail + strspn(detail, " \n");
	buf_puts(out, ">\n      <failure type=\"failure\"");
	put_attribute(out, "message", first, strcspn(first, "\n"));
	buf_putc(out, '>');
	xml_put_text(out, detail);
	buf_puts(out, "</failure>\n    </testcase>\n");
}

static void put_totals(struct buf *out, const struct junit_totals *t)
{
	buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n", t->n,
	           t->failed, t->skipped, t->seconds);
}

void junit_end_suite(struct junit *j)
{
	if (!j->suite_name)
		return;
	buf_puts(&j->all, "  <testsuite");
	put_attribute(&j->all, "name", j->suite_name, strlen(j->suite_name));
	put_totals(&j->all, &j->of_suite);
	buf_put(&j->all, buf_str(&j->suite), j->suite.len);
	buf_puts(&j->all, "  </testsuite>\n");
	j->all.failed |= j->suite.failed;
	j->of_all.n += j->of_suite.n;
	j->of_all.failed += j->of_suite.failed;
	j->of_all.skipped += j->of_suite.skipped;
	j->of_all.seconds += j->of_suite.seconds;
	free(j->suite_name);
	j->suite_name = NULL;
}

int junit_print(const struct junit *j, struct buf *out)
{
	assert(!j->suite_name);
	buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpuscale test\"");
	put_totals(out, &j->of_all);
	buf_put(out, buf_str(&j->all), j->all.len);
	buf_puts(out, "</testsuites>\n");
	return j->all.failed || out->failed ? -1 : 0;
}
