// SPDX-License-Identifier: Apache-2.0
// Runs exec credential plugins: programs that print an ExecCredential. They are started by argv, never by a shell, with
// limits on output and time, while the loop continues. client.authentication.k8s.io/v1 and v1beta1.
#ifndef GPUSCALE_K8S_CLIENT_K8S_EXEC_H
#define GPUSCALE_K8S_CLIENT_K8S_EXEC_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct k8s_config;
struct k8s_exec_run;

#define K8S_EXEC_OUTPUT_BYTES_MAX (1024 * 1024)
#define K8S_EXEC_DEADLINE_MS      60000
#define K8S_TOKEN_BYTES_MAX       (64 * 1024)

struct k8s_exec_result { // strings are owned; NULL: the plugin did not print one
	char *token;
	char *cert_pem, *key_pem; // both or neither
	int64_t expires_wall_ms;  // 0: unknown
};

// Decodes the output of a plugin. The apiVersion of the object must be api_version. Errors never contain the output.
// Returns 0, or -1 and *e.
int k8s_exec_decode(const char *api_version, const char *text, size_t len, struct k8s_exec_result *ret_result,
                    struct err *e);
// Overwrites and frees the strings.
void k8s_exec_result_done(struct k8s_exec_result *r);

// Returns "KUBERNETES_EXEC_INFO=..." for config->exec, malloc'ed; with provide_cluster_info it contains server and CA.
// Returns NULL and *e on failure.
char *k8s_exec_info(const struct k8s_config *config, struct err *e);

// Receives the result of a run. Called from the loop, never from k8s_exec_start. Exactly one of result and error is
// non-NULL; the callback takes over result (k8s_exec_result_done). ERR_AUTH: the plugin failed (with the first line of
// its stderr) or printed no valid ExecCredential; ERR_TIMEOUT: killed at the deadline; ERR_LIMIT: killed for printing
// too much.
typedef void k8s_exec_done_fn(void *arg, struct k8s_exec_result *result, const struct err *error);
// Starts config->exec in its own process group with stdin /dev/null. config must outlive the run. Returns NULL and *e
// when it cannot be started (ERR_NOT_FOUND with the install hint when the program does not exist).
struct k8s_exec_run *k8s_exec_start(struct event_base *loop, const struct k8s_config *config, int64_t deadline_ms,
                                    k8s_exec_done_fn *done, void *arg, struct err *e);
// Kills the plugin and frees the run; done is not called. NULL is fine.
void k8s_exec_cancel(struct k8s_exec_run *run);

#endif
