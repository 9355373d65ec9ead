// SPDX-License-Identifier: Apache-2.0
// Child processes of the demo: started with their output in a file, stopped by pid, never left behind.
#ifndef GPUSCALE_TEST_DEMO_PROCESS_H
#define GPUSCALE_TEST_DEMO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define PROCESS_MAX      8
#define PROCESS_ARGS_MAX 32
#define PROCESS_STOP_MS  5000 // from SIGTERM to SIGKILL

struct process {
	const char *name;
	pid_t pid;
	char log_path[512];
};

struct process_list {
	struct process items[PROCESS_MAX];
	size_t n;
};

// Starts argv (NULL-terminated; argv[0] found through PATH) with stdout and stderr in log_path. The child gets SIGTERM
// when we die.
int process_start(struct process_list *list, const char *name, const char *log_path, const char *const argv[],
                  struct err *e);
// False, with the end of its log in *e, when one of them has ended.
bool process_all_alive(struct process_list *list, struct err *e);
// SIGTERM to all, last started first, SIGKILL to what is left after PROCESS_STOP_MS; waits for each.
void process_stop_all(struct process_list *list);
// A free loopback port, different from `after` (0: any).
int process_free_port(uint16_t after, uint16_t *ret_port, struct err *e);

#endif
