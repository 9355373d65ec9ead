// SPDX-License-Identifier: Apache-2.0
// gpuscale completion bash|zsh|fish: prints a script that takes all candidates from `gpuscale __complete`.
#include "cli/term/cli.h"

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH, SHELL__COUNT };
static const char *const shell_names[] = {"bash", "zsh", "fish", NULL};
_Static_assert(sizeof shell_names / sizeof shell_names[0] == SHELL__COUNT + 1, "one name per shell");

static const char *const scripts[SHELL__COUNT] = {
        [SHELL_BASH] = "# bash completion of gpuscale; in ~/.bashrc: source <(gpuscale completion bash)\n"
                       "_gpuscale() {\n"
                       "\tlocal -a lines\n"
                       "\tmapfile -t lines < <(gpuscale __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
                       "\tCOMPREPLY=(\"${lines[@]%%$'\\t'*}\")\n"
                       "\t[ ${#lines[@]} = 0 ] || unset 'COMPREPLY[-1]'\n"
                       "\tcase ${lines[*]} in *:4) compopt +o default 2>/dev/null ;; esac\n"
                       "}\n"
                       "complete -o default -F _gpuscale gpuscale kubectl-gpuscale\n",
        [SHELL_ZSH] = "#compdef gpuscale kubectl-gpuscale\n"
                      "# zsh completion of gpuscale; into a folder of $fpath as _gpuscale, or: source <(gpuscale "
                      "completion zsh)\n"
                      "_gpuscale() {\n"
                      "\tlocal -a lines values\n"
                      "\tlines=(\"${(@f)$(gpuscale __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
                      "\tvalues=(\"${(@)lines[1,-2]//:/\\\\:}\")\n"
                      "\tvalues=(\"${(@)values/$'\\t'/:}\")\n"
                      "\t[[ ${#lines} -lt 2 ]] || _describe value values\n"
                      "\t[[ $lines[-1] = :4 ]] || _files\n"
                      "}\n"
                      "# Loaded from $fpath this file is the function's first call.\n"
                      "if [[ $funcstack[1] = _gpuscale ]]; then\n"
                      "\t_gpuscale \"$@\"\n"
                      "else\n"
                      "\tcompdef _gpuscale gpuscale kubectl-gpuscale\n"
                      "fi\n",
        [SHELL_FISH] = "# fish completion of gpuscale; gpuscale completion fish > "
                       "~/.config/fish/completions/gpuscale.fish\n"
                       "function __gpuscale_complete\n"
                       "\tset -l words (commandline -opc) (commandline -ct)\n"
                       "\tset -l lines (gpuscale __complete $words[2..-1] 2>/dev/null)\n"
                       "\tstring match -v -r '^:[0-9]$' -- $lines\n"
                       "\ttest \"$lines[-1]\" = :4; or __fish_complete_path (commandline -ct)\n"
                       "end\n"
                       "complete -c gpuscale -f -a '(__gpuscale_complete)'\n"
                       "complete -c kubectl-gpuscale -f -a '(__gpuscale_complete)'\n",
};

static void set_shell(void *to, char *arg, struct argp_state *state)
{
	int *shell = to;
	if (*shell >= 0)
		print_usage(state, "one shell at a time");
	*shell = option_choice("shell", arg, shell_names, state);
}

static const struct flag_set command = {
        .args = "bash|zsh|fish",
        .about = "Print a completion script for a shell: commands, their flags and values, and the names of "
                 "the policies of the cluster.\vExample: source <(gpuscale completion bash)",
        .missing = "name the shell: bash, zsh or fish",
        .flags = (const struct flag[]){{FLAG_ROW(CALL, 0, 0, NULL, NULL, 0, NULL), .take = set_shell}, FLAG_END}};

int cmd_completion(int argc, char **argv)
{
	int shell = -1;
	args_parse(&command, argc, argv, &shell);
	return print_outn(scripts[shell], strlen(scripts[shell])) < 0 ? EXIT_FAILED : EXIT_OK;
}
