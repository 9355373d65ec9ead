// SPDX-License-Identifier: Apache-2.0
// Flags that several commands share: how to reach Prometheus and the API server, how to log.
// Each group is an argp child; its input is the struct of the same name.
#ifndef GPUSCALE_RUNTIME_OPTIONS_CONTROLLER_OPTIONS_H
#define GPUSCALE_RUNTIME_OPTIONS_CONTROLLER_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/process/log.h"
#include "k8s/client/k8s_config_load.h"
#include "promql/promql_source.h"

#define OPTIONS_HEADERS_MAX      16
#define OPTIONS_SOURCE_FILES_MAX 16
#define OPTIONS_PATHS_MAX        1024
#define OPTIONS_NAMESPACES_MAX   64 // use a file of sources for more

struct arena;
struct buf;
struct err;

struct prometheus_options {
	struct promql_options query; // of the source called default; .http is filled in later, .url NULL: none
	const char *headers[OPTIONS_HEADERS_MAX + 1];
	size_t n_headers;
	bool url_from_environment; // a source named default in a file overrides it
	struct {
		const char *name, *url;
	} named[PROMQL_SOURCES_MAX]; // --prometheus NAME=URL
	size_t n_named;
	const char *namespaces[OPTIONS_NAMESPACES_MAX + 1]; // namespaces that may query the sources given as flags
	size_t n_namespaces;
	const char *namespace_label;
	const char *files[OPTIONS_SOURCE_FILES_MAX]; // --sources
	size_t n_files;
};
extern const struct argp prometheus_argp;
// Sets the defaults; $GPUSCALE_PROMETHEUS_URL is the default URL.
void prometheus_options_init(struct prometheus_options *o);
// Returns whether a source is named.
bool prometheus_options_given(const struct prometheus_options *o);
// Lists all sources, allocated in `a`: those of the files, then the default one, then the named ones. Returns -1 and *e
// (ERR_USAGE when there is none, else as promql_source_read); appends the errors of files to report.
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

// The series that may lead to an action: label matchers that are added to every selector (promql/confine.h).
#define OPTIONS_MATCHERS_BYTES 1024
struct series_options {
	char matchers[OPTIONS_MATCHERS_BYTES]; // "": none
};
extern const struct argp series_argp;
// Returns the matchers, or NULL when there are none.
const char *series_options_matchers(const struct series_options *o);

struct path_options {
	const char *paths[OPTIONS_PATHS_MAX];
	size_t n;
};
// Appends the path; exits with a usage error when there are too many.
void path_options_add(struct path_options *o, const char *path, struct argp_state *state);

// Parses a duration ("90s") of at least min_ms; otherwise exits with a usage error that names the flag.
int64_t option_duration_ms(const char *flag, const char *text, int64_t min_ms, struct argp_state *state);
// Returns the index of `text` in names (NULL-terminated); otherwise exits with a usage error that lists them.
int option_choice(const char *flag, const char *text, const char *const *names, struct argp_state *state);
// Parses a whole number in [min, max]; otherwise exits with a usage error.
int64_t option_i64(const char *flag, const char *text, int64_t min, int64_t max, struct argp_state *state);
// Likewise a number.
double option_f64(const char *flag, const char *text, double min, double max, struct argp_state *state);
// Copies the next item of a list "a,b,c" and advances *list behind it. Returns the item, NULL at the end; exits with a
// usage error when an item is empty or too long.
#define OPTION_ITEM_BYTES 64
const char *option_next_item(const char *flag, const char **list, char item[OPTION_ITEM_BYTES],
                             struct argp_state *state);

#endif
