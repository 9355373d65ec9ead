// SPDX-License-Identifier: Apache-2.0
// The first process of a pod: waits for a signal to end, and reaps what its pod leaves behind.
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int signal_number)
{
	(void)signal_number;
	_exit(0);
}

static void on_child(int signal_number)
{
	(void)signal_number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	struct sigaction end = {.sa_handler = on_end}, child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
	if (sigaction(SIGINT, &end, NULL) || sigaction(SIGTERM, &end, NULL) || sigaction(SIGCHLD, &child, NULL))
		return 1;
	for (;;)
		pause();
}
