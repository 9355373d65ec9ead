// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_config_load.h"

#include <openssl/crypto.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/http/service_account.h"
#include "k8s/client/k8s_request.h"
#include "k8s/client/kubeconfig.h"

#define KUBECONFIG_ARENA_BYTES   (64 * 1024 * 1024)
#define NAMESPACE_FILE_BYTES_MAX 256
#define SERVER_BYTES             1024

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory for the kubeconfig");
}

// ---- secrets ----

static void wipe_text(const char *text)
{
	if (text)
		OPENSSL_cleanse((void *)(uintptr_t)text, strlen(text));
}

void k8s_config_wipe(struct k8s_config *config)
{
	wipe_text(config->token);
	wipe_text(config->basic_password);
	wipe_text(config->tls.key_pem);
	for (const char *const *env = config->exec ? config->exec->env : NULL; env && *env; env++)
		wipe_text(*env);
	*config = (struct k8s_config){0};
}

// ---- in a pod ----

// Without the file (a mount without it), the namespace is "default", as for a context without one. A file that cannot
// be read or is invalid is an error, because the namespace of the pod is then unknown.
static int read_namespace(struct arena *a, const char *path, const char **ret_name, struct err *e)
{
	struct buf text;
	struct err why = {0};
	*ret_name = "default";
	buf_init(&text, NAMESPACE_FILE_BYTES_MAX);
	int rc = buf_read_file(&text, path, &why);
	if (rc == 0) {
		const char *name = arena_strndup(a, buf_str(&text), strcspn(buf_str(&text), " \t\r\n"));
		if (!name)
			rc = no_memory(e);
		else if (name[0] && !k8s_name_is_valid(name))
			rc = err_set(e, ERR_INPUT, "%s does not contain a valid namespace", path);
		else if (name[0])
			*ret_name = name;
	} else if (why.kind == ERR_NOT_FOUND) {
		rc = 0;
	} else if (e) {
		*e = why;
	}
	buf_done(&text);
	return rc;
}

int k8s_config_in_cluster(struct arena *a, const char *dir, struct k8s_config *ret_config, struct err *e)
{
	char server[SERVER_BYTES];
	if (service_account_server(server, sizeof server, e) < 0)
		return -1;
	if (!dir)
		dir = SERVICE_ACCOUNT_FOLDER;
	struct k8s_config c = {
	        .server = arena_strdup(a, server),
	        .tls.ca_file = arena_printf(a, "%s/ca.crt", dir),
	        .token_file = arena_printf(a, "%s/token", dir),
	        .source = K8S_CONFIG_IN_CLUSTER,
	};
	const char *namespace_file = arena_printf(a, "%s/namespace", dir);
	if (!c.server || !c.tls.ca_file || !c.token_file || !namespace_file)
		return no_memory(e);
	const char *const needed[] = {c.token_file, c.tls.ca_file};
	for (size_t i = 0; i < 2; i++)
		if (access(needed[i], R_OK) < 0)
			return err_set(e, ERR_IO,
			               "in a cluster, but %s cannot be read: give the pod a service account "
			               "(automountServiceAccountToken: true)",
			               needed[i]);
	if (read_namespace(a, namespace_file, &c.namespace_name, e) < 0)
		return -1;
	*ret_config = c;
	return 0;
}

// ---- kubeconfig files ----

// Adds a file. A missing file is an error only with must_exist.
static int add_file(struct kubeconfig *k, struct arena *scratch, const char *path, bool must_exist, struct err *e)
{
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	struct err local = {0};
	int rc = buf_read_file(&text, path, &local);
	if (rc == 0)
		rc = kubeconfig_add(k, scratch, path, buf_str(&text), text.len, &local);
	else if (local.kind == ERR_NOT_FOUND && !must_exist)
		rc = 0;
	buf_wipe(&text);
	if (rc < 0 && e)
		*e = local;
	return rc;
}

static int add_list(struct kubeconfig *k, struct arena *scratch, const char *list, struct err *e)
{
	while (*list) {
		size_t len = strcspn(list, ":");
		const char *path = arena_strndup(scratch, list, len);
		if (!path)
			return no_memory(e);
		if (len > 0 && add_file(k, scratch, path, false, e) < 0)
			return -1;
		list += len + (list[len] == ':');
	}
	return 0;
}

// Adds the files that exist. *ret_path names them in messages.
static int add_files(struct kubeconfig *k, struct arena *scratch, const struct k8s_config_options *o,
                     const char **ret_path, struct err *e)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME"), *looked_at;
	if (o->kubeconfig && o->kubeconfig[0]) {
		looked_at = o->kubeconfig;
		if (add_file(k, scratch, o->kubeconfig, true, e) < 0)
			return -1;
	} else if (list && list[0]) {
		looked_at = arena_printf(scratch, "$KUBECONFIG (%s)", list);
		if (add_list(k, scratch, list, e) < 0)
			return -1;
	} else {
		looked_at = arena_printf(scratch, "%s/.kube/config", home ? home : "");
		if (looked_at && home && add_file(k, scratch, looked_at, false, e) < 0)
			return -1;
	}
	*ret_path = looked_at;
	return looked_at ? 0 : no_memory(e);
}

static int load(struct kubeconfig *k, struct arena *scratch, struct arena *a, const struct k8s_config_options *o,
                struct k8s_config *ret_config, struct err *e)
{
	const char *looked_at;
	if (add_files(k, scratch, o, &looked_at, e) < 0)
		return -1;
	if (k->n_files > 0)
		return kubeconfig_resolve(k, a, o->context, ret_config, e);
	struct err why;
	if (o->context)
		return err_set(e, ERR_NOT_FOUND, "--context %s: no kubeconfig found at %s", o->context, looked_at);
	if (k8s_config_in_cluster(a, NULL, ret_config, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND) {
		if (e)
			*e = why;
		return -1;
	}
	return err_set(e, ERR_NOT_FOUND,
	               "no cluster to talk to: no kubeconfig at %s, and not inside a pod. Use --kubeconfig FILE",
	               looked_at);
}

int k8s_config_load(struct arena *a, const struct k8s_config_options *options, struct k8s_config *ret_config,
                    struct err *e)
{
	// Parsed in a separate arena, so that the secrets of the files can be overwritten before this returns.
	struct arena scratch;
	arena_init(&scratch, KUBECONFIG_ARENA_BYTES);
	struct kubeconfig k = {0};
	int rc = load(&k, &scratch, a, options, ret_config, e);
	kubeconfig_wipe(&k);
	arena_done(&scratch);
	if (rc < 0)
		return -1;
	if (options->namespace_name && options->namespace_name[0]) {
		ret_config->namespace_name = arena_strdup(a, options->namespace_name);
		if (!ret_config->namespace_name)
			return no_memory(e);
	}
	if (!ret_config->namespace_name)
		ret_config->namespace_name = "default";
	return 0;
}

int k8s_config_list_contexts(const struct k8s_config_options *options, struct buf *out, struct err *e)
{
	struct arena scratch;
	const char *looked_at;
	arena_init(&scratch, KUBECONFIG_ARENA_BYTES);
	struct kubeconfig k = {0};
	int rc = add_files(&k, &scratch, options, &looked_at, e);
	for (size_t i = 0; rc == 0 && i < k.n_files; i++) {
		const struct doc_node *list = doc_get(k.files[i].root, "contexts");
		for (const struct doc_node *n = list ? list->child : NULL; n; n = n->next)
			buf_printf(out, "%s\n", doc_get_text(n, "name", ""));
	}
	kubeconfig_wipe(&k);
	arena_done(&scratch);
	return rc;
}
