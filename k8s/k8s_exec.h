// SPDX-License-Identifier: Apache-2.0
// Exec credential plugins: a program that prints an ExecCredential. Started by argv, never by a shell; its output is
// bounded, its time is bounded, the loop goes on meanwhile. client.authentication.k8s.io/v1 and v1beta1.
#ifndef GPUSCALE_K8S_K8S_EXEC_H
#define GPUSCALE_K8S_K8S_EXEC_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct k8s_config;
struct k8s_exec_run;

#define K8S_EXEC_OUTPUT_BYTES_MAX (1024 * 1024)
#define K8S_EXEC_DEADLINE_MS      60000
#define K8S_TOKEN_BYTES_MAX       (64 * 1024)

struct k8s_exec_result { // strings are owned; NULL when the plugin did not give one
	char *token;
	char *cert_pem, *key_pem; // both or neither
	int64_t expires_wall_ms;  // 0 = does not say
};

// Reads what a plugin printed. The object's apiVersion must be the one asked for. Messages never show the output.
int k8s_exec_decode(const char *api_version, const char *text, size_t len, struct k8s_exec_result *ret_result,
                    struct err *e);
// Overwrites and frees the strings.
void k8s_exec_result_done(struct k8s_exec_result *r);

// "KUBERNETES_EXEC_INFO=..." for config->exec; with provide_cluster_info it holds server and CA. malloc'ed.
char *k8s_exec_info(const struct k8s_config *config, struct err *e);

// Exactly one of result, error is non-NULL; result is done's to take over (k8s_exec_result_done). Called from the loop,
// never from k8s_exec_start. ERR_AUTH: the plugin failed (with the first line of its stderr) or printed nothing usable;
// ERR_TIMEOUT: killed at the deadline; ERR_LIMIT: killed for printing too much.
typedef void k8s_exec_done_fn(void *arg, struct k8s_exec_result *result, const struct err *error);
// Starts config->exec in a process group of its own, stdin /dev/null. config must outlive the run. NULL and *e when it
// cannot be started (ERR_NOT_FOUND with the install hint when there is no such program).
struct k8s_exec_run *k8s_exec_start(struct event_base *loop, const struct k8s_config *config, int64_t deadline_ms,
                                    k8s_exec_done_fn *done, void *arg, struct err *e);
// Kills it and frees the run; done is not called. NULL is fine.
void k8s_exec_cancel(struct k8s_exec_run *run);

#endif
