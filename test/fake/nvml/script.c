// SPDX-License-Identifier: Apache-2.0
#include "test/fake/nvml/script.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	int64_t value;
} defaults[] = {
        {"util_gpu", 42},
        {"util_mem", 21},
        {"enc", 3},
        {"dec", 4},
        {"mem_total_mib", 1000},
        {"mem_used_mib", 300},
        {"mem_reserved_mib", 50},
        {"power_mw", 123456},
        {"limit_mw", 700000},
        {"energy_mj", 987654321},
        {"temp", 55},
        {"mem_temp", 60},
        {"sm_clock", 1980},
        {"mem_clock", 3201},
        {"reasons", 4},
        {"video_clock", 1545},
        {"max_sm_clock", 1985},
        {"max_mem_clock", 3202},
        {"slowdown", 87},
        {"shutdown", 92},
        {"limit_default_mw", 650000},
        {"limit_enforced_mw", 600000},
        {"limit_min_mw", 200000},
        {"limit_max_mw", 700000},
        {"pstate", 2},
        {"fan", 33},
        {"link_gen", 4},
        {"link_width", 8},
        {"max_link_gen", 5},
        {"max_link_width", 16},
        {"bar1_total_mib", 131072},
        {"bar1_used_mib", 3},
        {"rows_correctable", 12},
        {"rows_uncorrectable", 13},
        {"rows_pending", 1},
        {"rows_failed", 0},
        {"virtualization", 0},
        {"licensed", 0},
        {"gpm_supported", 1},
        {"replay", 1},
        {"sbe_vol", 5},
        {"dbe_vol", 6},
        {"sbe_agg", 7},
        {"dbe_agg", 8},
        // Fields of nvmlDeviceGetFieldValues: "field" and the id.
        {"field29", 14},
        {"field30", 15},
        {"field31", 1},
        {"field38", 21},
        {"field45", 22},
        {"field52", 23},
        {"field59", 24},
        {"field74", 1000000074},
        {"field75", 1000000075},
        {"field76", 1000000076},
        {"field77", 1000000077},
        {"field78", 1000000078},
        {"field79", 1000000079},
        {"field80", 1000000080},
        {"field81", 1000000081},
        {"field138", 5000000},
        {"field139", 7000000},
        {"field186", 123000},
        {"field230", 0},
};

static void script_read(struct script *s)
{
	s->text[0] = '\0';
	const char *path = getenv("FAKE_NVML_SCRIPT");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	size_t len = 0;
	ssize_t n;
	while (len < SCRIPT_BYTES_MAX && (n = read(fd, s->text + len, SCRIPT_BYTES_MAX - len)) > 0)
		len += (size_t)n;
	s->text[len] = '\0';
	close(fd);
}

const char *next_line(const char *p, struct words *w)
{
	if (!*p)
		return NULL;
	w->n = 0;
	while (*p && *p != '\n') {
		if (isspace((unsigned char)*p)) {
			p++;
			continue;
		}
		size_t len = strcspn(p, " \t\n");
		if (w->n < WORDS_MAX) {
			w->at[w->n] = p;
			w->len[w->n++] = len;
		}
		p += len;
	}
	return *p ? p + 1 : p;
}

bool word_is(const struct words *w, size_t i, const char *text)
{
	return i < w->n && w->len[i] == strlen(text) && memcmp(w->at[i], text, w->len[i]) == 0;
}

int64_t word_number(const struct words *w, size_t i)
{
	uint64_t v = 0; // up to all bits set, which drivers say, too
	for (size_t k = 0; i < w->n && k < w->len[i] && isdigit((unsigned char)w->at[i][k]); k++)
		v = v * 10 + (uint64_t)(w->at[i][k] - '0');
	return (int64_t)v;
}

int64_t lookup(const struct script *s, const char *verb, const char *name, int gpu, int64_t fallback)
{
	struct words w;
	for (const char *p = s->text; (p = next_line(p, &w));) {
		if (w.n < 4 || !word_is(&w, 0, verb) || !word_is(&w, 1, name))
			continue;
		if (word_is(&w, 2, "*") || (gpu != ANY_GPU && word_number(&w, 2) == gpu))
			fallback = word_number(&w, 3);
	}
	return fallback;
}

void text_of(const struct script *s, const char *name, int gpu, const char *fallback, char *out, size_t size)
{
	struct words w;
	snprintf(out, size, "%s", fallback);
	for (const char *p = s->text; (p = next_line(p, &w));) {
		if (w.n < 4 || !word_is(&w, 0, "text") || !word_is(&w, 1, name) ||
		    !(word_is(&w, 2, "*") || word_number(&w, 2) == gpu))
			continue;
		snprintf(out, size, "%.*s", (int)w.len[3], w.at[3]);
		for (char *blank = out; (blank = strchr(blank, '_'));)
			*blank = ' ';
	}
}

void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

nvml_return begin(struct script *s, const char *function, int gpu)
{
	script_read(s);
	for (int64_t waited = 0; waited < SLEEP_MAX_MS && waited < lookup(s, "sleep", function, gpu, 0);
	     waited += STEP_MS) {
		pause_ms(STEP_MS);
		script_read(s);
	}
	return (nvml_return)lookup(s, "fail", function, gpu, NVML_SUCCESS);
}

int64_t reading(const struct script *s, const char *name, int gpu)
{
	for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
		if (strcmp(defaults[i].name, name) == 0)
			return lookup(s, "set", name, gpu, defaults[i].value);
	abort(); // a mistake in this file
}

static const char gpus[GPUS_MAX];
static const char instances[GPUS_MAX][MIGS_MAX];

nvml_device handle_of(int gpu)
{
	return (nvml_device)(uintptr_t)(gpus + gpu);
}

nvml_device mig_handle_of(int gpu, int instance)
{
	return (nvml_device)(uintptr_t)&instances[gpu][instance];
}

static ptrdiff_t mig_index(nvml_device d)
{
	uintptr_t at = (uintptr_t)d - (uintptr_t)instances;
	return at < sizeof instances ? (ptrdiff_t)at : -1;
}

int index_of(nvml_device d)
{
	ptrdiff_t mig = mig_index(d);
	return mig >= 0 ? (int)(mig / MIGS_MAX) : (int)((uintptr_t)d - (uintptr_t)gpus);
}

int instance_of(nvml_device d)
{
	ptrdiff_t mig = mig_index(d);
	return mig >= 0 ? (int)(mig % MIGS_MAX) : -1;
}

bool mig_at(const struct script *s, int gpu, int k, int64_t *ret_id, const char **ret_profile, size_t *ret_len)
{
	struct words w;
	for (const char *p = s->text; (p = next_line(p, &w));) {
		if (w.n < 4 || !word_is(&w, 0, "mig") || word_number(&w, 1) != gpu || k-- > 0)
			continue;
		*ret_id = word_number(&w, 2);
		*ret_profile = w.at[3];
		*ret_len = w.len[3];
		return true;
	}
	return false;
}
