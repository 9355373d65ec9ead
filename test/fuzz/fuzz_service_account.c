// SPDX-License-Identifier: Apache-2.0
// What a pod is given, as any bytes: the first line is KUBERNETES_SERVICE_HOST, the second KUBERNETES_SERVICE_PORT, the
// third the namespace file, the rest the token file. What is accepted can stand in a URL and in a header; a token that
// was read outlives a file that cannot be.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/k8s_credentials.h"
#include "k8s/client/k8s_request.h"
#include "k8s/client/scale.h"
#include "test/support/manual_clock.h"

#define FOLDER_BYTES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *folder, const char *name, const char *text, size_t len)
{
	char path[FOLDER_BYTES + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	if (!f || fwrite(text, 1, len, f) != len || fclose(f) != 0)
		abort();
}

static void remove_file(const char *folder, const char *name)
{
	char path[FOLDER_BYTES + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
}

// The line at *text, which is moved behind it.
static char *take_line(const char **text, const char *end, size_t *ret_len)
{
	const char *stop = memchr(*text, '\n', (size_t)(end - *text));
	size_t len = stop ? (size_t)(stop - *text) : (size_t)(end - *text);
	char *line = strndup(*text, len); // a variable of the environment ends at a NUL
	*ret_len = len;
	*text += len + (stop != NULL);
	return line;
}

static void check_token(const struct k8s_config *config, const char *folder)
{
	struct clock clock;
	struct err e = {0};
	struct http_request v = {.method = "GET"}, again = v;
	clock_init_manual(&clock, 1767603600000);
	struct k8s_credentials *c = k8s_credentials_new(NULL, &clock, config, NULL, NULL, &e);
	assert(c);
	if (k8s_credentials_ensure(c, &e) == K8S_READY_NOW) {
		assert(k8s_credentials_apply(c, &v) == 1 && v.bearer_token && v.bearer_token[0]);
		assert(!strpbrk(v.bearer_token, " \t\r\n"));
		char *before = strdup(v.bearer_token);
		write_file(folder, "token", " \n", 2);
		clock_advance_ms(&clock, K8S_TOKEN_FILE_REREAD_MS + 1);
		assert(k8s_credentials_ensure(c, &e) == K8S_READY_NOW);
		assert(k8s_credentials_apply(c, &again) == 1 && strcmp(again.bearer_token, before) == 0);
		free(before);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	k8s_credentials_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[FOLDER_BYTES] = "/tmp/gpuscale-fuzz-account.XXXXXX";
	const char *text = (const char *)data, *end = text + size;
	size_t len, namespace_len;
	struct arena a;
	struct k8s_config config;
	struct err e = {0};
	char *host = take_line(&text, end, &len), *port = take_line(&text, end, &len);
	const char *namespace_text = text;
	char *namespace_name = take_line(&text, end, &namespace_len);
	if (!host || !port || !namespace_name || !mkdtemp(folder))
		abort();
	setenv("KUBERNETES_SERVICE_HOST", host, 1);
	setenv("KUBERNETES_SERVICE_PORT", port, 1);
	write_file(folder, "ca.crt", "x", 1);
	write_file(folder, "namespace", namespace_text, namespace_len);
	write_file(folder, "token", text, (size_t)(end - text));
	arena_init(&a, 1024 * 1024);
	if (k8s_config_in_cluster(&a, folder, &config, &e) == 0) {
		assert(strncmp(config.server, "https://", 8) == 0 && !strpbrk(config.server + 8, "/@?# \t\r\n"));
		assert(k8s_name_is_valid(config.namespace_name) && !config.token);
		check_token(&config, folder);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	arena_done(&a);
	remove_file(folder, "ca.crt");
	remove_file(folder, "namespace");
	remove_file(folder, "token");
	rmdir(folder);
	free(host);
	free(port);
	free(namespace_name);
	return 0;
}
