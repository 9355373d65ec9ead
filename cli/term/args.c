// SPDX-License-Identifier: Apache-2.0
#include "cli/term/args.h"

#include <argp.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/must.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/term/commands.h"
#include "cli/term/complete.h"
#include "runtime/options/flag_table.h"

#define VARIABLES_MAX  128
#define VARIABLE_BYTES 64 // of a name, behind the prefix

// The flags of a command by their names, and behind them --help and --usage, which argp adds.
struct flags {
	const struct flag_parser *parser;
	const char *names[FLAG_ROWS_MAX + 2];
	size_t n;
};

static void collect(struct flags *f, const struct flag_parser *p)
{
	f->parser = p;
	for (f->n = 0; f->n < p->n_rows; f->n++)
		f->names[f->n] = p->rows[f->n].flag->name;
	f->names[f->n++] = "help";
	f->names[f->n++] = "usage";
}

// True without an argument, not even an optional one.
static bool is_switch(const struct flags *f, size_t which)
{
	return which >= f->parser->n_rows || !f->parser->rows[which].flag->arg;
}

// True with an argument, which may be the next word. It may look like a flag: in `--reason --not-now`, the latter is
// the reason.
static bool takes_next(const struct flags *f, size_t which)
{
	return !is_switch(f, which) && !(f->parser->rows[which].flag->group & FLAG_OPTIONAL);
}

// The index of the flag with this letter; f->n if there is none.
static size_t find_letter(const struct flags *f, char letter)
{
	for (size_t i = 0; i < f->parser->n_rows; i++)
		if (f->parser->rows[i].flag->letter == letter)
			return i;
	return f->n;
}

static _Noreturn void fail_unknown(const char *command, const char *word, size_t len, const struct flags *f)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), word);
	const char *close = num_closest_name(name, f->names, f->n);
	print_error("%s: unrecognized option '--%.*s'", command, (int)len, word);
	if (close)
		print_error("; did you mean '--%s'?", close);
	print_error("\nTry `%s --help' for a list.\n", command);
	exit(EXIT_USAGE);
}

// The index of the flag that a word of `len` bytes names, completely or as a prefix of one or more; f->n if there is
// none.
static size_t find(const struct flags *f, const char *word, size_t len)
{
	size_t found = f->n;
	for (size_t i = 0; i < f->n; i++) {
		if (strncmp(f->names[i], word, len) != 0)
			continue;
		found = i;
		if (f->names[i][len] == '\0')
			break;
	}
	return found;
}

// True if the last letter takes the next argument. Replaces a lone "-h" by --help unless it has another meaning.
static bool check_letters(const char *command, char **arg, const struct flags *f)
{
	static const char help[] = "--help"; // arguments are never written to
	if (strcmp(*arg, "-h") == 0 && find_letter(f, 'h') == f->n) {
		*arg = (char *)(uintptr_t)help;
		return false;
	}
	for (const char *p = *arg + 1; *p; p++) {
		if (*p < ' ' || *p > '~') { // getopt would print it as it is
			print_error("%s: invalid option -- '%s'\nTry `%s --help' for a list.\n", command, p, command);
			exit(EXIT_USAGE);
		}
		size_t which = find_letter(f, *p);
		if (which < f->n && takes_next(f, which))
			return p[1] == '\0';
	}
	return false;
}

static void check_flags(const struct flags *f, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *word = argv[i];
		if (word[0] != '-' || word[1] == '\0')
			continue;
		if (word[1] != '-') {
			i += check_letters(argv[0], &argv[i], f);
			continue;
		}
		size_t len = strcspn(word + 2, "="), which = find(f, word + 2, len);
		if (which == f->n)
			fail_unknown(argv[0], word + 2, len, f);
		i += takes_next(f, which) && word[2 + len] == '\0';
	}
}

// ---- flags of every command ----

static void set_color(void *options, char *arg, struct argp_state *state)
{
	static const char *const names[] = {"auto", "always", "never", NULL};
	int choice = option_choice("--color", arg, names, state);
	if (choice > 0)
		setenv(choice == 1 ? "CLICOLOR_FORCE" : "NO_COLOR", "1", 1);
	if (choice != 1)
		unsetenv("CLICOLOR_FORCE");
}

static const struct flag_set common = {
        .flags = (const struct flag[]){FLAG_TAKE(FLAG_HIDDEN, 0, "color", "auto|always|never", set_color,
                                                 "colours of states (default auto: on a terminal)"),
                                       FLAG_END}};

// Returns the row that the variable "<prefix>DRY_RUN=true" names, f->n if there is none.
static size_t find_variable(const char *variable, size_t prefix, const struct flags *f)
{
	char name[VARIABLE_BYTES];
	size_t len = 0;
	for (const char *c = variable + prefix; *c && *c != '='; c++)
		if (len < sizeof name)
			name[len++] = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
	return len < sizeof name ? find(f, name, len) : f->n;
}

// Rewrites the environment string `variable`, "<prefix>DRY_RUN=true", in place to the word "--dry-run", which
// stays valid as long as the process. The prefix must be longer than two bytes. `which` is its row. Returns NULL for a
// switch that is false.
static char *flag_of(const char *command, char *variable, size_t prefix, const struct flags *f, size_t which)
{
	char *word = variable + prefix - 2, *value = strchr(word, '=');
	if (!value)
		return NULL;
	for (char *c = variable + prefix; c < value; c++)
		*c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
	if (which < f->n && is_switch(f, which)) {
		bool is_true = strcmp(value + 1, "true") == 0;
		if (!is_true && strcmp(value + 1, "false") != 0) {
			print_error("%s: --%s from the environment: expected true or false, got \"%s\"\n", command,
			            f->names[which], value + 1);
			exit(EXIT_USAGE);
		}
		*value = '\0';
		if (!is_true)
			return NULL;
	}
	memcpy(word, "--", 2);
	return word;
}

// Returns the arguments with the flags from the environment in front, so that an argument overrides a variable. The
// caller frees the array.
static char **with_environment(int *argc, char **argv, const struct flags *f, bool is_service)
{
	char prefix[64], *words[VARIABLES_MAX];
	size_t n = 0, len = (size_t)snprintf(prefix, sizeof prefix, "%s_", argv[0]);
	for (char *c = prefix; *c; c++)
		*c = *c == ' ' ? '_' : (char)toupper((unsigned char)*c);
	for (char **v = environ; *v && n < VARIABLES_MAX; v++) {
		if (strncmp(*v, prefix, len) != 0)
			continue;
		size_t which = find_variable(*v, len, f);
		if (which == f->n && !is_service)
			print_error("%s: the variable %.*s is ignored because it names no flag of this command\n",
			            argv[0], (int)strcspn(*v, "="), *v);
		else if ((words[n] = flag_of(argv[0], *v, len, f, which)))
			n++;
	}
	char **all = must_alloc(calloc((size_t)*argc + n + 1, sizeof *all));
	all[0] = argv[0];
	memcpy(all + 1, words, n * sizeof *all);
	memcpy(all + 1 + n, argv + 1, (size_t)(*argc - 1) * sizeof *all);
	*argc += (int)n;
	return all;
}

void args_parse(const struct flag_set *command, int argc, char **argv, void *options)
{
	struct flag_parser p;
	struct flags f;
	flag_parser_init(&p, command, &common, options);
	if (strcmp(argv[0], COMPLETE_COMMAND) == 0)
		complete_arguments(&p, argc, argv);
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0); // omits a sentence about arguments that is of no use here
	argp_err_exit_status = EXIT_USAGE;
	collect(&f, &p);
	char **words = with_environment(&argc, argv, &f, command->is_service);
	check_flags(&f, argc, words);
	flag_parser_run(&p, argc, words);
	free(words);
}
