// SPDX-License-Identifier: Apache-2.0
// What comes with a request for an external metric, and what goes back: eight bytes are a value, the rest is the path.
// Names that are found stand in the path; any finite value within reach is written as a quantity of the same worth.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/label_selector.h"
#include "k8s/server/metrics_api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
	struct metrics_path p;
	char class[K8S_RESOURCE_CLASS_BYTES];
	metrics_path_parse(&external_metrics_api, path, &p);
	if (p.page == METRICS_VALUES) {
		assert(p.namespace_name[0] && strlen(p.namespace_name) <= METRICS_NAMESPACE_MAX);
		assert(p.metric[0] && strlen(p.metric) <= METRICS_NAME_BYTES_MAX);
		assert(!strchr(p.namespace_name, '/') && !strchr(p.metric, '/'));
		assert(strstr(path, p.namespace_name) && strstr(path, p.metric));
	} else {
		assert(!p.namespace_name[0] && !p.metric[0]);
	}
	k8s_path_class(path, class);
	assert(strlen(class) < sizeof class);
}

// What the digits and the suffix stand for.
static double worth(const char *quantity)
{
	static const char suffixes[] = "num\0kMGTPE";
	double value;
	size_t len = strlen(quantity);
	char last = len ? quantity[len - 1] : '\0', *at;
	bool has_suffix = last < '0' || last > '9';
	assert(num_parse_f64(quantity, len - has_suffix, &value, NULL) == 0);
	if (!has_suffix)
		return value;
	at = memchr(suffixes, last, sizeof suffixes - 1);
	assert(at && *at);
	return value * pow(1000, (double)(at - suffixes - 3));
}

static void check_value(double value, const char *text)
{
	char quantity[QUANTITY_BYTES];
	struct err e = {0};
	struct buf out;
	if (quantity_format(quantity, value, &e) < 0) {
		assert(e.msg[0] && !(fabs(value) <= QUANTITY_MAX));
		return;
	}
	assert(fabs(worth(quantity) - value) <= 1e-9 + fabs(value) * 1e-12);
	const struct label label = {text, text};
	const struct external_metric_value v = {.value = value, .labels = &label, .n_labels = 1, .time_ms = 1};
	buf_init(&out, 1024 * 1024);
	assert(external_metrics_write_values(&out, text, &v, 1, &e) == 0);
	cJSON *root = out.failed ? NULL : json_read(buf_str(&out), out.len, &e);
	assert(out.failed || root);
	cJSON_Delete(root);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double value = 0;
	size_t n = size < sizeof value ? size : sizeof value;
	memcpy(&value, data, n);
	char *text = strndup((const char *)data + n, size - n);
	if (!text)
		return 0;
	check_path(text);
	check_value(value, text);
	free(text);
	return 0;
}
