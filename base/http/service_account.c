// SPDX-License-Identifier: Apache-2.0
#include "base/http/service_account.h"

#include "base/base.h"

int service_account_server(char *out, size_t size, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
	if (!host || !host[0] || !port || !port[0])
		return err_set(e, ERR_NOT_FOUND,
		               "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
	if (strpbrk(host, " \t\r\n/@?#[]") || num_parse_i64(port, strlen(port), 1, 65535, &(int64_t){0}, NULL) < 0)
		return err_set(
		        e, ERR_INPUT,
		        "in a cluster, but KUBERNETES_SERVICE_HOST \"%.100s\" and KUBERNETES_SERVICE_PORT \"%.20s\" "
		        "are not a valid address",
		        host, port);
	bool is_ipv6 = strchr(host, ':') != NULL;
	int n = snprintf(out, size, is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
	if (n < 0 || (size_t)n >= size)
		return err_set(e, ERR_LIMIT, "KUBERNETES_SERVICE_HOST has %zu bytes, the ceiling is %zu", strlen(host),
		               size - 1);
	return 0;
}

int token_file_read(const char *path, char **ret_token, struct err *e)
{
	struct buf text;
	buf_init(&text, TOKEN_FILE_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc < 0)
		err_wrap(e, "token file");
	size_t len = text.len;
	while (rc == 0 && len > 0 && strchr(" \t\r\n", text.data[len - 1]))
		text.data[--len] = '\0';
	if (rc == 0 && len == 0)
		rc = err_set(e, ERR_AUTH, "token file %s is empty", path);
	if (rc == 0 && (strlen(text.data) != len || strpbrk(text.data, " \t\r\n")))
		rc = err_set(e, ERR_AUTH, "token file %s contains blanks; expected one token", path);
	*ret_token = rc == 0 ? strdup(text.data) : NULL;
	if (rc == 0 && !*ret_token)
		rc = err_set(e, ERR_INTERNAL, "out of memory");
	buf_wipe(&text);
	return rc;
}
