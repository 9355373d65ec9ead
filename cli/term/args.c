// SPDX-License-Identifier: Apache-2.0
#include "cli/term/args.h"

#include <argp.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/term/commands.h"
#include "cli/term/object_kind.h"
#include "k8s/client/k8s_config.h"
#include "runtime/options/flag_table.h"

#define VARIABLES_MAX  128
#define VARIABLE_BYTES 64 // of a name, behind the prefix

// The flags of a command by their names, and behind them --help and --usage, which argp adds.
struct flags {
	const struct flag_parser *parser;
	const char *names[FLAG_ROWS_MAX + 2];
	size_t n;
};

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

// ---- completion ----

#define OUTPUT_MAX     ((size_t)16 * 1024 * 1024)
#define ARGUMENTS_MAX  64
#define CLUSTER_WAIT_S 3 // a cluster that does not reply by then has no candidates

// The candidates for a word: those that start with it. `before` is the part of the word in front of a value,
// "--output=".
struct completion {
	const char *word, *before;
	size_t before_len;
	bool with_files;
	struct buf out;
};

static void offer(struct completion *c, const char *text, size_t len, const char *about)
{
	size_t wanted = strlen(c->word);
	if (len == 0 || len < wanted || memcmp(text, c->word, wanted) != 0)
		return;
	print_to(&c->out, "%.*s%.*s", (int)c->before_len, c->before, (int)len, text);
	print_to(&c->out, about ? "\t%.*s\n" : "\n", (int)strcspn(about ? about : "", "\n"), about);
}

static int finish(struct completion *c)
{
	print_to(&c->out, ":%d\n", c->with_files ? 0 : 4);
	return print_out(&c->out) < 0 ? EXIT_FAILED : EXIT_OK;
}

// Runs a command and appends its standard output to `text`.
static void capture(const char *name, int argc, char **argv, struct buf *text)
{
	int kept = dup(STDOUT_FILENO), fd = memfd_create("output", MFD_CLOEXEC);
	fflush(stdout);
	if (kept < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return;
	command_find(name)->run(argc, argv);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	lseek(fd, 0, SEEK_SET);
	(void)buf_read_opened(text, fd, name, NULL);
}

// Offers a part of each line: what is between `after` (NULL: the start of the line) and the next blank, once if lines
// that follow each other repeat it.
static void offer_lines(struct completion *c, const char *text, const char *after)
{
	const char *last = "";
	size_t last_len = 0;
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		const char *start = after ? strstr(line, after) : line;
		if (!start || start >= end)
			continue;
		start += after ? strlen(after) : 0;
		size_t len = strcspn(start, " \n");
		if (len != last_len || memcmp(start, last, len) != 0)
			offer(c, start, len, NULL);
		last = start;
		last_len = len;
	}
}

// Returns how many of the words that start with words[0] select the cluster or the namespace: 1, 2 with a value, or 0.
static int selects_cluster(char **words)
{
	static const char *const names[] = {"-n", "--namespace", "--kubeconfig", "--context"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(words[0], names[i], strlen(names[i])) == 0)
			return words[0][strlen(names[i])] ? 1 : 2;
	return 0;
}

// Offers names from the cluster that the flags of the command line select: of policies, after the word "pools" of
// pools, or of the namespaces that have policies.
static void offer_names(struct completion *c, int argc, char **argv, bool namespaces)
{
	char get[] = "gpuscale get", output[] = "-o", name[] = "name", all[] = "-A";
	char *arguments[ARGUMENTS_MAX + 4] = {get, namespaces ? all : output, namespaces ? NULL : name};
	int n = namespaces ? 2 : 3;
	for (int i = 1, n_words; i + 1 < argc && n<ARGUMENTS_MAX; i += n_words> 1 ? n_words : 1) {
		n_words = selects_cluster(argv + i);
		bool is_kept = namespaces ? n_words && argv[i][1] != 'n' && strncmp(argv[i], "--n", 3) != 0
		                          : n_words || strstr(argv[i], "pool");
		for (int k = 0; is_kept && k < (n_words ? n_words : 1) && i + k + 1 < argc; k++)
			arguments[n++] = argv[i + k];
	}
	struct buf text = BUF(OUTPUT_MAX);
	capture("get", n, arguments, &text);
	const char *lines = buf_str(&text), *end_of_head = strchr(lines, '\n');
	offer_lines(c, namespaces && end_of_head ? end_of_head + 1 : lines, namespaces ? NULL : "/");
	buf_done(&text);
}

// Offers the contexts of the kubeconfig that the command line names.
static void offer_contexts(struct completion *c, int argc, char **argv)
{
	static const char flag[] = "--kubeconfig";
	struct k8s_config_options options = {0};
	struct buf text = BUF(OUTPUT_MAX);
	struct err e; // without a kubeconfig there is no context
	for (int i = 1; i + 1 < argc; i++)
		if (strncmp(argv[i], flag, sizeof flag - 1) == 0)
			options.kubeconfig = argv[i][sizeof flag - 1] == '=' ? argv[i] + sizeof flag : argv[i + 1];
	(void)k8s_config_list_contexts(&options, &text, &e);
	for (const char *line = buf_str(&text), *end; (end = strchr(line, '\n')); line = end + 1)
		offer(c, line, (size_t)(end - line), NULL);
	buf_done(&text);
}

// Offers the models, or the discounts, of the shipped prices.
static void offer_prices(struct completion *c, bool discounts)
{
	char cost[] = "gpuscale cost", flag[] = "--print-prices";
	struct buf text = BUF(OUTPUT_MAX);
	capture("cost", 2, (char *[]){cost, flag, NULL}, &text);
	char *end = text.len ? strstr(text.data, "\ndiscounts:") : NULL;
	if (end) {
		*end = '\0';
		offer_lines(c, discounts ? end + 1 : text.data, "- name: ");
	}
	buf_done(&text);
}

// Offers the fields of a policy at `path`; NULL: at its top.
static void offer_fields_of(struct completion *c, char *path)
{
	char explain[] = "gpuscale explain";
	struct buf text = BUF(OUTPUT_MAX);
	capture("explain", path ? 2 : 1, (char *[]){explain, path, NULL}, &text);
	for (const char *line = strstr(buf_str(&text), "\nFIELDS:"); line; line = strchr(line + 1, '\n'))
		if (strncmp(line, "\n  ", 3) == 0 && isalpha((unsigned char)line[3]))
			offer(c, line + 3, strcspn(line + 3, " \n"), NULL);
	buf_done(&text);
}

// Offers the fields below the path in front of the last dot. Without a dot, those of spec too, which need no path.
static void offer_fields(struct completion *c)
{
	char path[256], spec[] = "spec";
	const char *dot = strrchr(c->word, '.');
	if (!dot) {
		offer_fields_of(c, NULL);
		offer_fields_of(c, spec);
		return;
	}
	snprintf(path, sizeof path, "%.*s", (int)(dot - c->word), c->word);
	c->before = c->word;
	c->before_len = (size_t)(dot - c->word) + 1;
	c->word += c->before_len;
	offer_fields_of(c, path);
}

// Returns the flag that `word` names, "--output" or "-o", or NULL.
static const struct flag *find_flag(const struct flag_parser *p, const char *word, size_t len)
{
	bool is_long = len > 2 && strncmp(word, "--", 2) == 0;
	for (size_t i = 0; i < p->n_rows; i++) {
		const struct flag *f = p->rows[i].flag;
		if (is_long ? strlen(f->name) == len - 2 && memcmp(f->name, word + 2, len - 2) == 0
		            : len == 2 && word[0] == '-' && f->letter == word[1])
			return f;
	}
	return NULL;
}

// Offers the words of a list: "a|b|c", or "a, b or c" in front of "(", ";" or ":" in a description. One word is not a
// list.
static void offer_list(struct completion *c, const char *list)
{
	static const char *const separators[] = {"|", ", or ", ", ", " or "};
	enum { N = sizeof separators / sizeof separators[0] };
	struct {
		const char *text;
		size_t len;
	} words[ARGUMENTS_MAX];
	size_t n = 0, k = 0;
	while (k < N && n < ARGUMENTS_MAX) {
		words[n].text = list;
		words[n].len = strcspn(list, "|, (;:=");
		words[n].len += list[words[n].len] == '='; // of "label=NAME", the user writes the name
		list += strcspn(list, "|, (;:");
		for (k = 0, n++; k < N && strncmp(list, separators[k], strlen(separators[k])) != 0; k++)
			;
		list += k < N ? strlen(separators[k]) : 0;
	}
	if (n < 2 || !(*list == '\0' || *list == ';' || *list == ':' || strncmp(list, " (", 2) == 0))
		return;
	for (size_t i = 0; i < n; i++)
		offer(c, words[i].text, words[i].len, NULL);
}

static bool is_upper(const char *text)
{
	for (; *text; text++)
		if (islower((unsigned char)*text) || isdigit((unsigned char)*text))
			return false;
	return true;
}

static void offer_values(struct completion *c, const struct flag *f, int argc, char **argv)
{
	if (strchr(f->arg, '|') && !is_upper(f->arg))
		offer_list(c, f->arg);
	else if (strcmp(f->name, "namespace") == 0)
		offer_names(c, argc, argv, true);
	else if (strcmp(f->name, "context") == 0)
		offer_contexts(c, argc, argv);
	else if (strcmp(f->name, "gpu-model") == 0 || strcmp(f->name, "discount") == 0)
		offer_prices(c, f->name[0] == 'd');
	else if (strstr(f->arg, "FILE") || strstr(f->arg, "DIR"))
		c->with_files = true;
	else
		offer_list(c, f->help);
}

// Offers the kinds of objects. A command that also takes names lists objects; the others describe kinds.
static void offer_kinds(struct completion *c, bool lists_objects)
{
	for (int k = 0; k < OBJECT_KIND__COUNT; k++) {
		const char *plural = object_kind_info((enum object_kind)k)->plural;
		if (!lists_objects && k >= OBJECT_REMEDIATION)
			continue;
		offer(c, plural, strlen(plural), NULL);
		if (strncmp(plural, "gpu", 3) == 0)
			offer(c, plural + 3, strlen(plural + 3), NULL);
	}
}

// Offers what the description of the arguments names: "[pools] [NAME..]". Words are for the first argument only.
static void offer_positional(struct completion *c, const char *args_doc, int argc, char **argv, bool is_first)
{
	static const char between[] = " []\n";
	char token[64];
	for (const char *p = args_doc ? args_doc : ""; *p; p += strcspn(p, between)) {
		p += strspn(p, between);
		snprintf(token, sizeof token, "%.*s", (int)strcspn(p, between), p);
		if (!token[0])
			break;
		if (!is_upper(token) && is_first && strchr(token, '|'))
			offer_list(c, token);
		else if (!is_upper(token) && is_first)
			offer(c, token, strlen(token), NULL);
		else if (strcmp(token, "KIND") == 0 && is_first)
			offer_kinds(c, strstr(args_doc, "NAME"));
		else if (strncmp(token, "NAME", 4) == 0)
			offer_names(c, argc, argv, false);
		else if (strcmp(token, "FIELD") == 0)
			offer_fields(c);
		else
			c->with_files |= strstr(token, "FILE") || strstr(token, "DIR") || strstr(token, "RECORDING");
	}
}

// Prints the candidates for the last argument of a command whose arguments `parser` parses, and exits.
static _Noreturn void complete_arguments(const struct flag_parser *parser, int argc, char **argv)
{
	const char *word = argv[argc - 1], *flag = argc > 2 ? argv[argc - 2] : "";
	struct completion c = {.word = word, .before = word, .out = BUF(OUTPUT_MAX)};
	const struct flag *f = find_flag(parser, flag, strlen(flag));
	size_t name_len = strcspn(word, "=");
	bool is_first = true;
	for (int i = 1; i + 1 < argc; i++) {
		const struct flag *before = find_flag(parser, argv[i], strlen(argv[i]));
		is_first = is_first && argv[i][0] == '-';
		i += before && before->arg && !(before->group & FLAG_OPTIONAL);
	}
	if (f && f->arg) {
		offer_values(&c, f, argc, argv);
	} else if (word[0] == '-' && word[1] == '-' && word[name_len] && (f = find_flag(parser, word, name_len))) {
		c.before_len = name_len + 1;
		c.word += c.before_len;
		offer_values(&c, f, argc, argv);
	} else if (word[0] == '-') {
		for (size_t i = 0; i < parser->n_rows; i++) {
			char name[64];
			int n = snprintf(name, sizeof name, "--%s", parser->rows[i].flag->name);
			offer(&c, name, (size_t)n, parser->rows[i].flag->help);
		}
		offer(&c, "--help", 6, "describe the command");
	} else {
		offer_positional(&c, parser->sets[0].set->args, argc, argv, is_first);
	}
	exit(finish(&c));
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
	f.parser = &p;
	for (f.n = 0; f.n < p.n_rows; f.n++)
		f.names[f.n] = p.rows[f.n].flag->name;
	f.names[f.n++] = "help";
	f.names[f.n++] = "usage";
	char **words = with_environment(&argc, argv, &f, command->is_service);
	check_flags(&f, argc, words);
	flag_parser_run(&p, argc, words);
	free(words);
}

int complete_words(int n, char **words)
{
	char mark[] = COMPLETE_COMMAND, empty[] = "", *argv[ARGUMENTS_MAX + 2] = {mark};
	int argc = 0;
	size_t n_commands;
	const struct command *commands = command_table(&n_commands);
	for (int i = 0; i < n && argc < ARGUMENTS_MAX; i++) // bash separates "--output=json" into three words
		if (strcmp(words[i], "=") != 0 || i + 1 == n)
			argv[++argc] = strcmp(words[i], "=") == 0 ? empty : words[i];
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (argc < 1 || dup2(nowhere, STDERR_FILENO) < 0)
		return EXIT_USAGE;
	alarm(CLUSTER_WAIT_S);
	const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
	if (command) {
		argv[1] = mark;
		return command->run(argc, argv + 1);
	}
	struct completion c = {.word = argv[argc], .before = "", .out = BUF(OUTPUT_MAX)};
	bool is_help = argc == 2 && strcmp(argv[1], "help") == 0;
	for (size_t i = 0; i < n_commands && (argc == 1 || is_help); i++)
		offer(&c, commands[i].name, strlen(commands[i].name), commands[i].summary);
	for (size_t i = 0; flag_group_name(i) && is_help; i++)
		offer(&c, flag_group_name(i), strlen(flag_group_name(i)), "flags that commands share");
	if (argc == 1)
		offer(&c, "help", 4, "describe a command");
	return finish(&c);
}
