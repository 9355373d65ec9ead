// SPDX-License-Identifier: Apache-2.0
// Entry point: finds the command in the table and runs it.
#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "cli/term/cli.h"

// ---- standard streams ----

// The other end of a pipe or socket is closed: `gpuscale explain --page | head`.
static int reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

// Runs last on every exit, also when argp exits after --help.
static void at_exit(void)
{
	int failed_before = ferror(stdout);
	errno = 0;
	if (fflush(stdout) == 0 && !failed_before)
		return;
	int why = errno;
	if (why != EPIPE && !reader_is_gone())
		print_error("gpuscale: standard output: %s\n", why ? strerror(why) : "the output is incomplete");
	_exit(EXIT_FAILED);
}

// Call it first. Opens a standard descriptor that is closed; otherwise the first connection would get its number, and
// output would go to a server. From then on, an exit with status 0 becomes 1 if output could not be written
// completely (disk full, closed), with a message on standard error, or without one if the reader of a pipe has
// exited.
static void streams_guard(void)
{
	// Opened in the opposite mode, so that using them is an error.
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(EXIT_FAILED);
	atexit(at_exit);
}

// ---- commands ----

#define HELP_BYTES_MAX (64 * 1024)

static void put_help(struct buf *out)
{
	size_t n;
	const struct command *c = command_table(&n);
	int width = 0;
	for (size_t i = 0; i < n; i++)
		width = (int)strlen(c[i].name) > width ? (int)strlen(c[i].name) : width;
	buf_puts(out, "Scales Kubernetes workloads on GPU metrics from Prometheus, and explains why.\n\n"
	              "usage: gpuscale COMMAND [ARGS]\n\ncommands:\n");
	for (size_t i = 0; i < n; i++)
		print_to(out, "  %-*s  %s\n", width, c[i].name, c[i].summary);
	buf_puts(out, "\nGroups of flags that commands share:");
	for (size_t i = 0; flag_group_name(i); i++)
		print_to(out, "%s %s", i ? "," : "", flag_group_name(i));
	buf_puts(out, "\n\n`gpuscale help COMMAND|GROUP` describes a command or a group of flags.\n"
	              "Every command takes --color=auto|always|never.\n"
	              "Exit codes: 0 done, 1 failed, 2 usage, 3 changes or findings.\n");
}

static int help(bool is_wanted)
{
	struct buf out = BUF(HELP_BYTES_MAX);
	put_help(&out);
	if (is_wanted)
		print_out(&out);
	else
		print_notes(&out);
	buf_done(&out);
	return is_wanted ? EXIT_OK : EXIT_USAGE;
}

// The memory of this process holds tokens and keys: disable core dumps, and access by other processes of the user.
static void protect_secrets(void)
{
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ // its leak check attaches to the process
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

static int unknown_command(const char *word)
{
	const char *names[64];
	size_t n;
	const struct command *c = command_table(&n);
	assert(n < sizeof names / sizeof names[0]);
	for (size_t i = 0; i < n; i++)
		names[i] = c[i].name;
	names[n++] = "help";
	for (size_t i = 0; flag_group_name(i); i++)
		names[n++] = flag_group_name(i);
	const char *close = num_closest_name(word, names, n);
	if (word[0] == '-') {
		print_error("gpuscale: \"%s\" where a command is expected: flags follow the command\n", word);
		print_error("Run 'gpuscale help' for the list.\n");
		return EXIT_USAGE;
	}
	print_error("gpuscale: unknown command \"%s\"", word);
	if (close)
		print_error("; did you mean \"%s\"?", close);
	print_error("\nRun 'gpuscale help' for the list.\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	streams_guard();
	protect_secrets();
	if (argc < 2)
		return help(false);
	const char *word = argv[1];
	if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		const char *word_after = argc > 2 && strcmp(argv[2], "help") != 0 ? argv[2] : NULL;
		const struct command *about = word_after ? command_find(word_after) : NULL;
		if (word_after && flag_group_help(word_after))
			return EXIT_OK;
		if (word_after && !about)
			return unknown_command(word_after);
		if (!about)
			return help(true);
		char name[64], flag[] = "--help";
		snprintf(name, sizeof name, "gpuscale %s", about->name);
		return about->run(2, (char *[]){name, flag, NULL});
	}
	if (strcmp(word, "--version") == 0)
		word = "version";
	if (strcmp(word, COMPLETE_COMMAND) == 0)
		return complete_words(argc - 2, argv + 2);
	const struct command *c = command_find(word);
	if (!c)
		return unknown_command(word);
	char name[64];
	snprintf(name, sizeof name, "gpuscale %s", c->name);
	argv[1] = name;
	return c->run(argc - 1, argv + 1);
}
