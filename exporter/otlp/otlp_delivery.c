// SPDX-License-Identifier: Apache-2.0
#include "exporter/otlp/otlp_delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "base/text.h"

#define SHOWN_BYTES 200 // longest text of the endpoint in a message

int otlp_url(const char *endpoint, const char *path, char url[OTLP_URL_BYTES], struct err *e)
{
	size_t len = strlen(endpoint), path_len = strlen(path);
	while (len > 0 && endpoint[len - 1] == '/')
		len--;
	bool has_path = len >= path_len && memcmp(endpoint + len - path_len, path, path_len) == 0;
	int n = snprintf(url, OTLP_URL_BYTES, "%.*s%s", (int)len, endpoint, has_path ? "" : path);
	if (n < 0 || n >= OTLP_URL_BYTES)
		return err_set(e, ERR_LIMIT, "the URL has %zu bytes, the ceiling is %d", len, OTLP_URL_BYTES - 16);
	return 0;
}

// In JSON, an int64 is a string or a number.
static int64_t read_count(const cJSON *item)
{
	int64_t n = 0;
	if (cJSON_IsString(item) &&
	    num_parse_i64(item->valuestring, strlen(item->valuestring), 0, INT64_MAX, &n, NULL) < 0)
		return 0;
	if (cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble < 9e15)
		n = (int64_t)item->valuedouble;
	return n;
}

// Returns the number of items that a reply of status 2xx with this body rejects: rejectedSpans, rejectedDataPoints or
// rejectedLogRecords of its partialSuccess. Writes its errorMessage to `message`, made safe for a log. A body that is
// not a readable partialSuccess rejects nothing, because the status alone reports that the request was accepted.
static int64_t read_rejected(const char *body, size_t len, char message[OTLP_WHY_BYTES])
{
	static const char *const names[] = {"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"};
	int64_t rejected = 0;
	struct err e;
	message[0] = '\0';
	cJSON *root = len > 0 && len <= OTLP_REPLY_BYTES ? json_read(body, len, &e) : NULL;
	const cJSON *partial = json_get(root, "partialSuccess");
	for (size_t i = 0; i < sizeof names / sizeof names[0] && rejected == 0; i++)
		rejected = read_count(json_get(partial, names[i]));
	const char *text = json_get_str(partial, "errorMessage", "");
	if (rejected > 0)
		text_show(message, SHOWN_BYTES, text, strlen(text));
	cJSON_Delete(root);
	return rejected;
}

// OTLP/HTTP: 429, 502, 503 and 504 are worth another attempt, other errors are not.
static bool is_transient(int status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

// Returns true when the request was not accepted.
static bool explain_failure(const struct otlp_reply *reply, char why[OTLP_WHY_BYTES])
{
	char shown[SHOWN_BYTES];
	if (reply->error) {
		text_show(why, OTLP_WHY_BYTES, reply->error->msg, strlen(reply->error->msg));
		return true;
	}
	if (reply->status >= 200 && reply->status <= 299)
		return false;
	text_show(shown, sizeof shown, reply->body, reply->len);
	snprintf(why, OTLP_WHY_BYTES, "status %d%s%s", reply->status, shown[0] ? ": " : "", shown);
	return true;
}

enum otlp_outcome otlp_delivery_take(struct otlp_delivery *d, const struct otlp_reply *reply, char why[OTLP_WHY_BYTES])
{
	static const struct backoff pauses = {
	        .first_ms = OTLP_PAUSE_MS, .max_ms = OTLP_PAUSE_MS * 8, .max_retry_after_ms = OTLP_RETRY_AFTER_MS};
	char message[OTLP_WHY_BYTES];
	why[0] = '\0';
	d->attempts++;
	if (explain_failure(reply, why)) {
		if (d->attempts < OTLP_ATTEMPTS_MAX && (reply->error || is_transient(reply->status))) {
			d->wait_ms = backoff_ms(&pauses, d->attempts, reply->error ? 0 : reply->retry_after_ms);
			return OTLP_AGAIN;
		}
		d->attempts = 0;
		return OTLP_GIVEN_UP;
	}
	d->attempts = 0;
	d->rejected = read_rejected(reply->body, reply->len, message);
	if (d->rejected == 0)
		return OTLP_ACCEPTED;
	snprintf(why, OTLP_WHY_BYTES, "the endpoint rejected %" PRId64 " items%s%s", d->rejected,
	         message[0] ? ": " : "", message);
	return OTLP_PARTIAL;
}
