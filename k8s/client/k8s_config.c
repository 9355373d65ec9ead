// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_config.h"

#include <openssl/crypto.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

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

// ---- copy ----

static bool copy_text(struct arena *a, const char *from, const char **to)
{
	*to = from ? arena_strdup(a, from) : NULL;
	return *to || !from;
}

static bool copy_list(struct arena *a, const char *const *from, const char *const **to)
{
	size_t n = 0;
	while (from && from[n])
		n++;
	const char **list = arena_calloc(a, n + 1, sizeof *list);
	for (size_t i = 0; list && i < n; i++)
		if (!copy_text(a, from[i], &list[i]))
			return false;
	*to = list;
	return list != NULL;
}

int k8s_config_copy(struct arena *a, const struct k8s_config *config, struct k8s_config *ret_config, struct err *e)
{
	struct k8s_config *c = ret_config;
	*c = *config;
	struct k8s_exec *x = config->exec ? arena_alloc(a, sizeof *x) : NULL;
	bool ok = copy_text(a, config->server, &c->server) &&
	          copy_text(a, config->namespace_name, &c->namespace_name) && copy_text(a, config->token, &c->token) &&
	          copy_text(a, config->token_file, &c->token_file) &&
	          copy_text(a, config->basic_user, &c->basic_user) &&
	          copy_text(a, config->basic_password, &c->basic_password) &&
	          copy_text(a, config->source, &c->source) && copy_text(a, config->tls.ca_file, &c->tls.ca_file) &&
	          copy_text(a, config->tls.ca_pem, &c->tls.ca_pem) &&
	          copy_text(a, config->tls.cert_file, &c->tls.cert_file) &&
	          copy_text(a, config->tls.cert_pem, &c->tls.cert_pem) &&
	          copy_text(a, config->tls.key_file, &c->tls.key_file) &&
	          copy_text(a, config->tls.key_pem, &c->tls.key_pem) &&
	          copy_text(a, config->tls.server_name, &c->tls.server_name);
	if (ok && config->exec) {
		const struct k8s_exec *from = config->exec;
		ok = x && copy_text(a, from->api_version, &x->api_version) &&
		     copy_text(a, from->command, &x->command) && copy_text(a, from->install_hint, &x->install_hint) &&
		     copy_text(a, from->source, &x->source) && copy_list(a, from->args, &x->args) &&
		     copy_list(a, from->env, &x->env);
		if (ok)
			x->provide_cluster_info = from->provide_cluster_info;
	}
	c->exec = x;
	if (ok)
		return 0;
	*c = (struct k8s_config){0}; // an incomplete copy still points into the original
	return err_set(e, ERR_INTERNAL, "out of memory for the kubeconfig");
}
