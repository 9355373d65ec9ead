// SPDX-License-Identifier: Apache-2.0
// Goal: kubeconfig files mean what they mean to kubectl, and a wrong one is refused with file, entry and fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "k8s/client/k8s_config.h"

struct fixture {
	char folder[64];
	struct arena arena;
	struct k8s_config config;
	struct err err;
};

static const char *const files[] = {"config", "second", "ca.crt", "client.crt", "client.key", "token", "namespace"};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	snprintf(f->folder, sizeof f->folder, "/tmp/gpuscale-k8s-config.XXXXXX");
	if (!mkdtemp(f->folder)) {
		free(f);
		return -1;
	}
	arena_init(&f->arena, 4 * 1024 * 1024);
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
	setenv("HOME", f->folder, 1);
	*state = f;
	return 0;
}

static void path_of(const struct fixture *f, const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", f->folder, name);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		path_of(f, files[i], path);
		unlink(path);
	}
	path_of(f, ".kube/config", path);
	unlink(path);
	path_of(f, ".kube", path);
	rmdir(path);
	int rc = rmdir(f->folder); // fails when a test left something behind
	arena_done(&f->arena);
	free(f);
	return rc;
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[128];
	path_of(f, name, path);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fputs(text, out) >= 0, 1);
	assert_int_equal(fclose(out), 0);
}

static int load(struct fixture *f, const char *kubeconfig, const char *context)
{
	char path[128];
	path_of(f, kubeconfig ? kubeconfig : "", path);
	struct k8s_config_options o = {.kubeconfig = kubeconfig ? path : NULL, .context = context};
	err_clear(&f->err);
	return k8s_config_load(&f->arena, &o, &f->config, &f->err);
}

static void load_ok(struct fixture *f, const char *kubeconfig, const char *context)
{
	if (load(f, kubeconfig, context) < 0)
		fail_msg("refused: %s", f->err.msg);
}

#define CONFIG(cluster, user)                                                                                          \
	"apiVersion: v1\nkind: Config\ncurrent-context: dev\n"                                                         \
	"contexts: [{name: dev, context: {cluster: c, user: u, namespace: serving}}]\n"                                \
	"clusters: [{name: c, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user "}}]\n"

static void token_and_inline_ca_are_read(void **state)
{
	struct fixture *f = *state;
	// base64 of "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n", split over lines as some tools
	// write it
	write_file(f, "config",
	           "apiVersion: v1\nkind: Config\ncurrent-context: dev\npreferences: {colors: true}\nextensions: []\n"
	           "contexts: [{name: dev, context: {cluster: c, user: u}}]\n"
	           "users: [{name: u, user: {token: s3cret}}]\nclusters:\n- name: c\n  cluster:\n    server: "
	           "https://h:6443/\n"
	           "    certificate-authority-data: |\n      LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\n"
	           "      CkFBCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K\n");
	load_ok(f, "config", NULL);
	assert_string_equal(f->config.server, "https://h:6443");
	assert_string_equal(f->config.token, "s3cret");
	assert_string_equal(f->config.namespace_name, "default");
	assert_string_equal(f->config.tls.ca_pem, "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n");
	assert_null(f->config.tls.ca_file);
	assert_non_null(strstr(f->config.source, "context \"dev\" of "));
}

static void relative_paths_start_at_their_file(void **state)
{
	struct fixture *f = *state;
	char expected[128];
	write_file(f, "ca.crt", "x");
	write_file(f, "client.crt", "x");
	write_file(f, "client.key", "x");
	write_file(f, "token", "t");
	write_file(f, "config",
	           CONFIG("server: 'https://h', certificate-authority: ca.crt, tls-server-name: other.name",
	                  "client-certificate: client.crt, client-key: client.key, tokenFile: token"));
	load_ok(f, "config", NULL);
	path_of(f, "ca.crt", expected);
	assert_string_equal(f->config.tls.ca_file, expected);
	path_of(f, "client.key", expected);
	assert_string_equal(f->config.tls.key_file, expected);
	path_of(f, "token", expected);
	assert_string_equal(f->config.token_file, expected);
	assert_string_equal(f->config.tls.server_name, "other.name");
	assert_string_equal(f->config.namespace_name, "serving");
}

static void first_file_of_a_list_wins_per_entry(void **state)
{
	struct fixture *f = *state;
	char first[128], second[128], list[512];
	path_of(f, "config", first);
	path_of(f, "second", second);
	write_file(f, "config",
	           "users: [{name: u, user: {token: first}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n");
	write_file(f, "second",
	           "current-context: a\nusers: [{name: u, user: {token: second}}, {name: v, user: {username: n, "
	           "password: p}}]\n"
	           "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
	           "contexts: [{name: a, context: {cluster: wrong}}, {name: b, context: {cluster: c, user: v}}]\n");
	snprintf(list, sizeof list, "/nowhere/at/all:%s::%s", first, second);
	setenv("KUBECONFIG", list, 1);
	load_ok(f, NULL, NULL);
	assert_string_equal(f->config.token, "first");
	load_ok(f, NULL, "b");
	assert_string_equal(f->config.basic_user, "n");
	assert_string_equal(f->config.basic_password, "p");
	assert_null(f->config.token);
}

static void home_folder_is_the_default(void **state)
{
	struct fixture *f = *state;
	char folder[128];
	path_of(f, ".kube", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(f, ".kube/config", CONFIG("server: 'https://home'", "token: t"));
	load_ok(f, NULL, NULL);
	assert_string_equal(f->config.server, "https://home");
	struct k8s_config_options o = {.namespace_name = "mine"};
	assert_int_equal(k8s_config_load(&f->arena, &o, &f->config, &f->err), 0);
	assert_string_equal(f->config.namespace_name, "mine");
}

static void exec_plugins_are_read(void **state)
{
	struct fixture *f = *state;
	char expected[128];
	write_file(
	        f, "config",
	        CONFIG("server: 'https://h'",
	               "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [get, --token], "
	               "env: [{name: "
	               "A, value: b}], installHint: get it, provideClusterInfo: true, interactiveMode: IfAvailable}"));
	load_ok(f, "config", NULL);
	const struct k8s_exec *x = f->config.exec;
	assert_non_null(x);
	path_of(f, "./login", expected);
	assert_string_equal(x->command, expected);
	assert_string_equal(x->args[0], "get");
	assert_string_equal(x->args[1], "--token");
	assert_null(x->args[2]);
	assert_string_equal(x->env[0], "A=b");
	assert_null(x->env[1]);
	assert_string_equal(x->install_hint, "get it");
	assert_true(x->provide_cluster_info);
}

struct refusal {
	const char *name, *text;
	enum err_kind kind;
	const char *says; // must be in the message
};
#define EXEC "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
static const struct refusal refusals[] = {
        {"no yaml", "{", ERR_INPUT, "config:1"},
        {"a list", "[1]\n", ERR_INPUT, "not a kubeconfig"},
        {"a pod", "kind: Pod\n", ERR_INPUT, "kind is \"Pod\""},
        {"empty", "", ERR_INPUT, "no current-context"},
        {"no such context", "current-context: dve\ncontexts: [{name: dev, context: {}}]\n", ERR_INPUT,
         "did you mean \"dev\"?"},
        {"no contexts", "current-context: dev\n", ERR_INPUT, "there are no contexts at all"},
        {"no cluster", "current-context: d\ncontexts: [{name: d, context: {cluster: x}}]\n", ERR_INPUT,
         "cluster \"x\" does not exist"},
        {"no server", CONFIG("", "token: t"), ERR_INPUT, "cluster \"c\": server: missing"},
        {"no scheme", CONFIG("server: h:6443", "token: t"), ERR_INPUT, "https://"},
        {"no host", CONFIG("server: 'https:///'", "token: t"), ERR_INPUT, "has no host"},
        {"a password in the URL", CONFIG("server: 'https://n:hush@h'", ""), ERR_INPUT, "password inside"},
        {"a map for a text", CONFIG("server: {a: b}", "token: t"), ERR_INPUT, "server: must be a text"},
        {"a user that is a text",
         "current-context: d\ncontexts: [{name: d, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: hush}]\n",
         ERR_INPUT, "user \"u\": must be a map"},
        {"a cluster that is a text",
         "current-context: d\ncontexts: [{name: d, context: {cluster: c}}]\nclusters: [{name: c, cluster: "
         "'https://h'}]\n",
         ERR_INPUT, "cluster \"c\": must be a map"},
        {"a context that is a list", "current-context: d\ncontexts: [{name: d, context: [c, u]}]\n", ERR_INPUT,
         "context \"d\": must be a map"},
        {"a user's name that is none",
         "current-context: d\ncontexts: [{name: d, context: {cluster: c, user: [u]}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://h'}}]\n",
         ERR_INPUT, "context \"d\": user: must be a text"},
        {"a boolean that is a list", CONFIG("server: 'https://h', insecure-skip-tls-verify: [true]", ""), ERR_INPUT,
         "must be true or false"},
        {"a CA that is a list", CONFIG("server: 'https://h', certificate-authority-data: [QUJD]", ""), ERR_INPUT,
         "certificate-authority-data: must be a text"},
        {"a proxy", CONFIG("server: 'https://h', proxy-url: 'http://p'", "token: t"), ERR_UNSUPPORTED,
         "proxy-url: not supported"},
        {"bad boolean", CONFIG("server: 'https://h', insecure-skip-tls-verify: maybe", ""), ERR_INPUT,
         "must be true or false"},
        {"insecure with a CA",
         CONFIG("server: 'https://h', insecure-skip-tls-verify: true, certificate-authority: /dev/null", ""), ERR_INPUT,
         "contradicts"},
        {"a missing CA file", CONFIG("server: 'https://h', certificate-authority: gone.crt", ""), ERR_NOT_FOUND,
         "gone.crt: No such file"},
        {"bad base64", CONFIG("server: 'https://h', certificate-authority-data: 'a b!'", ""), ERR_INPUT,
         "certificate-authority-data: is not base64"},
        {"base64 of no PEM", CONFIG("server: 'https://h', certificate-authority-data: QUJD", ""), ERR_INPUT,
         "not of a PEM file"},
        {"a certificate without key", CONFIG("server: 'https://h'", "client-certificate: /dev/null"), ERR_INPUT,
         "client-key: missing"},
        {"two ways to say who", CONFIG("server: 'https://h'", "token: hush, username: n"), ERR_INPUT, "contradicts"},
        {"auth-provider", CONFIG("server: 'https://h'", "auth-provider: {name: gcp}"), ERR_UNSUPPORTED,
         "gke-gcloud-auth-plugin"},
        {"impersonation", CONFIG("server: 'https://h'", "as: alice"), ERR_UNSUPPORTED, "impersonation"},
        {"exec without a command", CONFIG("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1}"),
         ERR_INPUT, "exec.command: missing"},
        {"exec v1alpha1",
         CONFIG("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
         ERR_UNSUPPORTED, "v1beta1"},
        {"exec that wants a terminal",
         CONFIG("server: 'https://h'",
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}"),
         ERR_UNSUPPORTED, "Always"},
        {"exec env that is not a list of pairs",
         CONFIG("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [A=b]}"),
         ERR_INPUT, "{name, value}"},
        {"exec args given as a string", CONFIG("server: 'https://h'", EXEC "args: --token}"), ERR_INPUT,
         "exec.args: must be a list"},
        {"exec env that is a map", CONFIG("server: 'https://h'", EXEC "env: {A: b}}"), ERR_INPUT,
         "exec.env: must be a list"},
        {"exec env whose value is a list", CONFIG("server: 'https://h'", EXEC "env: [{name: A, value: [b]}]}"),
         ERR_INPUT, "{name, value}"},
        {"exec args with a NUL", CONFIG("server: 'https://h'", EXEC "args: [\"a\\0b\"]}"), ERR_INPUT,
         "must be a list of texts"},
};

static void wrong_file_is_refused_with_place_and_fix(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		write_file(f, "config", refusals[i].text);
		if (load(f, "config", NULL) == 0)
			fail_msg("%s: was accepted", refusals[i].name);
		if (f->err.kind != refusals[i].kind || !strstr(f->err.msg, refusals[i].says) ||
		    !strstr(f->err.msg, "config"))
			fail_msg("%s: %s: %s", refusals[i].name, err_kind_info(f->err.kind)->name, f->err.msg);
		assert_null(strstr(f->err.msg, "hush"));
	}
}

static void missing_explicit_file_is_an_error(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(load(f, "gone", NULL), -1);
	assert_int_equal(f->err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(f->err.msg, "/gone"));
	assert_int_equal(load(f, NULL, NULL), -1);
	assert_non_null(strstr(f->err.msg, "--kubeconfig FILE"));
}

static void pod_uses_its_service_account(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), -1);
	assert_int_equal(f->err.kind, ERR_NOT_FOUND);
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), -1);
	assert_non_null(strstr(f->err.msg, "automountServiceAccountToken"));
	write_file(f, "token", "t");
	write_file(f, "ca.crt", "x");
	write_file(f, "namespace", "gpus\n");
	assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), 0);
	assert_string_equal(f->config.server, "https://[fd00::1]:443");
	assert_string_equal(f->config.namespace_name, "gpus");
	assert_string_equal(f->config.source, "in-cluster");
	assert_null(f->config.token);
	write_file(f, "namespace", " \n");
	assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), 0);
	assert_string_equal(f->config.namespace_name, "default");
}

static void pod_that_does_not_know_where_it_is_is_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const addresses[][2] = {{"10.0.0.1", "tcp://10.0.0.1:443"},
	                                           {"10.0.0.1", "0"},
	                                           {"10.0.0.1", "65536"},
	                                           {"10.0.0.1", "443 "},
	                                           {"10.0.0.1/x", "443"},
	                                           {"u:p@10.0.0.1", "443"},
	                                           {"[fd00::1]", "443"},
	                                           {"10.0.0.1\n", "443"}};
	write_file(f, "token", "t");
	write_file(f, "ca.crt", "x");
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
		setenv("KUBERNETES_SERVICE_HOST", addresses[i][0], 1);
		setenv("KUBERNETES_SERVICE_PORT", addresses[i][1], 1);
		assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), -1);
		assert_int_equal(f->err.kind, ERR_INPUT);
	}
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), 0);
	assert_string_equal(f->config.namespace_name, "default"); // no file
	char large[300];
	memset(large, 'n', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	const char *const names[] = {"a/b", "..", "a?b", large};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		write_file(f, "namespace", names[i]);
		assert_int_equal(k8s_config_in_cluster(&f->arena, f->folder, &f->config, &f->err), -1);
	}
}

static void wiped_config_keeps_no_secret(void **state)
{
	struct fixture *f = *state;
	write_file(f, "config",
	           CONFIG("server: 'https://h'",
	                  "token: s3cret, exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
	                  "args: [a], env: [{name: K, value: hush}]}"));
	load_ok(f, "config", NULL);
	const char *token = f->config.token, *env = f->config.exec->env[0];
	k8s_config_wipe(&f->config);
	for (size_t i = 0; i < strlen("s3cret"); i++)
		assert_int_equal(token[i], 0);
	assert_int_equal(env[2], 0);
	assert_null(f->config.token);
	assert_null(f->config.exec);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        CASE(token_and_inline_ca_are_read),
	        CASE(relative_paths_start_at_their_file),
	        CASE(first_file_of_a_list_wins_per_entry),
	        CASE(home_folder_is_the_default),
	        CASE(exec_plugins_are_read),
	        CASE(wrong_file_is_refused_with_place_and_fix),
	        CASE(missing_explicit_file_is_an_error),
	        CASE(pod_uses_its_service_account),
	        CASE(pod_that_does_not_know_where_it_is_is_refused),
	        CASE(wiped_config_keeps_no_secret),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
