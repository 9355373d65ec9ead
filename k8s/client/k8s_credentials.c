// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_credentials.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/http/service_account.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/k8s_exec.h"

#define REREAD_AFTER_FAILURE_MS 5000
#define EXEC_AGAIN_MS           1000

struct k8s_credentials {
	struct event_base *loop;
	const struct clock *clock;
	const struct k8s_config *config;
	k8s_credentials_fn *fn;
	void *arg;
	struct k8s_exec_run *run;       // running; NULL: none
	struct k8s_exec_result current; // from the file (token only) or the plugin
	struct http_tls tls;            // the config's, with the plugin's client certificate
	bool is_stale;                  // the server replied 401
	int64_t reread_mono_ms;         // token file: when to read it next
	int64_t refresh_wall_ms;        // plugin: when to run it next; INT64_MAX: only after a 401
	int64_t refresh_boot_ms;        // the same time by the boot clock, which is never set back
	uint64_t generation;
};

static bool wants_exec(const struct k8s_config *config)
{
	return config->exec && !config->token && !config->token_file && !config->basic_user;
}

struct k8s_credentials *k8s_credentials_new(struct event_base *loop, const struct clock *clock,
                                            const struct k8s_config *config, k8s_credentials_fn *fn, void *arg,
                                            struct err *e)
{
	struct k8s_credentials *c = err_calloc(sizeof *c, e);
	if (!c)
		return NULL;
	c->loop = loop;
	c->clock = clock;
	c->config = config;
	c->fn = fn;
	c->arg = arg;
	c->tls = config->tls;
	return c;
}

void k8s_credentials_free(struct k8s_credentials *c)
{
	if (!c)
		return;
	k8s_exec_cancel(c->run);
	k8s_exec_result_done(&c->current);
	free(c);
}

// ---- token file ----

static enum k8s_ready ensure_file(struct k8s_credentials *c, struct err *e)
{
	int64_t now = clock_mono_ms(c->clock);
	if (c->generation > 0 && !c->is_stale && now < c->reread_mono_ms)
		return K8S_READY_NOW;
	char *token;
	if (token_file_read(c->config->token_file, &token, e) < 0) {
		if (!c->current.token && !c->config->token)
			return K8S_READY_FAILED;
		// The file is being replaced, or its volume is temporarily missing: the old token may still be valid.
		err_clear(e);
		c->is_stale = false;
		if (c->generation == 0)
			c->generation = 1;
		c->reread_mono_ms = now + REREAD_AFTER_FAILURE_MS;
		return K8S_READY_NOW;
	}
	bool is_new = !c->current.token || strcmp(c->current.token, token) != 0;
	k8s_exec_result_done(&c->current);
	c->current.token = token;
	c->generation += is_new;
	c->is_stale = false;
	c->reread_mono_ms = now + K8S_TOKEN_FILE_REREAD_MS;
	return K8S_READY_NOW;
}

// ---- plugin ----

static void on_exec(void *arg, struct k8s_exec_result *result, const struct err *error)
{
	struct k8s_credentials *c = arg;
	c->run = NULL;
	if (error) {
		c->fn(c->arg, error);
		return;
	}
	int64_t now = clock_wall_ms(c->clock);
	k8s_exec_result_done(&c->current);
	c->current = *result;
	c->generation++;
	c->is_stale = false;
	c->refresh_wall_ms = c->refresh_boot_ms = INT64_MAX;
	if (result->expires_wall_ms) {
		int64_t early = (result->expires_wall_ms - now) / 5;
		if (early > K8S_EXEC_REFRESH_MS)
			early = K8S_EXEC_REFRESH_MS;
		c->refresh_wall_ms = result->expires_wall_ms - (early > 0 ? early : 0);
		// Credentials that arrive expired are used nevertheless: clocks differ, and an immediate rerun would
		// loop.
		if (c->refresh_wall_ms < now + EXEC_AGAIN_MS)
			c->refresh_wall_ms = now + EXEC_AGAIN_MS;
		c->refresh_boot_ms = clock_boot_ms(c->clock) + (c->refresh_wall_ms - now);
	}
	if (result->cert_pem) {
		c->tls.cert_pem = c->current.cert_pem;
		c->tls.key_pem = c->current.key_pem;
	} else {
		c->tls = c->config->tls;
	}
	c->fn(c->arg, NULL);
}

static enum k8s_ready ensure_exec(struct k8s_credentials *c, struct err *e)
{
	if (c->run)
		return K8S_READY_LATER;
	// The first of the two clocks decides, because the wall clock may have been set in between.
	if (c->generation > 0 && !c->is_stale && clock_wall_ms(c->clock) < c->refresh_wall_ms &&
	    clock_boot_ms(c->clock) < c->refresh_boot_ms)
		return K8S_READY_NOW;
	c->run = k8s_exec_start(c->loop, c->config, K8S_EXEC_DEADLINE_MS, on_exec, c, e);
	return c->run ? K8S_READY_LATER : K8S_READY_FAILED;
}

enum k8s_ready k8s_credentials_ensure(struct k8s_credentials *c, struct err *e)
{
	if (c->config->token_file)
		return ensure_file(c, e);
	return wants_exec(c->config) ? ensure_exec(c, e) : K8S_READY_NOW;
}

uint64_t k8s_credentials_apply(const struct k8s_credentials *c, struct http_request *request)
{
	request->bearer_token = c->current.token ? c->current.token : c->config->token;
	if (!request->bearer_token) {
		request->basic_user = c->config->basic_user;
		request->basic_password = c->config->basic_password;
	}
	request->tls = &c->tls;
	return c->generation;
}

bool k8s_credentials_reject(struct k8s_credentials *c, uint64_t generation)
{
	if (!c->config->token_file && !wants_exec(c->config))
		return false;
	if (generation == c->generation)
		c->is_stale = true;
	return true;
}
