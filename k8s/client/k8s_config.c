// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_config.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/http/service_account.h"
#include "base/schema/doc.h"
#include "k8s/client/k8s_request.h"

#define KUBECONFIG_ARENA_BYTES   (64 * 1024 * 1024)
#define NAMESPACE_FILE_BYTES_MAX 256
#define SERVER_BYTES             1024
#define NAMES_SHOWN_MAX          8
#define NAMES_COMPARED_MAX       256

// A named entry and its file, for messages and relative paths.
struct entry {
	const struct kubeconfig_file *file;
	const struct doc_node *node; // the map under "cluster", "user" or "context"
	const char *what, *name;     // "user", "alice"
};

static int entry_error(const struct entry *en, enum err_kind kind, const char *key, const char *text, struct err *e)
{
	return err_set(e, kind, "%s: %s \"%s\": %s%s%s", en->file->path, en->what, en->name, key, key[0] ? ": " : "",
	               text);
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory for the kubeconfig");
}

int kubeconfig_add(struct kubeconfig *k, struct arena *a, const char *path, const char *text, size_t len, struct err *e)
{
	if (k->n_files == KUBECONFIG_FILES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d kubeconfig files", KUBECONFIG_FILES_MAX);
	struct doc_file doc = {0};
	if (doc_parse_yaml(a, path, text, len, &doc, e) < 0)
		return -1;
	if (doc.n_roots > 1)
		return err_set(e, ERR_INPUT, "%s: %zu YAML documents; a kubeconfig is one", path, doc.n_roots);
	const struct doc_node *root = doc.n_roots ? doc.roots[0] : NULL;
	if (root && root->kind != DOC_MAP && root->kind != DOC_NULL)
		return err_set(e, ERR_INPUT,
		               "%s: not a kubeconfig: the top must be a map with clusters, users, contexts", path);
	const char *kind = doc_get_text(root, "kind", "Config");
	if (strcmp(kind, "Config") != 0)
		return err_set(e, ERR_INPUT, "%s: not a kubeconfig: kind is \"%s\", not \"Config\"", path, kind);
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? arena_strndup(a, path, (size_t)(slash - path) + 1) : "";
	if (!folder)
		return no_memory(e);
	k->files[k->n_files++] = (struct kubeconfig_file){.path = path, .folder = folder, .root = root};
	return 0;
}

static void wipe_node(const struct doc_node *n)
{
	for (; n; n = n->next) {
		if (n->text_len)
			OPENSSL_cleanse((void *)(uintptr_t)n->text, n->text_len);
		wipe_node(n->child); // depth is bounded by DOC_DEPTH_MAX
	}
}

void kubeconfig_wipe(struct kubeconfig *k)
{
	for (size_t i = 0; i < k->n_files; i++)
		wipe_node(k->files[i].root);
	k->n_files = 0;
}

// ---- finding entries ----

// Finds an entry of "plural: [{name: N, what: {..}}]" in all files; the first file with the name wins, as in kubectl.
static bool find_entry(const struct kubeconfig *k, const char *plural, const char *what, const char *name,
                       struct entry *ret_entry)
{
	for (size_t i = 0; i < k->n_files; i++) {
		const struct doc_node *list = doc_get(k->files[i].root, plural);
		for (const struct doc_node *n = list ? list->child : NULL; n; n = n->next)
			if (strcmp(doc_get_text(n, "name", ""), name) == 0) {
				*ret_entry = (struct entry){
				        .file = &k->files[i], .node = doc_get(n, what), .what = what, .name = name};
				return true;
			}
	}
	return false;
}

// Reports that a name does not exist, with the most similar name or the first few names.
static int unknown_entry(const struct kubeconfig *k, const char *plural, const char *what, const char *name,
                         const char *who_asks, struct err *e)
{
	const char *names[NAMES_COMPARED_MAX];
	size_t n_names = 0;
	struct buf shown;
	buf_init(&shown, 300);
	for (size_t i = 0; i < k->n_files; i++) {
		const struct doc_node *list = doc_get(k->files[i].root, plural);
		for (const struct doc_node *n = list ? list->child : NULL; n && n_names < NAMES_COMPARED_MAX;
		     n = n->next) {
			names[n_names] = doc_get_text(n, "name", "");
			if (n_names < NAMES_SHOWN_MAX)
				buf_printf(&shown, "%s%s", n_names ? ", " : "", names[n_names]);
			n_names++;
		}
	}
	const char *closest = num_closest_name(name, names, n_names);
	if (closest)
		err_set(e, ERR_INPUT, "%s: %s \"%s\" does not exist; did you mean \"%s\"?", who_asks, what, name,
		        closest);
	else if (n_names == 0)
		err_set(e, ERR_INPUT, "%s: %s \"%s\" does not exist; there are no %s at all", who_asks, what, name,
		        plural);
	else
		err_set(e, ERR_INPUT, "%s: %s \"%s\" does not exist; there are: %s%s", who_asks, what, name,
		        buf_str(&shown), n_names > NAMES_SHOWN_MAX ? ", ..." : "");
	buf_done(&shown);
	return -1;
}

// ---- fields ----

static int copy_text(struct arena *a, const struct entry *en, const char *key, const char **ret_text, struct err *e)
{
	const struct doc_node *n = doc_get(en->node, key);
	*ret_text = NULL;
	if (!n || n->kind == DOC_NULL)
		return 0;
	if (n->kind != DOC_SCALAR)
		return entry_error(en, ERR_INPUT, key, "must be a text", e);
	if (n->text_len == 0)
		return 0; // kubectl treats "" as not set
	if (strlen(n->text) != n->text_len)
		return entry_error(en, ERR_INPUT, key, "contains a NUL byte", e);
	*ret_text = arena_strndup(a, n->text, n->text_len);
	return *ret_text ? 0 : no_memory(e);
}

// A value that is not a map has no fields, and would look like a map without any.
static int check_map(const struct entry *en, struct err *e)
{
	bool is_map = !en->node || en->node->kind == DOC_MAP || en->node->kind == DOC_NULL;
	return is_map ? 0 : entry_error(en, ERR_INPUT, "", "must be a map", e);
}

static int read_bool(const struct entry *en, const char *key, bool *ret_value, struct err *e)
{
	const struct doc_node *n = doc_get(en->node, key);
	const char *text = n && n->kind != DOC_NULL ? doc_get_text(en->node, key, "") : "false";
	*ret_value = strcmp(text, "true") == 0;
	if (!*ret_value && strcmp(text, "false") != 0)
		return entry_error(en, ERR_INPUT, key, "must be true or false", e);
	return 0;
}

// Resolves a path relative to its file. The file must be readable now: later, the error would be far from its cause.
static int copy_path(struct arena *a, const struct entry *en, const char *key, const char **ret_path, struct err *e)
{
	const char *path;
	if (copy_text(a, en, key, &path, e) < 0)
		return -1;
	*ret_path = path;
	if (!path)
		return 0;
	if (path[0] != '/') {
		*ret_path = arena_printf(a, "%s%s", en->file->folder, path);
		if (!*ret_path)
			return no_memory(e);
	}
	if (access(*ret_path, R_OK) < 0) {
		int why = errno;
		return err_set_code(e, why == ENOENT ? ERR_NOT_FOUND : ERR_IO, why,
		                    "%s: %s \"%s\": %s: cannot read %s: %s", en->file->path, en->what, en->name, key,
		                    *ret_path, strerror(why));
	}
	return 0;
}

// Decodes base64 text[0..len), skipping spaces and line ends, to NUL-terminated PEM in `a`. The message of an error
// never contains the data.
static int pem_from_base64(struct arena *a, const char *text, size_t len, const char **ret_pem, struct err *e)
{
	if (len > INT_MAX / 2)
		return err_set(e, ERR_LIMIT, "%zu bytes of base64 are too large for a certificate", len);
	char *packed = arena_alloc(a, len + 1), *pem = arena_alloc(a, len / 4 * 3 + 1);
	if (!packed || !pem)
		return err_no_memory(e);
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]))
			packed[n++] = text[i];
	packed[n] = '\0';
	size_t pem_len = text_from_base64(packed, pem, len / 4 * 3);
	if (pem_len == 0)
		return err_set(e, ERR_INPUT, "is not base64");
	pem[pem_len] = '\0';
	if (strlen(pem) != pem_len || !strstr(pem, "-----BEGIN "))
		return err_set(e, ERR_INPUT, "is base64, but not of a PEM file (\"-----BEGIN ...\")");
	*ret_pem = pem;
	return 0;
}

// X-data (base64 of PEM) wins over X (a file).
static int copy_pem(struct arena *a, const struct entry *en, const char *file_key, const char *data_key,
                    const char **ret_file, const char **ret_pem, struct err *e)
{
	*ret_file = *ret_pem = NULL;
	const struct doc_node *data = doc_get(en->node, data_key);
	if (data && data->kind != DOC_SCALAR && data->kind != DOC_NULL)
		return entry_error(en, ERR_INPUT, data_key, "must be a text", e);
	if (!data || data->text_len == 0)
		return copy_path(a, en, file_key, ret_file, e);
	if (pem_from_base64(a, data->text, data->text_len, ret_pem, e) < 0)
		return err_wrap(e, "%s: %s \"%s\": %s", en->file->path, en->what, en->name, data_key);
	return 0;
}

static int resolve_cluster(struct arena *a, const struct entry *en, struct k8s_config *c, struct err *e)
{
	const char *server, *proxy;
	if (copy_text(a, en, "server", &server, e) < 0 || copy_text(a, en, "proxy-url", &proxy, e) < 0 ||
	    copy_text(a, en, "tls-server-name", &c->tls.server_name, e) < 0 ||
	    read_bool(en, "insecure-skip-tls-verify", &c->tls.insecure_skip_verify, e) < 0 ||
	    copy_pem(a, en, "certificate-authority", "certificate-authority-data", &c->tls.ca_file, &c->tls.ca_pem, e) <
	            0)
		return -1;
	if (!server)
		return entry_error(en, ERR_INPUT, "server", "missing; write the API server's URL, https://HOST:PORT",
		                   e);
	if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
		return entry_error(en, ERR_INPUT, "server", "must start with https:// (or http://)", e);
	const char *host = strstr(server, "://") + 3;
	if (!host[0] || strchr("/:", host[0]))
		return entry_error(en, ERR_INPUT, "server", "has no host; write https://HOST:PORT", e);
	if (strchr(host, '@')) // it would appear in messages
		return entry_error(en, ERR_INPUT, "server",
		                   "has a password inside; write username and password of the user", e);
	if (strpbrk(server, " \t\r\n?#"))
		return entry_error(en, ERR_INPUT, "server",
		                   "must be https://HOST:PORT[/PREFIX], without blanks, ? or #", e);
	if (proxy)
		return entry_error(en, ERR_UNSUPPORTED, "proxy-url",
		                   "not supported: reach the API server without a proxy", e);
	if (c->tls.insecure_skip_verify && (c->tls.ca_file || c->tls.ca_pem))
		return entry_error(en, ERR_INPUT, "insecure-skip-tls-verify",
		                   "contradicts the certificate authority beside it; remove one of the two", e);
	size_t len = strlen(server);
	while (len > 0 && server[len - 1] == '/')
		len--;
	c->server = arena_strndup(a, server, len);
	return c->server ? 0 : no_memory(e);
}

static int resolve_exec_list(struct arena *a, const struct entry *en, const struct doc_node *exec, const char *key,
                             const char *const **ret_list, struct err *e)
{
	const struct doc_node *list = doc_get(exec, key);
	size_t n = list && list->kind == DOC_SEQ ? list->n_children : 0;
	if (list && list->kind != DOC_SEQ && list->kind != DOC_NULL)
		return err_set(e, ERR_INPUT, "%s:%d: user \"%s\": exec.%s: must be a list", en->file->path, list->line,
		               en->name, key);
	if (n > K8S_EXEC_ARGS_MAX)
		return err_set(e, ERR_LIMIT, "%s: user \"%s\": exec.%s: %zu entries, at most %d", en->file->path,
		               en->name, key, n, K8S_EXEC_ARGS_MAX);
	const char **texts = arena_calloc(a, n + 1, sizeof *texts);
	if (!texts)
		return no_memory(e);
	bool is_env = strcmp(key, "env") == 0;
	size_t i = 0;
	for (const struct doc_node *item = n ? list->child : NULL; item; item = item->next, i++) {
		const struct doc_node *value = is_env ? doc_get(item, "value") : item;
		const char *name = doc_get_text(item, "name", "");
		bool is_text = value && value->kind == DOC_SCALAR && strlen(value->text) == value->text_len;
		bool is_absent = is_env && (!value || value->kind == DOC_NULL);
		if ((!is_text && !is_absent) || (is_env && (item->kind != DOC_MAP || !name[0] || strchr(name, '='))))
			return err_set(e, ERR_INPUT, "%s:%d: user \"%s\": exec.%s: must be a list of %s",
			               en->file->path, item->line, en->name, key, is_env ? "{name, value}" : "texts");
		texts[i] = is_env ? arena_printf(a, "%s=%s", name, doc_get_text(item, "value", ""))
		                  : arena_strndup(a, item->text, item->text_len);
		if (!texts[i])
			return no_memory(e);
	}
	*ret_list = texts;
	return 0;
}

static int resolve_exec(struct arena *a, const struct entry *user, struct k8s_config *c, struct err *e)
{
	struct entry en = *user;
	en.node = doc_get(user->node, "exec");
	if (!en.node || en.node->kind == DOC_NULL)
		return 0;
	struct k8s_exec *x = arena_alloc(a, sizeof *x);
	if (!x)
		return no_memory(e);
	const char *command, *mode;
	if (copy_text(a, &en, "apiVersion", &x->api_version, e) < 0 || copy_text(a, &en, "command", &command, e) < 0 ||
	    copy_text(a, &en, "installHint", &x->install_hint, e) < 0 ||
	    copy_text(a, &en, "interactiveMode", &mode, e) < 0 ||
	    read_bool(&en, "provideClusterInfo", &x->provide_cluster_info, e) < 0 ||
	    resolve_exec_list(a, &en, en.node, "args", &x->args, e) < 0 ||
	    resolve_exec_list(a, &en, en.node, "env", &x->env, e) < 0)
		return -1;
	if (!command)
		return entry_error(&en, ERR_INPUT, "exec.command", "missing", e);
	if (!x->api_version)
		return entry_error(&en, ERR_INPUT, "exec.apiVersion", "missing; write client.authentication.k8s.io/v1",
		                   e);
	if (strcmp(x->api_version, "client.authentication.k8s.io/v1") != 0 &&
	    strcmp(x->api_version, "client.authentication.k8s.io/v1beta1") != 0)
		return entry_error(
		        &en, ERR_UNSUPPORTED, "exec.apiVersion",
		        "not supported: use client.authentication.k8s.io/v1 or v1beta1, and a plugin that speaks it",
		        e);
	if (mode && strcmp(mode, "Always") == 0)
		return entry_error(&en, ERR_UNSUPPORTED, "exec.interactiveMode",
		                   "not supported: Always; gpuscale has no terminal to offer, use Never or IfAvailable",
		                   e);
	// As in Go's exec: a name without '/' is looked up in $PATH.
	x->command = command;
	if (strchr(command, '/') && command[0] != '/')
		x->command = arena_printf(a, "%s%s", en.file->folder, command);
	x->source = arena_printf(a, "user \"%s\" in %s", en.name, en.file->path);
	if (!x->command || !x->source)
		return no_memory(e);
	c->exec = x;
	return 0;
}

static int resolve_user(struct arena *a, const struct entry *en, struct k8s_config *c, struct err *e)
{
	const char *impersonate;
	if (copy_text(a, en, "token", &c->token, e) < 0 || copy_path(a, en, "tokenFile", &c->token_file, e) < 0 ||
	    copy_text(a, en, "username", &c->basic_user, e) < 0 ||
	    copy_text(a, en, "password", &c->basic_password, e) < 0 || copy_text(a, en, "as", &impersonate, e) < 0 ||
	    copy_pem(a, en, "client-certificate", "client-certificate-data", &c->tls.cert_file, &c->tls.cert_pem, e) <
	            0 ||
	    copy_pem(a, en, "client-key", "client-key-data", &c->tls.key_file, &c->tls.key_pem, e) < 0 ||
	    resolve_exec(a, en, c, e) < 0)
		return -1;
	const struct doc_node *provider = doc_get(en->node, "auth-provider");
	if (provider && provider->kind != DOC_NULL)
		return err_set(e, ERR_UNSUPPORTED,
		               "%s: user \"%s\": auth-provider \"%s\" is not supported, nor by kubectl since 1.26: use "
		               "an exec "
		               "credential plugin (gke-gcloud-auth-plugin, kubelogin, aws eks get-token)",
		               en->file->path, en->name, doc_get_text(provider, "name", ""));
	if (impersonate)
		return entry_error(en, ERR_UNSUPPORTED, "as",
		                   "not supported: impersonation; use that user's own credentials", e);
	bool has_cert = c->tls.cert_file || c->tls.cert_pem, has_key = c->tls.key_file || c->tls.key_pem;
	if (has_cert != has_key)
		return entry_error(en, ERR_INPUT, has_cert ? "client-key" : "client-certificate",
		                   "missing; a client certificate and its key go together", e);
	if (c->basic_user && (c->token || c->token_file))
		return entry_error(en, ERR_INPUT, "username", "contradicts the token beside it; remove one of the two",
		                   e);
	if (c->token && strpbrk(c->token, "\r\n"))
		return entry_error(en, ERR_INPUT, "token", "contains a line end", e);
	return 0;
}

int kubeconfig_resolve(const struct kubeconfig *k, struct arena *a, const char *context, struct k8s_config *ret_config,
                       struct err *e)
{
	*ret_config = (struct k8s_config){0};
	const char *first = k->n_files ? k->files[0].path : "kubeconfig";
	const char *who_asks = context ? "--context" : first;
	for (size_t i = 0; i < k->n_files && !context; i++) {
		const char *current = doc_get_text(k->files[i].root, "current-context", "");
		if (current[0]) {
			context = current;
			who_asks = arena_printf(a, "%s: current-context", k->files[i].path);
		}
	}
	if (!who_asks)
		return no_memory(e);
	if (!context)
		return err_set(
		        e, ERR_INPUT,
		        "%s: no current-context; choose one with --context NAME or \"kubectl config use-context NAME\"",
		        first);
	struct entry ctx, cluster, user;
	if (!find_entry(k, "contexts", "context", context, &ctx))
		return unknown_entry(k, "contexts", "context", context, who_asks, e);
	const char *place = arena_printf(a, "%s: context \"%s\"", ctx.file->path, context);
	const char *cluster_name, *user_name;
	if (!place)
		return no_memory(e);
	if (check_map(&ctx, e) < 0 || copy_text(a, &ctx, "cluster", &cluster_name, e) < 0 ||
	    copy_text(a, &ctx, "user", &user_name, e) < 0)
		return -1;
	if (!cluster_name)
		return entry_error(&ctx, ERR_INPUT, "cluster", "missing", e);
	if (!find_entry(k, "clusters", "cluster", cluster_name, &cluster))
		return unknown_entry(k, "clusters", "cluster", cluster_name, place, e);
	if (check_map(&cluster, e) < 0 || resolve_cluster(a, &cluster, ret_config, e) < 0)
		return -1;
	if (user_name) { // without a user: anonymous access
		if (!find_entry(k, "users", "user", user_name, &user))
			return unknown_entry(k, "users", "user", user_name, place, e);
		if (check_map(&user, e) < 0 || resolve_user(a, &user, ret_config, e) < 0)
			return -1;
	}
	if (copy_text(a, &ctx, "namespace", &ret_config->namespace_name, e) < 0)
		return -1;
	ret_config->source = arena_printf(a, "context \"%s\" of %s", context, ctx.file->path);
	return ret_config->source ? 0 : no_memory(e);
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
