// SPDX-License-Identifier: Apache-2.0
// Flags that several commands share: how to reach Prometheus and the API server, how to log.
// Each group is an argp child; its input is the struct of the same name.
#ifndef GPUSCALE_CONTROLLER_OPTIONS_H
#define GPUSCALE_CONTROLLER_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "k8s/k8s_config.h"
#include "promql/promql_source.h"

#define OPTIONS_HEADERS_MAX      16
#define OPTIONS_SOURCE_FILES_MAX 16
#define OPTIONS_PATHS_MAX        1024

struct arena;
struct buf;
struct err;

struct prometheus_options {
	struct promql_options query; // of the source called default; .http is filled in later, .url NULL: none
	const char *headers[OPTIONS_HEADERS_MAX + 1];
	size_t n_headers;
	bool url_from_environment; // a source called default of a file wins over it
	struct {
		const char *name, *url;
	} named[PROMQL_SOURCES_MAX]; // --prometheus NAME=URL
	size_t n_named;
	const char *files[OPTIONS_SOURCE_FILES_MAX]; // --sources
	size_t n_files;
};
extern const struct argp prometheus_argp;
// $GPUSCALE_PROMETHEUS_URL is the default URL.
void prometheus_options_init(struct prometheus_options *o);
// Is any source named?
bool prometheus_options_given(const struct prometheus_options *o);
// All the sources: those of the files, then the default one, then the named ones; in `a`. -1 and *e (ERR_USAGE when
// there is none, else as promql_source_read); the errors of files are appended to report.
int prometheus_options_list(const struct prometheus_options *o, struct arena *a,
                            struct promql_source_options **ret_list, size_t *ret_n, struct buf *report, struct err *e);

struct kube_options {
	struct k8s_config_options config;
};
extern const struct argp kube_argp;

struct log_options {
	enum log_format format;
	enum log_level level;
};
extern const struct argp log_argp;

struct path_options {
	const char *paths[OPTIONS_PATHS_MAX];
	size_t n;
};
// Appends, or ends the process with a usage error.
void path_options_add(struct path_options *o, const char *path, struct argp_state *state);

// A duration flag ("90s"), at least min_ms, or the process ends with a usage error naming the flag.
int64_t option_duration_ms(const char *flag, const char *text, int64_t min_ms, struct argp_state *state);
// One of names (NULL-terminated): its index, or the process ends with a usage error listing them.
int option_choice(const char *flag, const char *text, const char *const *names, struct argp_state *state);
// A whole number in [min, max], or the process ends with a usage error.
int64_t option_i64(const char *flag, const char *text, int64_t min, int64_t max, struct argp_state *state);

#endif
