// SPDX-License-Identifier: Apache-2.0
// The last decisions that said something new, rendered once, for /debug/decisions. A ring: bounded in number and bytes.
#ifndef GPUSCALE_CONTROLLER_HISTORY_H
#define GPUSCALE_CONTROLLER_HISTORY_H

struct decided;
struct history;
struct json_writer;

#define HISTORY_MAX       256
#define HISTORY_BYTES_MAX (64 * 1024) // of one rendered decision

struct history *history_new(void); // NULL when memory ends
void history_free(struct history *h);
void history_add(struct history *h, const struct decided *d);
// Writes the entries as JSON values, oldest first, into an open array. policy: "namespace/name" to keep only that one;
// NULL = all.
void history_write(const struct history *h, struct json_writer *w, const char *policy);

#endif
