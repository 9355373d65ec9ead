// SPDX-License-Identifier: Apache-2.0
// What the scripted NVML answers: a text file, named by FAKE_NVML_SCRIPT and read again for every call, so that a test
// changes what the driver says by replacing it. Lines, later ones win, GPU is a number or *:
//   devices N                 how many GPUs (default 2)
//   set NAME GPU VALUE        a reading, see `defaults` in script.c
//   fail FUNCTION GPU RESULT  the function returns RESULT (GPU * for functions without one); FUNCTION fieldN is the
//                             result of field N of nvmlDeviceGetFieldValues, gpmN that of GPM metric N
//   sleep FUNCTION GPU MS     the function answers later; a changed file ends the wait
//   xid NUMBER GPU CODE       an event, handed out once, in the order of NUMBER (from 1)
//   process PID GPU MIB       a process that computes; two lines for one PID: it draws as well
//   text NAME GPU VALUE       name (of the GPU), driver (GPU *), pci (bus id); _ stands for a blank
//   mig GPU ID PROFILE        a MIG instance; makes MIG mode of that GPU 1
#ifndef GPUSCALE_TEST_FAKE_NVML_SCRIPT_H
#define GPUSCALE_TEST_FAKE_NVML_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/nvml/nvml_api.h"

#define SCRIPT_BYTES_MAX 8192
#define WORDS_MAX        4
#define GPUS_MAX         64
#define MIGS_MAX         8 // of one GPU
#define SLEEP_MAX_MS     60000
#define STEP_MS          10
#define ANY_GPU          (-1)

struct script {
	char text[SCRIPT_BYTES_MAX + 1];
};
struct words {
	const char *at[WORDS_MAX];
	size_t len[WORDS_MAX];
	size_t n;
};

// The words of the next line; NULL at the end.
const char *next_line(const char *p, struct words *w);
bool word_is(const struct words *w, size_t i, const char *text);
int64_t word_number(const struct words *w, size_t i);
// Last line "verb name gpu value" that fits; fallback when none does.
int64_t lookup(const struct script *s, const char *verb, const char *name, int gpu, int64_t fallback);
// A reading: what the script sets, else its default. abort() for a name without one.
int64_t reading(const struct script *s, const char *name, int gpu);
// A text of the script, or its fallback.
void text_of(const struct script *s, const char *name, int gpu, const char *fallback, char *out, size_t size);
// Every function begins here: reads the script, waits and fails as it says.
nvml_return begin(struct script *s, const char *function, int gpu);
void pause_ms(long ms);

// A handle is the address of an element: GPU i, or instance k of GPU i.
nvml_device handle_of(int gpu);
nvml_device mig_handle_of(int gpu, int instance);
int index_of(nvml_device d);    // the GPU, also of an instance
int instance_of(nvml_device d); // -1 for a GPU
// The k-th instance of a GPU in the script. False: there are not so many.
bool mig_at(const struct script *s, int gpu, int k, int64_t *ret_id, const char **ret_profile, size_t *ret_len);

#endif
