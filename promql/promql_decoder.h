// SPDX-License-Identifier: Apache-2.0
// Decodes one reply of the query API as it arrives. Keeps only the result and the token that is split between two
// pieces; exceeding a limit ends the decoding at once. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_DECODER_H
#define GPUSCALE_PROMQL_PROMQL_DECODER_H

#include "promql/promql.h"

struct arena;
struct promql_decoder;
struct err;

struct promql_decoder_options {
	size_t max_series;            // 0: PROMQL_SERIES_MAX
	size_t max_bytes;             // bytes of memory; 0: the limit of the arena
	const char *const *labels;    // the names to keep, NULL-terminated, must outlive the result; NULL: all
	struct promql_budget *budget; // shared with other answers; NULL: none
	int64_t clock_offset_ms;      // subtracted from the times of the reply
};

// Creates a decoder that allocates results in `a`. The arena must be empty and is the decoder's from
// promql_decoder_start until promql_decoder_done. Returns NULL when memory is exhausted.
struct promql_decoder *promql_decoder_new(struct arena *a);
// Frees the decoder, but not the arena. NULL is fine.
void promql_decoder_free(struct promql_decoder *d);
// Starts another reply. Empties the arena.
void promql_decoder_start(struct promql_decoder *d, const struct promql_decoder_options *o);
// Decodes the next bytes of a body: {"status":"success"|"error","data":...}. Returns 0, or -1 and *e: for an error
// body, the kind of its errorType (bad_data and execution: ERR_REJECTED, timeout: ERR_TIMEOUT, internal and
// unavailable: ERR_SERVER, unknown ones: ERR_REJECTED) with the server's text, which includes the position in the
// query; ERR_PROTOCOL with the place ("data.result[3].value[1]") for a body that is not from the API; ERR_LIMIT for a
// limit on one series and ERR_TOO_LARGE for a limit on the answer, both with both numbers; ERR_UNSUPPORTED for a
// native histogram; ERR_INPUT, naming the series, for a duplicate series or label. After an error, only start and free
// are permitted.
int promql_decoder_feed(struct promql_decoder *d, const char *data, size_t len, struct err *e);
// Completes the body and writes the result, which is allocated in the arena. Removes the answer from the budget, so
// that it cannot be evicted while it is read. Returns as promql_decoder_feed.
int promql_decoder_finish(struct promql_decoder *d, struct promql_result *ret_result, struct err *e);

// ---- text of a server: for one-line messages, as errors and times ----

#define PROMQL_TEXT_BYTES 320 // the longest part of a server's text in a message, with its terminator
#define PROMQL_NAME_BYTES 84  // the same for a name or a value

// Copies text[0..len) without the spaces around it to out[0..cap), as text_show does. Returns out.
const char *promql_text_show(char *out, size_t cap, const char *text, size_t len);
// The same for the first line that is not blank.
const char *promql_text_first_line(char *out, size_t cap, const char *text, size_t len);

// Fills *e with the error that the query API reports in the body of a reply, and returns -1. `type` is its errorType,
// which decides the kind (promql_decoder_feed lists them), `text` its error, the server's words, which go into the
// message cut and on one line. Both may be "", when the reply has no such member.
int promql_api_error_set(struct err *e, const char *type, const char *text);

// Reads the JSON number text[0..len), in seconds since the epoch, and sets *ret_ms to it, rounded to milliseconds. -1
// when it is not a number, or so large that a double does not represent its milliseconds; *ret_ms is then untouched.
int promql_time_parse(const char *text, size_t len, int64_t *ret_ms);

// ---- the answer under construction: series with their labels and samples, and warnings ----

// It keeps limits on their number and on memory, and does not depend on the format of the reply: the decoder
// (promql_decode.c) reads the reply and adds what it finds.
//
// Functions that take `e` return 0, or -1 and *e. Two kinds of *e concern the reply and leave the answer as it was:
// ERR_INPUT (a label or a series exists twice) and ERR_PROTOCOL (samples out of order). Every other kind is an exceeded
// limit or exhausted memory: then only promql_answer_start and promql_answer_done may follow. Messages name a series
// by its place in the reply, as in "data.result[3]".

// The series that is being read.
struct current_series {
	uint64_t hash; // hash of its labels, in any order
	struct promql_label labels[PROMQL_LABELS_MAX];
	size_t n_labels, n_kept;
	uint64_t label_hash, name_hashes[PROMQL_LABELS_MAX];
	const char *kept_name; // NULL: this label is not kept
	size_t n_samples;      // appended, in the answer's scratch
	struct promql_sample sample;
};

// Only the decoder reads it: n_series is the number of completed series, the index of the one that is being read.
struct promql_answer {
	// Memory of the result, not owned. Only the answer may use it: an answer that is evicted from its budget
	// releases the blocks.
	struct arena *arena;
	struct promql_decoder_options options;
	// The share in the memory of all answers that are being decoded. When an answer needs more than is free, the
	// largest answer is aborted, so that small answers complete however many large ones are in flight.
	struct promql_budget *budget; // NULL: in no budget
	LIST_ENTRY(promql_answer) link;
	size_t bytes;      // counted
	size_t lost_bytes; // the bytes it used when it was evicted; else 0
	const char *warnings[PROMQL_WARNINGS_MAX];
	size_t n_warnings;
	struct current_series current;
	// Scratch: counted, and given back when it is large.
	struct promql_series *series;
	size_t n_series, cap_series;
	struct promql_sample *samples; // samples of the current series
	size_t cap_samples, n_samples; // n: of all series
	uint64_t *hashes;              // hashes of the series; open addressing, 0 = free
	size_t cap_hashes;
};

// Frees the answer and leaves its budget. The arena, and with it the result, stays.
void promql_answer_done(struct promql_answer *a);
// Starts an empty answer: leaves the budget of the previous one and resets the arena, so that an earlier result becomes
// invalid. Copies *o, but not the names in o->labels. Labels that are not kept still distinguish series.
void promql_answer_start(struct promql_answer *a, const struct promql_decoder_options *o);
// Leaves the budget: from now on the answer cannot be evicted, and its memory no longer counts for other answers.
void promql_answer_detach(struct promql_answer *a);
// -1 and *e (ERR_TOO_LARGE) when the answer has been evicted. To be called before more of the reply is added: another
// answer may have evicted this one since.
int promql_answer_check(const struct promql_answer *a, struct err *e);

// Returns `bytes` zeroed bytes that live as long as the result, aligned for any type; NULL and *e when they do not fit.
void *promql_answer_alloc(struct promql_answer *a, size_t bytes, struct err *e);
// Returns a NUL-terminated copy of text[0..len) that lives as long as the result; NULL and *e when it does not fit.
const char *promql_answer_copy_text(struct promql_answer *a, const char *text, size_t len, struct err *e);

// Starts the next series, without labels and samples. A series that was not ended is dropped. -1 and *e (ERR_TOO_LARGE,
// whose code is max_series) when the answer is full.
int promql_answer_begin_series(struct promql_answer *a, struct err *e);
// Adds a label to the series: its name text[0..len), then its value, in any order of the labels. ERR_INPUT for a name
// that the series already has, ERR_LIMIT for more than PROMQL_LABELS_MAX labels.
int promql_answer_add_label_name(struct promql_answer *a, const char *text, size_t len, struct err *e);
int promql_answer_add_label_value(struct promql_answer *a, const char *text, size_t len, struct err *e);
// Sets the one sample that the series has in an instant vector. ERR_TOO_LARGE for more than PROMQL_SAMPLES_MAX samples
// in the answer.
int promql_answer_set_sample(struct promql_answer *a, const struct promql_sample *sample, struct err *e);
// Appends a sample that the series has in a matrix. ERR_PROTOCOL when it is older than the one before, ERR_TOO_LARGE as
// promql_answer_set_sample.
int promql_answer_append_sample(struct promql_answer *a, const struct promql_sample *sample, struct err *e);
// Completes the series and adds it to the answer: as one of a PROMQL_VECTOR with the sample that was set, as one of a
// PROMQL_MATRIX with the samples that were appended. ERR_INPUT when the answer has a series with the same labels.
int promql_answer_end_series(struct promql_answer *a, enum promql_type type, struct err *e);
// Writes the kept labels of the series that was started last to `out`, cut, on one line: "{__name__="up", job="node"}".
// Returns out.
const char *promql_answer_series_name(const struct promql_answer *a, char out[static PROMQL_TEXT_BYTES]);

// Adds a warning of the server, cut and on one line. Those after the first PROMQL_WARNINGS_MAX are dropped.
int promql_answer_add_warning(struct promql_answer *a, const char *text, size_t len, struct err *e);

// Sets ret->series and ret->n_series to the completed series, in the order of the reply.
int promql_answer_list_series(struct promql_answer *a, struct promql_result *ret, struct err *e);
// Sets ret->warnings and ret->n_warnings. `is_partial`: the server marked the reply as partial, which is a warning too.
int promql_answer_list_warnings(struct promql_answer *a, bool is_partial, struct promql_result *ret, struct err *e);

#endif
