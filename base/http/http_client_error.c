// SPDX-License-Identifier: Apache-2.0
// Errors of libcurl, as errors that a person can act on.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/http/http_client_internal.h"

// The message of curl, else its name for the code; control characters replaced, as some of it comes from the peer.
static void describe(const struct http_call *call, CURLcode code, char *out, size_t size)
{
	const char *text = call->slot ? call->slot->error_text : "";
	snprintf(out, size, "%s", text[0] ? text : curl_easy_strerror(code));
	for (char *p = out; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	}
}

static int os_error(const struct http_call *call)
{
	long code = 0;
	curl_easy_getinfo(call->slot->easy, CURLINFO_OS_ERRNO, &code);
	return (int)code;
}

static curl_off_t time_of(const struct http_call *call, CURLINFO info)
{
	curl_off_t us = 0;
	curl_easy_getinfo(call->slot->easy, info, &us);
	return us;
}

// curl counts the TLS handshake as part of connecting.
static const char *no_connection_hint(const struct http_call *call)
{
	return call->https ? "is the address right, reachable, and does it speak TLS?"
	                   : "is the address right and reachable?";
}

// How far a call came, for "gave up after 30 s".
static void describe_phase(const struct http_call *call, char *out, size_t size)
{
	if (!call->slot)
		snprintf(out, size, "it still waited in the queue behind other requests; is the peer slow?");
	else if (call->header_bytes > 0) // curl sets its "start of transfer" early on HTTP/2
		snprintf(out, size, "%zu bytes of the body had come", call->slot->body.len);
	else if (time_of(call, CURLINFO_PRETRANSFER_TIME_T) > 0)
		snprintf(out, size, "the request was sent, no reply had come");
	else if (time_of(call, CURLINFO_NAMELOOKUP_TIME_T) > 0)
		snprintf(out, size, "no connection yet; %s", no_connection_hint(call));
	else
		snprintf(out, size, "the host name was not resolved yet; does DNS answer?");
}

void http_error_of_deadline(const struct http_call *call, struct err *e)
{
	if (call->is_open) {
		err_set_code(e, ERR_TIMEOUT, CURLE_OPERATION_TIMEDOUT,
		             "%s: the stream has been silent for %" PRId64 " ms; is the peer still there?", call->place,
		             call->idle_timeout_ms);
		return;
	}
	char phase[128];
	describe_phase(call, phase, sizeof phase);
	err_set_code(e, ERR_TIMEOUT, CURLE_OPERATION_TIMEDOUT, "%s: no complete reply within %" PRId64 " ms: %s",
	             call->place, call->timeout_ms, phase);
}

static void error_of_connect(const struct http_call *call, int code, const char *text, struct err *e)
{
	int os = os_error(call);
	if (os == ECONNREFUSED)
		err_set_code(e, ERR_UNREACHABLE, code,
		             "%s: connection refused; is the server running and listening at this address?",
		             call->place);
	else
		err_set_code(e, ERR_UNREACHABLE, code, "%s: cannot connect: %s", call->place, os ? strerror(os) : text);
}

static void error_of_tls(const struct http_call *call, int code, const char *text, struct err *e)
{
	const struct http_tls_note *note = &call->client->tls_note;
	const char *name = call->tls && call->tls->tls.server_name ? call->tls->tls.server_name : call->host;
	if (note->x509_error)
		err_set_code(e, ERR_TLS, code, "%s: %s", call->place, note->text);
	else if (code == CURLE_SSL_CACERT_BADFILE && !(call->tls && (call->tls->tls.ca_file || call->tls->tls.ca_pem)))
		err_set_code(
		        e, ERR_TLS, code,
		        "%s: this machine has no CA certificates to verify the server with (%s); install the package "
		        "ca-certificates, or name a CA file",
		        call->place, text);
	else if (strstr(text, "subject name") || strstr(text, "does not match"))
		err_set_code(e, ERR_TLS, code,
		             "%s: the server's certificate is not for \"%.100s\"; use a name it is for, or set the TLS "
		             "server name",
		             call->place, name);
	else if (strstr(text, "certificate required") || strstr(text, "bad certificate") ||
	         strstr(text, "handshake failure"))
		err_set_code(e, ERR_TLS, code,
		             "%s: the server refused the handshake (%s); does it want another client certificate?",
		             call->place, text);
	else if (strstr(text, "wrong version number"))
		err_set_code(e, ERR_TLS, code,
		             "%s: the server does not speak TLS here; is it http:// rather than https://?",
		             call->place);
	else
		err_set_code(e, ERR_TLS, code, "%s: %s", call->place, text);
}

// Errors that are explained by the code alone: "PLACE: BEFORE", then the host or curl's text, and AFTER.
// clang-format off
static const struct {
	CURLcode code;
	enum err_kind kind;
	const char *before;
	enum { NOTHING, HOST, TEXT } shown;
	const char *after;
} causes[] = {
	{CURLE_COULDNT_RESOLVE_HOST,  ERR_UNREACHABLE, "the name \"",                                          HOST,    "\" does not resolve; is it right, and does DNS work here?"},
	{CURLE_COULDNT_RESOLVE_PROXY, ERR_UNREACHABLE, "the proxy's name does not resolve",                    NOTHING, "; see http_proxy, https_proxy, no_proxy in the environment"},
	{CURLE_GOT_NOTHING,           ERR_UNREACHABLE, "the server closed the connection without a reply",     NOTHING, ""},
	{CURLE_PARTIAL_FILE,          ERR_UNREACHABLE, "the connection ended in the middle of the reply: ",    TEXT,    ""},
	{CURLE_SEND_ERROR,            ERR_UNREACHABLE, "the connection broke: ",                               TEXT,    ""},
	{CURLE_RECV_ERROR,            ERR_UNREACHABLE, "the connection broke: ",                               TEXT,    ""},
	{CURLE_HTTP2,                 ERR_UNREACHABLE, "the HTTP/2 connection broke: ",                        TEXT,    ""},
	{CURLE_HTTP2_STREAM,          ERR_UNREACHABLE, "the HTTP/2 connection broke: ",                        TEXT,    ""},
	{CURLE_UNSUPPORTED_PROTOCOL,  ERR_PROTOCOL,    "not a valid HTTP reply (",                             TEXT,    "); is this the right port?"}, // HTTP/0.9: the scheme was checked at submission
	{CURLE_WEIRD_SERVER_REPLY,    ERR_PROTOCOL,    "not a valid HTTP reply (",                             TEXT,    "); is this the right port?"},
	{CURLE_BAD_CONTENT_ENCODING,  ERR_PROTOCOL,    "not a valid HTTP reply (",                             TEXT,    "); is this the right port?"},
	{CURLE_HTTP_RETURNED_ERROR,   ERR_PROTOCOL,    "not a valid HTTP reply (",                             TEXT,    "); is this the right port?"},
};
static const CURLcode tls_codes[] = {
	CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
	CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
	CURLE_SSL_ENGINE_INITFAILED, CURLE_USE_SSL_FAILED,
};
// clang-format on

static bool is_of_tls(CURLcode code, const char *text)
{
	// A TLS 1.3 server's refusal of the client certificate arrives after the handshake.
	if (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR)
		return strstr(text, "alert") != NULL;
	for (size_t i = 0; i < sizeof tls_codes / sizeof tls_codes[0]; i++)
		if (tls_codes[i] == code)
			return true;
	return false;
}

void http_error_of_curl(const struct http_call *call, CURLcode result, struct err *e)
{
	int code = (int)result;
	char text[CURL_ERROR_SIZE];
	describe(call, result, text, sizeof text);
	if (call->slot->refused.kind != ERR_NONE) {
		*e = call->slot->refused;
		return;
	}
	if (result == CURLE_COULDNT_CONNECT) {
		error_of_connect(call, code, text, e);
		return;
	}
	if (is_of_tls(result, text)) {
		error_of_tls(call, code, text, e);
		return;
	}
	err_set_code(e, ERR_INTERNAL, code, "%s: %s (curl %d)", call->place, text, code);
	if (result == CURLE_OPERATION_TIMEDOUT) // only the connect timeout is curl's; the deadline is ours
		err_set_code(e, ERR_TIMEOUT, code, "%s: no connection within %" PRId64 " ms; %s", call->place,
		             call->connect_timeout_ms, no_connection_hint(call));
	else if ((result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR) && strstr(text, "chunked"))
		err_set_code(e, ERR_PROTOCOL, code, "%s: broken reply: %s", call->place, text);
	else
		for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
			if (causes[i].code == result)
				err_set_code(e, causes[i].kind, code, "%s: %s%s%s", call->place, causes[i].before,
				             causes[i].shown == NOTHING ? ""
				             : causes[i].shown == HOST  ? call->host
				                                        : text,
				             causes[i].after);
}
