// SPDX-License-Identifier: Apache-2.0
// The numbers of one policy that may be tuned, and policies with other numbers. Which fields vary, how far and on which
// scale is a column of the policy schema. A number belongs to the policy when its document has it, or when it has a
// default in a part that needs no consent: a stage that the policy does not use is never added.
#ifndef GPUSCALE_REPLAY_TUNE_SPACE_H
#define GPUSCALE_REPLAY_TUNE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/schema/schema.h"

struct buf;
struct doc_node;
struct err;
struct policy;

#define TUNE_NUMBERS_MAX 64
#define TUNE_TEXT_BYTES  48

struct tune_number {
	char path[SCHEMA_PATH_BYTES]; // "spec.signals[0].target.value"
	const struct schema_field *field;
	struct doc_node *node; // in the document of the space
	struct doc_node *map;  // innermost map that the document has on the way to the number
	bool is_added;         // the document does not have the number: `node` has its default
	double present;        // in the unit of field->tune
	double min, max;       // range, which contains the present value
	double step;           // 1, or less when tune_space_widen() has widened the range: a step is that part of it
	bool is_log;
};

struct tune_space {
	const struct policy *policy; // not owned
	struct arena arena;          // memory of the document
	struct doc_node *root;
	struct tune_number numbers[TUNE_NUMBERS_MAX];
	size_t n;
};

// Reads the document of `policy` from text[0..len), the YAML file that the policy was loaded from. Returns 0, or -1 and
// *e: ERR_INPUT when the text has no such policy, ERR_UNSUPPORTED when it has no number to vary, ERR_LIMIT,
// ERR_INTERNAL. The caller calls tune_space_done() in both cases.
int tune_space_init(struct tune_space *s, const struct policy *policy, const char *text, size_t len, struct err *e);
void tune_space_done(struct tune_space *s);

// Widens the range of the thresholds of signal `index` (target.value, watermarks) so that it contains low .. high, both
// positive. Half of the candidates stay within the range that the schema states around the present value.
void tune_space_widen(struct tune_space *s, size_t index, double low, double high);

// Draws the numbers of candidate `index`, the same for equal seeds: 0 is the present policy, the next ones are evenly
// spaced, around the present values and over the whole ranges. Of the others, a quarter varies all numbers, a quarter
// half of them, and the rest a threshold and up to two other numbers.
void tune_space_draw(const struct tune_space *s, uint64_t seed, uint64_t index, double ret_values[TUNE_NUMBERS_MAX]);
// The same as `values`, but with all thresholds, or the objective, moved along a line: `share` -1 .. 1 of `reach`.
void tune_space_move(const struct tune_space *s, const double values[], double share, double reach,
                     double ret_values[TUNE_NUMBERS_MAX]);
// The same near `values`. `reach` is how far, 1 at most.
void tune_space_vary(const struct tune_space *s, uint64_t seed, uint64_t index, const double values[], double reach,
                     double ret_values[TUNE_NUMBERS_MAX]);
// Decodes the policy with these numbers into `ret`, in `a`. Returns 0, or -1 when the rules between fields refuse it.
// Changes the document meanwhile, so one thread at a time may call it.
int tune_space_decode(struct tune_space *s, const double values[], struct arena *a, struct policy *ret);
// Writes a value as the document would have it: "0.55", "90s", "1%".
void tune_number_text(const struct tune_number *n, double value, char out[TUNE_TEXT_BYTES]);

// Appends text[0..len), the file from which `space` was read, with those values that differ from the present ones.
// Numbers that the text does not have are added. The result is read again and compared. Returns 0, or -1 and *e:
// ERR_UNSUPPORTED when a number is written in a way that cannot be replaced in its place, ERR_INTERNAL.
int tune_patch_write(const struct tune_space *space, const double values[], const char *text, size_t len,
                     struct buf *out, struct err *e);

#endif
