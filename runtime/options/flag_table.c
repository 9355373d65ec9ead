// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/flag_table.h"

#include <strings.h>

#include "base/base.h"
#include "base/print.h"

#define KEY_NUMBER  0x100 // the key of a flag without a letter: this and its row
#define LABEL_BYTES 48
#define CHOICES_MAX 16

// ---- values ----

int64_t option_duration_ms(const char *flag, const char *text, int64_t min_ms, struct argp_state *state)
{
	int64_t ms = 0;
	struct err e;
	if (num_parse_flag_duration_ms(text, strlen(text), &ms, &e) < 0)
		print_usage(state, "%s: %s", flag, e.msg);
	else if (ms < min_ms) {
		char least[NUM_TEXT_BYTES];
		num_format_duration_ms(least, min_ms);
		print_usage(state, "%s: %s is less than %s", flag, text, least);
	}
	return ms;
}

static int find_choice(const char *flag, const char *text, const char *const *names, unsigned allowed,
                       struct argp_state *state)
{
	char all[256] = "";
	const char *listed[CHOICES_MAX];
	size_t used = 0, n_listed = 0;
	for (int i = 0; names[i]; i++) {
		if (allowed && !(allowed & 1U << i))
			continue;
		if (strcasecmp(names[i], text) == 0)
			return i;
		int n = snprintf(all + used, sizeof all - used, "%s%s", n_listed ? ", " : "", names[i]);
		if (n > 0 && (size_t)n < sizeof all - used)
			used += (size_t)n;
		assert(n_listed < CHOICES_MAX);
		listed[n_listed++] = names[i];
	}
	const char *close = num_closest_name(text, listed, n_listed);
	print_usage(state, "%s: \"%s\" is not one of %s%s%s%s", flag, text, all, close ? "; did you mean " : "",
	            close ? close : "", close ? "?" : "");
	return 0;
}

int option_choice(const char *flag, const char *text, const char *const *names, struct argp_state *state)
{
	return find_choice(flag, text, names, 0, state);
}

int64_t option_i64(const char *flag, const char *text, int64_t min, int64_t max, struct argp_state *state)
{
	int64_t v = min;
	struct err e;
	if (num_parse_i64(text, strlen(text), min, max, &v, &e) < 0)
		print_usage(state, "%s: %s", flag, e.msg);
	return v;
}

static double read_f64(const struct flag *f, const char *label, const char *text, struct argp_state *state)
{
	double v = 0, min = f->real.min, max = f->real.max;
	if (num_parse_f64(text, strlen(text), &v, NULL) < 0 || !(v >= min && v <= max))
		print_usage(state, "%s: expected a number from %g to %g, got \"%s\"", label, min, max, text);
	return v;
}

const char *option_next_item(const char *flag, const char **list, char item[OPTION_ITEM_BYTES],
                             struct argp_state *state)
{
	if (!*list)
		return NULL;
	size_t len = strcspn(*list, ",");
	if (len == 0 || len >= OPTION_ITEM_BYTES)
		print_usage(state, "%s: expected values with commas between them, got \"%s\"", flag, *list);
	memcpy(item, *list, len);
	item[len] = '\0';
	*list = (*list)[len] == ',' ? *list + len + 1 : NULL;
	return item;
}

static void store_list(const struct flag *f, const char *label, char *options, char *arg, struct argp_state *state)
{
	size_t n;
	memcpy(&n, options + f->list.count, sizeof n);
	if (n == f->list.max)
		print_usage(state, "more than %u %s%s", f->list.max, label, f->list.hint);
	memcpy(options + f->offset + n * sizeof arg, &arg, sizeof arg);
	n++;
	memcpy(options + f->list.count, &n, sizeof n);
}

static int64_t read_duration(const struct flag *f, const char *label, const char *arg, struct argp_state *state)
{
	int64_t ms = option_duration_ms(label, arg, f->range.min, state);
	char most[NUM_TEXT_BYTES];
	num_format_duration_ms(most, f->range.max);
	if (f->range.max && ms > f->range.max)
		print_usage(state, "%s: expected at most %s, got \"%s\"", label, most, arg);
	return ms;
}

static void store(const struct flag *f, char *options, char *arg, struct argp_state *state)
{
	char label[LABEL_BYTES];
	void *to = options + f->offset;
	if (f->letter)
		snprintf(label, sizeof label, "-%c", f->letter);
	else
		snprintf(label, sizeof label, "--%s", f->name ? f->name : "");
	switch ((enum flag_type)f->type) {
	case FLAG_TYPE_TEXT:
		if (f->range.max && arg && strlen(arg) > (size_t)f->range.max)
			print_usage(state, "%s takes at most %d bytes", label, (int)f->range.max);
		memcpy(to, &arg, sizeof arg);
		break;
	case FLAG_TYPE_SWITCH:
		*(bool *)to = true;
		break;
	case FLAG_TYPE_I32:
		*(int32_t *)to = (int32_t)option_i64(label, arg, f->range.min, f->range.max, state);
		break;
	case FLAG_TYPE_I64:
		*(int64_t *)to = option_i64(label, arg, f->range.min, f->range.max, state);
		break;
	case FLAG_TYPE_F64:
		*(double *)to = read_f64(f, label, arg, state);
		break;
	case FLAG_TYPE_DURATION:
		*(int64_t *)to = read_duration(f, label, arg, state);
		break;
	case FLAG_TYPE_CHOICE:
		*(int *)to = find_choice(label, arg, f->choice.names, f->choice.allowed, state);
		break;
	case FLAG_TYPE_LIST:
		store_list(f, label, options, arg, state);
		break;
	case FLAG_TYPE_CALL:
		f->take(to, arg, state);
		break;
	case FLAG_TYPE_END:
	case FLAG_TYPE_HEADING:
	case FLAG_TYPE_INCLUDE:
		break;
	}
}

// ---- argp ----

static void take_argument(struct flag_parser *p, char *arg, struct argp_state *state)
{
	const struct flag_set *set = p->sets[0].set;
	const struct flag *f = p->argument;
	if (!f || (f->type == FLAG_TYPE_TEXT && p->n_arguments > 0))
		print_usage(state, "unexpected argument \"%s\"%s", arg, set->surplus ? set->surplus : "");
	else
		store(f, p->sets[0].options, arg, state);
	p->n_arguments++;
}

// argp calls it for every set with ARGP_KEY_INIT, in the order of the sets, and with ARGP_KEY_END; the checks run with
// the last call, when every flag has been stored.
static error_t on_key(int key, char *arg, struct argp_state *state)
{
	struct flag_parser *p = state->input;
	size_t row = 0;
	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; i < p->sets[p->n_started].n_children; i++)
			state->child_inputs[i] = p;
		p->n_started++;
		return 0;
	case ARGP_KEY_ARG:
		take_argument(p, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (p->sets[0].set->missing && p->n_arguments == 0) // argp asks every set
			print_usage(state, "%s", p->sets[0].set->missing);
		return 0;
	case ARGP_KEY_END:
		p->n_ended++;
		for (size_t i = p->n_ended == p->n_sets ? p->n_sets : 0; i-- > 0;)
			if (p->sets[i].set->check)
				p->sets[i].set->check(p->sets[i].options, state);
		return 0;
	default:
		if (key >= KEY_NUMBER)
			row = (size_t)(key - KEY_NUMBER);
		else
			while (row < p->n_rows && p->rows[row].flag->letter != key)
				row++;
		if (row >= p->n_rows)
			return ARGP_ERR_UNKNOWN;
		store(p->rows[row].flag, p->rows[row].options, arg, state);
		return 0;
	}
}

static void add_option(struct flag_parser *p, const struct flag *f, char *options)
{
	int key = 0;
	if (f->type != FLAG_TYPE_HEADING) {
		assert(p->n_rows < FLAG_ROWS_MAX);
		key = f->letter ? f->letter : KEY_NUMBER + (int)p->n_rows;
		p->rows[p->n_rows].flag = f;
		p->rows[p->n_rows++].options = options;
	}
	p->options[p->n_options++] = (struct argp_option){.name = f->name,
	                                                  .key = key,
	                                                  .arg = f->arg,
	                                                  .flags = (f->group & FLAG_HIDDEN ? OPTION_HIDDEN : 0) |
	                                                           (f->group & FLAG_OPTIONAL ? OPTION_ARG_OPTIONAL : 0),
	                                                  .doc = f->help,
	                                                  .group = (int)(f->group & ~(FLAG_HIDDEN | FLAG_OPTIONAL))};
}

static void add_set(struct flag_parser *p, const struct flag_set *set, const struct flag_set *common, char *options)
{
	assert(p->n_sets < FLAG_SETS_MAX);
	size_t index = p->n_sets++, n = common != NULL;
	struct argp *argp = &p->argps[index];
	p->sets[index].set = set;
	p->sets[index].options = options;
	*argp = (struct argp){.options = &p->options[p->n_options], .parser = on_key, .doc = set->about};
	argp->args_doc = set->args && set->args[0] ? set->args : NULL;
	for (const struct flag *f = set->flags; f->type != FLAG_TYPE_END; f++) {
		n += f->type == FLAG_TYPE_INCLUDE;
		if (f->type != FLAG_TYPE_INCLUDE && (f->name || f->letter || f->type == FLAG_TYPE_HEADING))
			add_option(p, f, options);
		else if (f->type != FLAG_TYPE_INCLUDE)
			p->argument = f;
	}
	p->n_options++; // the empty one behind the last
	struct argp_child *child = &p->children[p->n_children];
	argp->children = child;
	p->sets[index].n_children = n;
	p->n_children += n + 1;
	assert(p->n_children <= sizeof p->children / sizeof p->children[0]);
	for (const struct flag *f = set->flags; f->type != FLAG_TYPE_END; f++)
		if (f->type == FLAG_TYPE_INCLUDE) {
			*child++ = (struct argp_child){.argp = &p->argps[p->n_sets], .group = f->group};
			add_set(p, f->set, NULL, options + f->offset);
		}
	if (common) {
		*child = (struct argp_child){.argp = &p->argps[p->n_sets]};
		add_set(p, common, NULL, options);
	}
}

void flag_parser_init(struct flag_parser *p, const struct flag_set *set, const struct flag_set *common, void *options)
{
	*p = (struct flag_parser){0};
	add_set(p, set, common, options);
}

void flag_parser_run(struct flag_parser *p, int argc, char **argv)
{
	argp_parse(&p->argps[0], argc, argv, 0, NULL, p);
}
