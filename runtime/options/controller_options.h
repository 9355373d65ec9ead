// SPDX-License-Identifier: Apache-2.0
// Flags that several commands share: how to reach Prometheus and the API server, how to log,
// which of several processes acts.
// Each group is a set of flags; its options are the struct of the same name.
#ifndef GPUSCALE_RUNTIME_OPTIONS_CONTROLLER_OPTIONS_H
#define GPUSCALE_RUNTIME_OPTIONS_CONTROLLER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/log.h"
#include "k8s/client/k8s_config.h"
#include "k8s/lease/lease_rules.h"
#include "promql/promql_source.h"
#include "runtime/options/flag_table.h"

#define OPTIONS_HEADERS_MAX      16
#define OPTIONS_SOURCE_FILES_MAX 16
#define OPTIONS_PATHS_MAX        1024
#define OPTIONS_NAMESPACES_MAX   64 // use a file of sources for more

struct k8s_config;
struct shards_options;

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
extern const struct flag_set prometheus_flags;
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
extern const struct flag_set kube_flags;

// High availability: leader election, its times, shards.
struct ha_options {
	enum { HA_DEFAULT, HA_ON, HA_OFF } leader_elect;
	struct lease_timing timing;
	const char *lease_name, *lease_namespace, *identity; // NULL: the default
	int32_t n_shards;
	char own_identity[LEASE_IDENTITY_BYTES]; // HOSTNAME_UUID, generated when none is given
};
// Its options are a struct ha_options that ha_options_init() has filled.
extern const struct flag_set ha_flags;
void ha_options_init(struct ha_options *o);

// Returns whether leader election is on: by --leader-elect, else is_default (policies come from the API server, and
// this process runs in a cluster).
bool ha_options_is_on(const struct ha_options *o, bool is_default);
// Fills the values of the flags into *ret_shards (timing, names, identity, n_shards); the caller fills the rest.
// config: of the API server; its namespace is the default of --lease-namespace. Strings belong to o and config.
// Generates the identity if none is given.
void ha_options_apply(struct ha_options *o, const struct k8s_config *config, struct shards_options *ret_shards);

struct log_options {
	enum log_format format;
	bool is_verbose; // log from LOG_DEBUG, else from LOG_INFO
};
extern const struct flag_set log_flags;

// The series that may lead to an action: label matchers that are added to every selector (promql/confine.h).
#define OPTIONS_MATCHERS_BYTES 1024
struct series_options {
	char matchers[OPTIONS_MATCHERS_BYTES]; // "": none
};
extern const struct flag_set series_flags;
// Returns the matchers, or NULL when there are none.
const char *series_options_matchers(const struct series_options *o);

struct path_options {
	const char *paths[OPTIONS_PATHS_MAX];
	size_t n;
};
// A flag_take_fn: appends the path; exits with a usage error when there are too many.
void path_options_add(void *options, char *path, struct argp_state *state);

#endif
