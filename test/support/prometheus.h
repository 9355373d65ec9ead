// SPDX-License-Identifier: Apache-2.0
// A real Prometheus for a test: on a free loopback port, in a temporary directory of its own, gone with its test.
#ifndef GPUSCALE_TEST_SUPPORT_PROMETHEUS_H
#define GPUSCALE_TEST_SUPPORT_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct prometheus;

struct prometheus_options {
	const char *scrape_target;  // "127.0.0.1:9400", scraped as job "test" every second; NULL: nothing is scraped
	const char *scrape_configs; // or the YAML items of scrape_configs, starting at "- job_name:"; NULL: as above
	const char *openmetrics;    // history as OpenMetrics text with its "# EOF", made into blocks; NULL: none
	const char *const *flags;   // more command line flags, NULL-terminated; may be NULL
};

// Both programs, prometheus and promtool, are in $PATH. A test without them skips and says so.
bool prometheus_is_installed(void);
// Starts it and waits until it is ready, at most 30 s. NULL and *e with the last lines of its log otherwise. It dies
// with the calling thread even if prometheus_stop() is not called.
struct prometheus *prometheus_start(const struct prometheus_options *options, struct err *e);
const char *prometheus_url(const struct prometheus *p); // "http://127.0.0.1:PORT"
pid_t prometheus_pid(const struct prometheus *p);
// Kills the process, keeps port and data: an outage. prometheus_continue starts it again on both.
void prometheus_interrupt(struct prometheus *p);
int prometheus_continue(struct prometheus *p, struct err *e);
// Stops every thread, so that it accepts connections and answers nothing; true once it stands still. thaw lets it go
// on.
bool prometheus_freeze(struct prometheus *p);
void prometheus_thaw(struct prometheus *p);
// Ends the process (SIGTERM, SIGKILL after 5 s) and removes the directory. NULL is fine.
void prometheus_stop(struct prometheus *p);

#endif
