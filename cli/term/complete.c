// SPDX-License-Identifier: Apache-2.0
#include "cli/term/complete.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/commands.h"
#include "cli/term/object_kind.h"
#include "k8s/client/k8s_config_load.h"
#include "runtime/options/flag_table.h"

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

// ---- what another command prints ----

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
	struct buf text;
	buf_init(&text, OUTPUT_MAX);
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
	struct buf text;
	struct err e; // without a kubeconfig there is no context
	for (int i = 1; i + 1 < argc; i++)
		if (strncmp(argv[i], flag, sizeof flag - 1) == 0)
			options.kubeconfig = argv[i][sizeof flag - 1] == '=' ? argv[i] + sizeof flag : argv[i + 1];
	buf_init(&text, OUTPUT_MAX);
	(void)k8s_config_list_contexts(&options, &text, &e);
	for (const char *line = buf_str(&text), *end; (end = strchr(line, '\n')); line = end + 1)
		offer(c, line, (size_t)(end - line), NULL);
	buf_done(&text);
}

// Offers the models, or the discounts, of the shipped prices.
static void offer_prices(struct completion *c, bool discounts)
{
	char cost[] = "gpuscale cost", flag[] = "--print-prices";
	struct buf text;
	buf_init(&text, OUTPUT_MAX);
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
	struct buf text;
	buf_init(&text, OUTPUT_MAX);
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

// ---- flags ----

// Returns the flag that `word` names, "--output" or "-o", or NULL.
static const struct flag *find(const struct flag_parser *p, const char *word, size_t len)
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

static void offer_flags(struct completion *c, const struct flag_parser *p)
{
	char name[64];
	for (size_t i = 0; i < p->n_rows; i++) {
		int n = snprintf(name, sizeof name, "--%s", p->rows[i].flag->name);
		offer(c, name, (size_t)n, p->rows[i].flag->help);
	}
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

_Noreturn void complete_arguments(const struct flag_parser *parser, int argc, char **argv)
{
	const char *word = argv[argc - 1], *flag = argc > 2 ? argv[argc - 2] : "";
	struct completion c = {.word = word, .before = word};
	buf_init(&c.out, OUTPUT_MAX);
	const struct flag *f = find(parser, flag, strlen(flag));
	size_t name_len = strcspn(word, "=");
	bool is_first = true;
	for (int i = 1; i + 1 < argc; i++) {
		const struct flag *before = find(parser, argv[i], strlen(argv[i]));
		is_first = is_first && argv[i][0] == '-';
		i += before && before->arg && !(before->group & FLAG_OPTIONAL);
	}
	if (f && f->arg) {
		offer_values(&c, f, argc, argv);
	} else if (word[0] == '-' && word[1] == '-' && word[name_len] && (f = find(parser, word, name_len))) {
		c.before_len = name_len + 1;
		c.word += c.before_len;
		offer_values(&c, f, argc, argv);
	} else if (word[0] == '-') {
		offer_flags(&c, parser);
		offer(&c, "--help", 6, "describe the command");
	} else {
		offer_positional(&c, parser->sets[0].set->args, argc, argv, is_first);
	}
	exit(finish(&c));
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
	struct completion c = {.word = argv[argc], .before = ""};
	bool is_help = argc == 2 && strcmp(argv[1], "help") == 0;
	buf_init(&c.out, OUTPUT_MAX);
	for (size_t i = 0; i < n_commands && (argc == 1 || is_help); i++)
		offer(&c, commands[i].name, strlen(commands[i].name), commands[i].summary);
	for (size_t i = 0; flag_group_name(i) && is_help; i++)
		offer(&c, flag_group_name(i), strlen(flag_group_name(i)), "flags that commands share");
	if (argc == 1)
		offer(&c, "help", 4, "describe a command");
	return finish(&c);
}
