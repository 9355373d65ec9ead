// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_config.h"

#include <openssl/crypto.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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

static bool copy_texts(struct arena *a, const char **const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (*texts[i] && !(*texts[i] = arena_strdup(a, *texts[i])))
			return false;
	return true;
}

static bool copy_list(struct arena *a, const char *const **list)
{
	const char *const *from = *list;
	size_t n = 0;
	while (from && from[n])
		n++;
	const char **to = arena_calloc(a, n + 1, sizeof *to);
	for (size_t i = 0; to && i < n; i++)
		if (!(to[i] = arena_strdup(a, from[i])))
			return false;
	*list = to;
	return to != NULL;
}

static bool copy_exec(struct arena *a, struct k8s_config *c)
{
	struct k8s_exec *x = arena_alloc(a, sizeof *x);
	if (!x)
		return false;
	*x = *c->exec;
	c->exec = x;
	const char **const texts[] = {&x->api_version, &x->command, &x->install_hint, &x->source};
	return copy_texts(a, texts, COUNT_OF(texts)) && copy_list(a, &x->args) && copy_list(a, &x->env);
}

int k8s_config_copy(struct arena *a, const struct k8s_config *config, struct k8s_config *ret_config, struct err *e)
{
	struct k8s_config *c = ret_config;
	struct http_tls *tls = &c->tls;
	*c = *config;
	const char **const texts[] = {&c->server,     &c->namespace_name, &c->token,      &c->token_file,
	                              &c->basic_user, &c->basic_password, &c->source,     &tls->ca_file,
	                              &tls->ca_pem,   &tls->cert_file,    &tls->cert_pem, &tls->key_file,
	                              &tls->key_pem,  &tls->server_name};
	if (copy_texts(a, texts, COUNT_OF(texts)) && (!c->exec || copy_exec(a, c)))
		return 0;
	*c = (struct k8s_config){0}; // an incomplete copy still points into the original
	return err_set(e, ERR_INTERNAL, "out of memory for the kubeconfig");
}
