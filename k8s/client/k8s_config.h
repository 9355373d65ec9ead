// SPDX-License-Identifier: Apache-2.0
// How to reach an API server, and with which credentials. k8s_config_load.h reads it.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CONFIG_H
#define GPUSCALE_K8S_CLIENT_K8S_CONFIG_H

#include <stdbool.h>

#include "base/http/http_client.h"

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

#endif
