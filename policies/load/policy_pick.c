// SPDX-License-Identifier: Apache-2.0
#include "policies/load/policy_pick.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"

#define KEY_BYTES   320 // namespace, slash and name
#define SHOWN_BYTES 120
#define LISTED_MAX  4
#define NEAR_MAX    256 // names compared for "did you mean"

static void key_of(const struct policy *p, char out[KEY_BYTES])
{
	snprintf(out, KEY_BYTES, "%s/%s", p->namespace_name, p->name);
}

static bool is_called(const struct policy *p, const char *key)
{
	char whole[KEY_BYTES];
	if (!strchr(key, '/'))
		return strcmp(p->name, key) == 0;
	key_of(p, whole);
	return strcmp(whole, key) == 0;
}

// Writes the first few keys as "serving/a, serving/b, ..".
static void list(const struct file_set *set, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < set->n_policies && i < LISTED_MAX && used < size; i++) {
		char key[KEY_BYTES];
		key_of(set->policies[i], key);
		int n = snprintf(out + used, size - used, "%s%s%s", i ? ", " : "", key,
		                 i + 1 == LISTED_MAX && set->n_policies > LISTED_MAX ? ", .." : "");
		used += n > 0 ? (size_t)n : 0;
	}
}

static void fail_unknown(const struct file_set *set, const char *key, struct err *e)
{
	static const char none[] = "";
	char keys[NEAR_MAX][64]; // longer names are never suggested
	const char *names[NEAR_MAX] = {0};
	char shown[SHOWN_BYTES], all[256];
	size_t n = 0;
	for (size_t i = 0; i < set->n_policies && n < NEAR_MAX; i++) {
		const struct policy *p = set->policies[i];
		int len = strchr(key, '/') ? snprintf(keys[n], sizeof keys[n], "%s/%s", p->namespace_name, p->name)
		                           : snprintf(keys[n], sizeof keys[n], "%s", p->name);
		if (len > 0 && (size_t)len < sizeof keys[n]) {
			names[n] = keys[n];
			n++;
		}
	}
	const char *close = num_closest_name(key, names, n);
	text_show(shown, sizeof shown, key, strlen(key));
	list(set, all, sizeof all);
	err_set(e, ERR_INPUT, "no policy \"%s\"%s%s%s; there is %s", shown, close ? ", did you mean \"" : none,
	        close ? close : none, close ? "\"?" : none, set->n_policies ? all : "none");
}

const struct policy *policy_pick(const struct file_set *set, const char *key, struct err *e)
{
	const struct policy *found = NULL;
	size_t n = 0;
	for (size_t i = 0; i < set->n_policies; i++) {
		if (key && *key && !is_called(set->policies[i], key))
			continue;
		found = set->policies[i];
		n++;
	}
	if (n == 1)
		return found;
	char all[256];
	list(set, all, sizeof all);
	if (set->n_policies == 0)
		err_set(e, ERR_INPUT, "the set has no policy: name a file or folder with a GPUAutoscaler");
	else if (n == 0)
		fail_unknown(set, key, e);
	else
		err_set(e, ERR_INPUT, "%zu policies to choose from (%s): name one as namespace/name", n, all);
	return NULL;
}
