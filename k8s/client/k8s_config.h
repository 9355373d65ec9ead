// SPDX-License-Identifier: Apache-2.0
// How to reach an API server, and with which credentials: from kubeconfig files, merged as kubectl merges them, or from
// the pod's service account.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CONFIG_H
#define GPUSCALE_K8S_CLIENT_K8S_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/http/http_client.h"

struct arena;
struct buf;
struct doc_node;
struct err;

#define K8S_EXEC_ARGS_MAX 64

struct k8s_exec {
	const char *api_version; // client.authentication.k8s.io/v1 or v1beta1
	const char *command;     // relative paths with a '/' are relative to the kubeconfig's folder
	const char *const *args; // NULL-terminated, without argv[0]
	const char *const *env;  // "NAME=value", NULL-terminated, added to our own environment
	const char *install_hint;
	bool provide_cluster_info;
	const char *source; // for messages: "user dev in /home/u/.kube/config"
};

struct k8s_config {
	const char *server;         // https://host:port[/prefix], no '/' at the end
	struct http_tls tls;        // CA, client certificate, server name
	const char *namespace_name; // namespace of the context; "default"
	const char *token;          // static bearer token; with a token_file, used only while that cannot be read
	const char *token_file;     // re-read every minute and after a 401
	const char *basic_user, *basic_password;
	const struct k8s_exec *exec; // NULL = none
	const char *source;          // for messages: "context dev of /home/u/.kube/config" or K8S_CONFIG_IN_CLUSTER
};
#define K8S_CONFIG_IN_CLUSTER "in-cluster"

struct k8s_config_options {
	const char *kubeconfig; // --kubeconfig: one file. NULL: $KUBECONFIG (':'-separated, merged, first wins), else
	                        // ~/.kube/config
	const char *context;    // NULL: current-context
	const char *namespace_name; // overrides the context's
};

// Loads the configuration from the first of: explicit file, $KUBECONFIG, ~/.kube/config, in-cluster; the order of
// kubectl. Everything is allocated in `a`. Returns 0, or -1 and *e, which names the file, the entry and the fix. Data
// fields (certificate-authority-data, ...) are base64-decoded to PEM; relative paths are relative to their file.
int k8s_config_load(struct arena *a, const struct k8s_config_options *options, struct k8s_config *ret_config,
                    struct err *e);
// Appends the names of the contexts of the same kubeconfig files to `out`, a line each. Returns 0, or -1 and *e.
int k8s_config_list_contexts(const struct k8s_config_options *options, struct buf *out, struct err *e);
// Loads only the service account: KUBERNETES_SERVICE_HOST/PORT and the files in dir (NULL:
// /var/run/secrets/kubernetes.io/serviceaccount). Returns 0, or -1 and *e: ERR_NOT_FOUND outside of a cluster.
int k8s_config_in_cluster(struct arena *a, const char *dir, struct k8s_config *ret_config, struct err *e);
// Overwrites token, password, inline private key and the plugin's environment in place, so that they do not stay behind
// in freed memory or a core dump. The config is unusable afterwards.
void k8s_config_wipe(struct k8s_config *config);

// ---- the files, one by one ----

#define KUBECONFIG_FILES_MAX 32

struct kubeconfig_file {
	const char *path;   // for messages
	const char *folder; // relative paths in the file start here; "": the working directory
	const struct doc_node *root;
};
struct kubeconfig {
	struct kubeconfig_file files[KUBECONFIG_FILES_MAX];
	size_t n_files;
};

// Parses text[0..len) as another file; files that were added before take precedence. An empty file is valid. Unknown
// keys are ignored: other tools store theirs there. Everything is allocated in `a`; path must be, too. Returns 0, or -1
// and *e.
int kubeconfig_add(struct kubeconfig *k, struct arena *a, const char *path, const char *text, size_t len,
                   struct err *e);
// Resolves a context (NULL: the current-context of the first file that has one) to a config in `a`. Checks that the
// named files can be read; does not run plugins. Returns 0, or -1 and *e.
int kubeconfig_resolve(const struct kubeconfig *k, struct arena *a, const char *context, struct k8s_config *ret_config,
                       struct err *e);
// Overwrites every scalar of the parsed files.
void kubeconfig_wipe(struct kubeconfig *k);

#endif
