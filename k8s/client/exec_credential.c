// SPDX-License-Identifier: Apache-2.0
// The two documents of the plugin protocol: the input in KUBERNETES_EXEC_INFO, and the output.
#include "k8s/client/k8s_exec.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "k8s/client/k8s_config.h"

#define CA_BYTES_MAX (1024 * 1024)

static void wipe_free(char **text)
{
	if (*text) {
		OPENSSL_cleanse(*text, strlen(*text));
		free(*text);
	}
	*text = NULL;
}

void k8s_exec_result_done(struct k8s_exec_result *r)
{
	wipe_free(&r->token);
	wipe_free(&r->cert_pem);
	wipe_free(&r->key_pem);
	r->expires_wall_ms = 0;
}

// Copies a member and overwrites the original.
static int take_text(const cJSON *status, const char *key, char **ret_text, struct err *e)
{
	const cJSON *item = json_get(status, key);
	*ret_text = NULL;
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsString(item))
		return err_set(e, ERR_AUTH, "printed an ExecCredential whose status.%s is not a string", key);
	if (item->valuestring[0]) {
		*ret_text = strdup(item->valuestring);
		if (!*ret_text)
			return err_no_memory(e);
	}
	OPENSSL_cleanse(item->valuestring, strlen(item->valuestring));
	return 0;
}

static int decode_status(const cJSON *root, const char *api_version, struct k8s_exec_result *r, struct err *e)
{
	const char *kind = json_get_str(root, "kind", ""), *version = json_get_str(root, "apiVersion", "");
	if (strcmp(kind, "ExecCredential") != 0)
		return err_set(e, ERR_AUTH, "printed JSON that is not an ExecCredential");
	if (strcmp(version, api_version) != 0)
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential of apiVersion \"%.60s\", but the kubeconfig says \"%s\"",
		               version, api_version);
	const cJSON *status = json_get(root, "status");
	if (take_text(status, "token", &r->token, e) < 0 ||
	    take_text(status, "clientCertificateData", &r->cert_pem, e) < 0 ||
	    take_text(status, "clientKeyData", &r->key_pem, e) < 0)
		return -1;
	if (!r->cert_pem != !r->key_pem)
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential with only one of clientCertificateData and clientKeyData");
	if (!r->token && !r->cert_pem)
		return err_set(e, ERR_AUTH, "printed an ExecCredential with neither a token nor a client certificate");
	if (r->token && (strlen(r->token) > K8S_TOKEN_BYTES_MAX || strpbrk(r->token, "\r\n\t ")))
		return err_set(e, ERR_AUTH, "printed a token that is too long, or has blanks inside");
	const cJSON *expiry = json_get(status, "expirationTimestamp");
	if (!json_may_be(expiry, cJSON_IsString))
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential whose status.expirationTimestamp is not a string");
	const char *expires = json_get_str(status, "expirationTimestamp", "");
	if (expires[0] && num_parse_rfc3339_ms(expires, strlen(expires), &r->expires_wall_ms, NULL) < 0)
		return err_set(e, ERR_AUTH, "printed an expirationTimestamp that is not an RFC 3339 time: \"%.40s\"",
		               expires);
	return 0;
}

int k8s_exec_decode(const char *api_version, const char *text, size_t len, struct k8s_exec_result *ret_result,
                    struct err *e)
{
	*ret_result = (struct k8s_exec_result){0};
	struct err why;
	cJSON *root = len ? json_read(text, len, &why) : NULL;
	if (!root)
		return err_set(e, ERR_AUTH, len ? "printed something that is not JSON" : "printed nothing");
	int rc = decode_status(root, api_version, ret_result, e);
	cJSON_Delete(root);
	if (rc < 0)
		k8s_exec_result_done(ret_result);
	return rc;
}

// Returns the CA of the cluster in base64, as the protocol requires; "" without one.
static int put_ca(struct json_writer *w, const struct http_tls *tls, struct err *e)
{
	struct buf pem;
	buf_init(&pem, CA_BYTES_MAX);
	int rc = 0;
	if (tls->ca_pem ? buf_puts(&pem, tls->ca_pem) < 0 : tls->ca_file && buf_read_file(&pem, tls->ca_file, e) < 0)
		rc = -1;
	unsigned char *text = rc == 0 && pem.len ? malloc((pem.len + 2) / 3 * 4 + 1) : NULL;
	if (text) {
		EVP_EncodeBlock(text, (const unsigned char *)pem.data, (int)pem.len);
		json_write_member_str(w, "certificate-authority-data", (char *)text);
	} else if (rc == 0 && pem.len) {
		rc = err_no_memory(e);
	}
	free(text);
	buf_done(&pem);
	return rc;
}

char *k8s_exec_info(const struct k8s_config *config, struct err *e)
{
	struct buf out;
	struct json_writer w;
	buf_init(&out, 2 * CA_BYTES_MAX);
	buf_puts(&out, "KUBERNETES_EXEC_INFO=");
	json_write_init(&w, &out, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "kind", "ExecCredential");
	json_write_member_str(&w, "apiVersion", config->exec->api_version);
	json_write_member_object(&w, "spec");
	json_write_member_bool(&w, "interactive", false);
	int rc = 0;
	if (config->exec->provide_cluster_info) {
		json_write_member_object(&w, "cluster");
		json_write_member_str(&w, "server", config->server);
		if (config->tls.server_name)
			json_write_member_str(&w, "tls-server-name", config->tls.server_name);
		if (config->tls.insecure_skip_verify)
			json_write_member_bool(&w, "insecure-skip-tls-verify", true);
		rc = put_ca(&w, &config->tls, e);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (rc == 0 && out.failed)
		rc = err_set(e, ERR_LIMIT, "KUBERNETES_EXEC_INFO would be larger than %d bytes", 2 * CA_BYTES_MAX);
	if (rc == 0)
		return out.data; // the caller owns it; a buf is malloc'ed memory
	buf_done(&out);
	return NULL;
}
