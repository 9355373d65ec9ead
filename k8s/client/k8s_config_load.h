// SPDX-License-Identifier: Apache-2.0
// Reads the configuration of a client: kubeconfig files, merged as kubectl merges them, or the pod's service account.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CONFIG_LOAD_H
#define GPUSCALE_K8S_CLIENT_K8S_CONFIG_LOAD_H

#include "k8s/client/k8s_config.h"

struct arena;
struct buf;
struct err;

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

#endif
