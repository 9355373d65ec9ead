// SPDX-License-Identifier: Apache-2.0
// gpuscale completion bash|zsh|fish: generates a script from the table of commands. The script reads flags from
// `gpuscale COMMAND --help` and names of policies from the cluster on demand, so it never gets outdated.
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/print.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "runtime/options/controller_options.h"

#define SCRIPT_BYTES_MAX (64 * 1024)

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH, SHELL__COUNT };
static const char *const shell_names[] = {"bash", "zsh", "fish", NULL};
_Static_assert(sizeof shell_names / sizeof shell_names[0] == SHELL__COUNT + 1, "one name per shell");

// Both print one word per line, and nothing if the program fails.
#define FLAGS "gpuscale \"$1\" --help 2>/dev/null | sed -nE 's/^ {2,6}(-., )?(--[a-z][a-z-]+).*/\\2/p' | sort -u"
#define NAMES "timeout 2 gpuscale get -o name \"$@\" 2>/dev/null | sed 's|.*/||'"
// The flags on the command line that select the cluster and the namespace.
#define SCOPE_FLAGS "-n | --namespace | --kubeconfig | --context"

// Flags with a file argument.
#define FILE_FLAGS "-f | --filename | --kubeconfig | --policies | --prices | --sources | --junit | --*-file"

static bool takes_names(const struct command *c)
{
	return strstr(c->args, "NAME..") != NULL;
}

// Escapes text for the single quotes of all three shells.
static void put_quoted(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *text);
}

static void put_names(struct buf *out, const struct command *c, size_t n, const char *between, bool all)
{
	bool any = false;
	for (size_t i = 0; i < n; i++)
		if (all || takes_names(&c[i])) {
			buf_printf(out, "%s%s", any ? between : "", c[i].name);
			any = true;
		}
}

static void write_bash(struct buf *out, const struct command *c, size_t n)
{
	buf_puts(out, "# bash completion of gpuscale; in ~/.bashrc: source <(gpuscale completion bash)\n"
	              "__gpuscale_flags() { " FLAGS "; }\n"
	              "__gpuscale_names() { " NAMES "; }\n"
	              "_gpuscale() {\n"
	              "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
	              "command=${COMP_WORDS[1]} words=\n"
	              "\tlocal -a scope=()\n"
	              "\tlocal i\n"
	              "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	              "\t\tcase ${COMP_WORDS[i]} in " SCOPE_FLAGS
	              ") scope+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + 1]}\") ;; pools) scope+=(pools) ;; esac\n"
	              "\tdone\n"
	              "\tCOMPREPLY=()\n"
	              "\tif [ \"$word\" = = ]; then word=; elif [ \"$before\" = = ]; then "
	              "before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	              "\tcase $before in " FILE_FLAGS ") return ;; esac # files complete by `-o default`\n"
	              "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
	              "\t\twords='");
	put_names(out, c, n, " ", true);
	buf_puts(out, " help'\n"
	              "\telif [ \"$command\" = help ]; then\n"
	              "\t\twords='");
	put_names(out, c, n, " ", true);
	buf_puts(out, "'\n"
	              "\telif [ \"$command\" = completion ]; then\n"
	              "\t\twords='");
	for (int i = 0; i < SHELL__COUNT; i++)
		buf_printf(out, "%s%s", i ? " " : "", shell_names[i]);
	buf_puts(out, "'\n"
	              "\telif [ \"$before\" = -o ] || [ \"$before\" = --output ]; then\n"
	              "\t\twords='table wide json yaml name'\n"
	              "\telse\n"
	              "\t\tcase $word in\n"
	              "\t\t-*) words=$(__gpuscale_flags \"$command\") ;;\n"
	              "\t\t*) case $command in ");
	put_names(out, c, n, " | ", false);
	buf_puts(out, ") words=$(__gpuscale_names \"${scope[@]}\") ;; esac\n"
	              "\t\t\t[ \"$command$COMP_CWORD\" != get2 ] || words+=' pools' ;;\n"
	              "\t\tesac\n"
	              "\tfi\n"
	              "\tlocal IFS=$' \\t\\n'\n"
	              "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
	              "}\n"
	              "complete -o default -F _gpuscale gpuscale kubectl-gpuscale\n");
}

static void write_zsh(struct buf *out, const struct command *c, size_t n)
{
	buf_puts(out, "#compdef gpuscale kubectl-gpuscale\n"
	              "# zsh completion of gpuscale; into a folder of $fpath as _gpuscale, or: source <(gpuscale "
	              "completion zsh)\n"
	              "__gpuscale_flags() { " FLAGS "; }\n"
	              "__gpuscale_names() { " NAMES "; }\n"
	              "_gpuscale() {\n"
	              "\tlocal -a commands scope\n"
	              "\tlocal i\n"
	              "\tfor ((i = 3; i < CURRENT; i++)); do\n"
	              "\t\tcase $words[i] in (" SCOPE_FLAGS
	              ") scope+=($words[i] $words[i+1]) ;; (pools) scope+=(pools) ;; esac\n"
	              "\tdone\n"
	              "\tcommands=(\n");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "\t\t'%s:", c[i].name);
		for (const char *s = c[i].summary; *s; s++) {
			char one[2] = {*s, '\0'};
			if (*s == ':')
				buf_puts(out, "\\:");
			else
				put_quoted(out, one);
		}
		buf_puts(out, "'\n");
	}
	buf_puts(out, "\t)\n"
	              "\tif ((CURRENT == 2)); then\n"
	              "\t\t_describe command commands\n"
	              "\t\treturn\n"
	              "\tfi\n"
	              "\tcase $words[CURRENT] in\n"
	              "\t-*) compadd -- ${(f)\"$(__gpuscale_flags $words[2])\"} ;;\n"
	              "\t*) case $words[2] in\n"
	              "\t\t(");
	put_names(out, c, n, "|", false);
	buf_puts(out, ") compadd -- ${(f)\"$(__gpuscale_names $scope)\"}\n"
	              "\t\t\t[[ $words[2]$CURRENT != get3 ]] || compadd -- pools ;;\n"
	              "\t\t(help) _describe command commands ;;\n"
	              "\t\t(*) _files ;;\n"
	              "\t\tesac ;;\n"
	              "\tesac\n"
	              "}\n"
	              "# Loaded from $fpath this file is the function's first call.\n"
	              "if [[ $funcstack[1] = _gpuscale ]]; then\n"
	              "\t_gpuscale \"$@\"\n"
	              "else\n"
	              "\tcompdef _gpuscale gpuscale kubectl-gpuscale\n"
	              "fi\n");
}

static void write_fish(struct buf *out, const struct command *c, size_t n)
{
	buf_puts(out, "# fish completion of gpuscale; gpuscale completion fish > "
	              "~/.config/fish/completions/gpuscale.fish\n"
	              "function __gpuscale_flags\n"
	              "\tset -l words (commandline -opc)\n"
	              "\tgpuscale $words[2] --help 2>/dev/null | string match -r -- '^ {2,6}(?:-., )?--[a-z][a-z-]+' | "
	              "string match -r -- '--.*' | sort -u\n"
	              "end\n"
	              "function __gpuscale_names\n"
	              "\tset -l words (commandline -opc)\n"
	              "\tset -l scope\n"
	              "\tfor i in (seq 3 (count $words))\n"
	              "\t\tif contains -- $words[$i] -n --namespace --kubeconfig --context\n"
	              "\t\t\tset -a scope $words[$i] $words[(math $i + 1)]\n"
	              "\t\telse if test $words[$i] = pools\n"
	              "\t\t\tset -a scope pools\n"
	              "\t\tend\n"
	              "\tend\n"
	              "\ttest \"$words[2]\" = get; and test (count $words) = 2; and echo pools\n"
	              "\ttimeout 2 gpuscale get -o name $scope 2>/dev/null | string replace -r '.*/' ''\n"
	              "end\n");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "complete -c gpuscale -f -n __fish_use_subcommand -a %s -d '", c[i].name);
		put_quoted(out, c[i].summary);
		buf_puts(out, "'\n");
	}
	buf_puts(out,
	         "complete -c gpuscale -n 'not __fish_use_subcommand; and string match -q -- \"-*\" (commandline -ct)' "
	         "-a '(__gpuscale_flags)'\n"
	         "complete -c gpuscale -f -n '__fish_seen_subcommand_from ");
	put_names(out, c, n, " ", false);
	buf_puts(out, "' -a '(__gpuscale_names)'\n");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	int *shell = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		if (*shell >= 0)
			print_usage(state, "one shell at a time");
		*shell = option_choice("shell", arg, shell_names, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		print_usage(state, "name the shell: bash, zsh or fish");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_completion(int argc, char **argv)
{
	static const struct argp_option options[] = {{0}};
	const struct argp argp = {options,
	                          parse,
	                          "bash|zsh|fish",
	                          "Print a completion script for a shell: commands, their flags, and the names of the "
	                          "policies of the cluster.\vExample: source <(gpuscale completion bash)",
	                          NULL,
	                          NULL,
	                          NULL};
	static void (*const writers[SHELL__COUNT])(struct buf *, const struct command *, size_t) = {
	        [SHELL_BASH] = write_bash, [SHELL_ZSH] = write_zsh, [SHELL_FISH] = write_fish};
	int shell = -1;
	args_parse(&argp, argc, argv, &shell);
	size_t n;
	const struct command *table = command_table(&n);
	struct buf out;
	buf_init(&out, SCRIPT_BYTES_MAX);
	writers[shell](&out, table, n);
	int code = print_out(&out) < 0 ? EXIT_FAILED : EXIT_OK;
	buf_done(&out);
	return code;
}
