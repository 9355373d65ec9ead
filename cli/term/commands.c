// SPDX-License-Identifier: Apache-2.0
#include "cli/term/commands.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/table.h"
#include "runtime/options/controller_options.h"

#define ROW_OF(name, summary) {#name, summary, cmd_##name},
static const struct command table[] = {COMMANDS(ROW_OF)};

int command_failed(const char *command, const struct err *e)
{
	print_error("%s: %s\n", command, e->msg);
	return err_kind_info(e->kind)->exit_code;
}

const struct command *command_table(size_t *ret_n)
{
	*ret_n = sizeof table / sizeof table[0];
	return table;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

// ---- groups of flags ----

#define HELP_COLUMNS   79
#define HELP_BYTES_MAX (64 * 1024)

static const struct {
	const char *name;
	const struct flag_set *set;
	const char *about;
} groups[] = {
        {"prometheus", &prometheus_flags, "Flags of the commands that query Prometheus:"},
        {"kubernetes", &kube_flags, "Flags of the commands that use a cluster:"},
        {"high-availability", &ha_flags, "Flags of run and remediate, for several processes of which one acts:"},
};
#define N_GROUPS (sizeof groups / sizeof groups[0])

const char *flag_group_name(size_t i)
{
	return i < N_GROUPS ? groups[i].name : NULL;
}

bool flag_group_help(const char *name)
{
	struct table t;
	struct buf out = BUF(HELP_BYTES_MAX);
	size_t i = 0;
	while (i < N_GROUPS && strcmp(groups[i].name, name) != 0)
		i++;
	if (i == N_GROUPS)
		return false;
	table_init(&t, "\t");
	t.gap = 2;
	t.columns = HELP_COLUMNS;
	for (const struct flag *f = groups[i].set->flags; f->type != FLAG_TYPE_END; f++) {
		bool is_optional = f->group & FLAG_OPTIONAL;
		if (!f->name)
			continue;
		table_put(&t, "--%s%s%s%s%s\t%s", f->name, is_optional ? "[" : "", f->arg ? "=" : "",
		          f->arg ? f->arg : "", is_optional ? "]" : "", f->help);
	}
	print_to(&out, "%s\n\n", groups[i].about);
	table_finish(&t, &out, 2, false);
	print_out(&out);
	buf_done(&out);
	return true;
}
