// SPDX-License-Identifier: Apache-2.0
#include "promql/fuse.h"

#include "base/base.h"
#include "promql/promql.h"

void fuse_add(struct buf *out, const char *query, int i)
{
	buf_printf(out, "%slabel_replace((%s\n),\"" FUSE_LABEL "\",\"%d\",\"\",\"\")", i ? "\nor " : "", query, i);
}

int fuse_index(const struct promql_series *s)
{
	const char *text = promql_label(s, FUSE_LABEL);
	int64_t i;
	return text[0] && num_parse_i64(text, strlen(text), 0, FUSE_MAX - 1, &i, NULL) == 0 ? (int)i : -1;
}
