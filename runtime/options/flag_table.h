// SPDX-License-Identifier: Apache-2.0
// Command lines as tables. A row is a flag: its names, its help, and how its argument is stored in a struct. Rows form
// sets: the flags of a command, or a group that several commands include. One parser, built on argp, serves all sets.
#ifndef GPUSCALE_RUNTIME_OPTIONS_FLAG_TABLE_H
#define GPUSCALE_RUNTIME_OPTIONS_FLAG_TABLE_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAG_ROWS_MAX 96 // of a command and the groups that it includes
#define FLAG_SETS_MAX 12

// How the argument of a flag is stored.
enum flag_type {
	FLAG_TYPE_END, // the row behind the last one
	FLAG_TYPE_HEADING,
	FLAG_TYPE_INCLUDE,  // a set
	FLAG_TYPE_TEXT,     // const char *, NULL where an optional argument is left out
	FLAG_TYPE_SWITCH,   // bool; no argument
	FLAG_TYPE_I32,      // a whole number within a range, of 4 bytes
	FLAG_TYPE_I64,      // likewise of 8 bytes
	FLAG_TYPE_F64,      // a number within a range
	FLAG_TYPE_DURATION, // int64_t, milliseconds
	FLAG_TYPE_CHOICE,   // int or an enum: the index of the argument in a list of names
	FLAG_TYPE_LIST,     // const char *[]: each argument is appended
	FLAG_TYPE_CALL,     // by a function
};

// Bits of struct flag.group beside the number of the group.
#define FLAG_HIDDEN   0x80U // not in the help of the command, only in that of the group
#define FLAG_OPTIONAL 0x40U // the argument may be left out

// Stores `arg` in the member `to`; exits with a usage error (print_usage) when it is invalid. arg is NULL where it is
// optional and left out. It lives as long as the process.
typedef void flag_take_fn(void *to, char *arg, struct argp_state *state);

// A row without a name and a letter takes the arguments that are not flags.
struct flag {
	const char *name, *arg; // "output" and "FORMAT"; arg NULL: a switch
	const char *help;
	char letter;        // 0: none
	unsigned char type; // enum flag_type
	unsigned char group;
	unsigned offset; // of the member in the struct of the set
	union {
		struct {
			int64_t min, max;
		} range; // of numbers, and of durations in ms, where a max of 0 is none; of texts: most bytes, 0: any
		struct {
			double min, max;
		} real;
		struct {
			const char *const *names; // NULL-terminated
			unsigned allowed;         // as a set: 1U << index; 0: all
		} choice;
		struct {
			const char *hint; // behind the error for too many
			unsigned count;   // offset of the size_t that counts the items
			unsigned max;     // items
		} list;
		const struct flag_set *set;
		flag_take_fn *take;
	};
};

struct flag_set {
	const struct flag *flags; // ends with FLAG_TYPE_END
	// Completes the options behind the last flag; exits with a usage error for flags that exclude each other. The
	// checks of included sets run first. NULL: nothing to do.
	void (*check)(void *options, struct argp_state *state);
	// Of commands:
	const char *args, *about; // the synopsis of the arguments, the text of the help; after a \v, its end
	const char *surplus;      // behind: unexpected argument "X"
	const char *missing;      // the usage error without arguments; NULL: none is needed
	bool is_service;          // runs until it is stopped: a variable that names no flag is an error
};

// ---- rows ----
// A file defines FLAGS_OF, the struct of the set, in front of its table. `group` orders the help; 0 for the letter:
// none.

#define FLAG_OFFSET(member, bytes)                                                                                     \
	(unsigned)(offsetof(FLAGS_OF, member) + 0 * sizeof(char[sizeof(((FLAGS_OF *)0)->member) == (bytes) ? 1 : -1]))
#define FLAG_ROW(type_, group_, letter_, name_, arg_, offset_, help_)                                                  \
	.type = FLAG_TYPE_##type_, .group = (group_), .letter = (letter_), .name = (name_), .arg = (arg_),             \
	.offset = (offset_), .help = (help_)

// clang-format off
#define FLAG_HEADING(group, text)      {FLAG_ROW(HEADING, group, 0, NULL, NULL, 0, text)}
// The flags of a set whose options are the member; a cluster other than 0 keeps them together in the help.
#define FLAG_INCLUDE(set_, member, cluster) {FLAG_ROW(INCLUDE, cluster, 0, NULL, NULL, (unsigned)offsetof(FLAGS_OF, member), NULL), .set = (set_)}
#define FLAG_TEXT(group, letter, name, arg, member, help) {FLAG_ROW(TEXT, group, letter, name, arg, FLAG_OFFSET(member, sizeof(char *)), help)}
#define FLAG_TEXT_MAX(group, letter, name, arg, member, max_, help) {FLAG_ROW(TEXT, group, letter, name, arg, FLAG_OFFSET(member, sizeof(char *)), help), .range = {0, max_}}
#define FLAG_SWITCH(group, letter, name, member, help) {FLAG_ROW(SWITCH, group, letter, name, NULL, FLAG_OFFSET(member, sizeof(bool)), help)}
#define FLAG_I32(group, letter, name, arg, member, min_, max_, help) {FLAG_ROW(I32, group, letter, name, arg, FLAG_OFFSET(member, 4), help), .range = {min_, max_}}
#define FLAG_I64(group, letter, name, arg, member, min_, max_, help) {FLAG_ROW(I64, group, letter, name, arg, FLAG_OFFSET(member, 8), help), .range = {min_, max_}}
#define FLAG_F64(group, letter, name, arg, member, min_, max_, help) {FLAG_ROW(F64, group, letter, name, arg, FLAG_OFFSET(member, 8), help), .real = {min_, max_}}
#define FLAG_DURATION(group, letter, name, member, min_, max_, help) {FLAG_ROW(DURATION, group, letter, name, "DURATION", FLAG_OFFSET(member, 8), help), .range = {min_, max_}}
#define FLAG_CHOICE(group, letter, name, arg, member, names_, allowed_, help) {FLAG_ROW(CHOICE, group, letter, name, arg, FLAG_OFFSET(member, 4), help), .choice = {names_, allowed_}}
#define FLAG_LIST(group, letter, name, arg, member, count_, max_, hint_, help) {FLAG_ROW(LIST, group, letter, name, arg, (unsigned)offsetof(FLAGS_OF, member), help), .list = {hint_, FLAG_OFFSET(count_, 8), max_}}
#define FLAG_CALL(group, letter, name, arg, member, take_, help) {FLAG_ROW(CALL, group, letter, name, arg, (unsigned)offsetof(FLAGS_OF, member), help), .take = (take_)}
// The function gets the options of the set as a whole.
#define FLAG_TAKE(group, letter, name, arg, take_, help) {FLAG_ROW(CALL, group, letter, name, arg, 0, help), .take = (take_)}
// The arguments that are not flags: one text, or any number of them by a function.
#define FLAG_ARGUMENT(member)         FLAG_TEXT(0, 0, NULL, NULL, member, NULL)
#define FLAG_ARGUMENTS(member, take)  FLAG_CALL(0, 0, NULL, NULL, member, take, NULL)
#define FLAG_END                      {.type = FLAG_TYPE_END}
// clang-format on

// ---- parsing ----

// The rows of a set and of all that it includes, in this order, and argp's tables for them.
struct flag_parser {
	struct {
		const struct flag *flag;
		char *options; // of its set
	} rows[FLAG_ROWS_MAX];
	size_t n_rows;
	struct {
		const struct flag_set *set;
		char *options;
		size_t n_children;
	} sets[FLAG_SETS_MAX];
	size_t n_sets, n_started, n_ended;
	const struct flag *argument; // the row for arguments that are not flags, or NULL
	size_t n_arguments;
	struct argp argps[FLAG_SETS_MAX];
	struct argp_child children[2 * FLAG_SETS_MAX]; // of every set, with an empty one behind them
	size_t n_children;
	struct argp_option options[FLAG_ROWS_MAX + FLAG_SETS_MAX]; // likewise
	size_t n_options;
};

// Prepares to parse the flags of `set`, and those of `common` (NULL: none), which have no options, into `options`.
// `options` must have its defaults, and outlive the parser.
void flag_parser_init(struct flag_parser *p, const struct flag_set *set, const struct flag_set *common, void *options);
// Parses argv, where argv[0] names the command. Exits on a usage error, with argp_err_exit_status, and for --help.
void flag_parser_run(struct flag_parser *p, int argc, char **argv);

// ---- values, for a flag_take_fn ----

// Parses a duration ("90s") of at least min_ms; otherwise exits with a usage error that names the flag.
int64_t option_duration_ms(const char *flag, const char *text, int64_t min_ms, struct argp_state *state);
// Returns the index of `text` in names (NULL-terminated); otherwise exits with a usage error that lists them.
int option_choice(const char *flag, const char *text, const char *const *names, struct argp_state *state);
// Parses a whole number in [min, max]; otherwise exits with a usage error.
int64_t option_i64(const char *flag, const char *text, int64_t min, int64_t max, struct argp_state *state);
// Copies the next item of a list "a,b,c" and advances *list behind it. Returns the item, NULL at the end; exits with a
// usage error when an item is empty or too long.
#define OPTION_ITEM_BYTES 64
const char *option_next_item(const char *flag, const char **list, char item[OPTION_ITEM_BYTES],
                             struct argp_state *state);

#endif
