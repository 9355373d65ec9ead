// SPDX-License-Identifier: Apache-2.0
// A kubeconfig of any bytes, alone and merged in front of a good one: refused, or a config with a usable URL.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "k8s/client/k8s_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char good[] =
        "current-context: d\ncontexts: [{name: d, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {token: t}}]\n";

static void check(const struct kubeconfig *k, struct arena *a)
{
	struct k8s_config config;
	struct err e = {0};
	if (kubeconfig_resolve(k, a, NULL, &config, &e) < 0) {
		assert(e.kind != ERR_NONE && e.msg[0]);
		return;
	}
	assert(strncmp(config.server, "http://", 7) == 0 || strncmp(config.server, "https://", 8) == 0);
	assert(!config.token || !strpbrk(config.token, "\r\n"));
	assert(config.source);
	const struct http_tls *t = &config.tls;
	assert((t->cert_file || t->cert_pem) == (t->key_file || t->key_pem));
	assert(!t->insecure_skip_verify || (!t->ca_file && !t->ca_pem));
	assert(!config.namespace_name || config.namespace_name[0]);
	if (config.exec) {
		assert(config.exec->command[0] && config.exec->api_version[0] && config.exec->args);
		for (const char *const *env = config.exec->env; *env; env++)
			assert(strchr(*env, '=') > *env);
	}
	k8s_config_wipe(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct err e = {0};
	arena_init(&a, 64 * 1024 * 1024);
	for (int is_merged = 0; is_merged < 2; is_merged++) {
		struct kubeconfig k = {0};
		if (kubeconfig_add(&k, &a, "/fuzz/config", (const char *)data, size, &e) == 0 &&
		    (!is_merged || kubeconfig_add(&k, &a, "/fuzz/good", good, sizeof good - 1, &e) == 0))
			check(&k, &a);
		kubeconfig_wipe(&k);
	}
	arena_done(&a);
	return 0;
}
