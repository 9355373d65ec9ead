// SPDX-License-Identifier: Apache-2.0
#include "cli/term/object_kind.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define WORD_BYTES 64

// clang-format off
static const struct object_kind_info table[OBJECT_KIND__COUNT] = {
	[OBJECT_POLICY]        = {POLICY_KIND,    POLICY_KIND "s",    CRD_PLURAL,      "gpuautoscaler", "gpua",  true,  CRD_GROUP, CRD_VERSION},
	[OBJECT_POOL]          = {POOL_KIND,      POOL_KIND "s",      "gpupools",      "gpupool",       "gpup",  false, CRD_GROUP, CRD_VERSION},
	[OBJECT_REMEDIATION]   = {"Remediation",  "Remediations",     "remediations",  "remediation",   NULL,    false, CRD_GROUP, CRD_VERSION},
	[OBJECT_SCALED_OBJECT] = {"ScaledObject", "ScaledObjects",    "scaledobjects", "scaledobject",  "so",    true,  "keda.sh", "v1alpha1"},
};
// A kind is the singular in other letters.
#define NAMES_OF(singular, kind) {"gpu" singular "s", kind}, {"gpu" singular, kind}, {singular "s", kind}, {singular, kind}
static const struct {
	const char *word;
	enum object_kind kind;
} names[] = {
	{"gpua", OBJECT_POLICY}, {"gpup", OBJECT_POOL},
	NAMES_OF("autoscaler", OBJECT_POLICY),
	NAMES_OF("pool", OBJECT_POOL),
	{"remediations", OBJECT_REMEDIATION}, {"remediation", OBJECT_REMEDIATION},
	{"scaledobjects", OBJECT_SCALED_OBJECT}, {"scaledobject", OBJECT_SCALED_OBJECT}, {"so", OBJECT_SCALED_OBJECT},
};
// clang-format on
#define N_NAMES (sizeof names / sizeof names[0])

const struct object_kind_info *object_kind_info(enum object_kind r)
{
	assert(r < OBJECT_KIND__COUNT);
	return &table[r];
}

enum object_kind object_kind_find(const char *word, size_t len)
{
	for (size_t i = 0; i < N_NAMES; i++) {
		const char *group = table[names[i].kind].group;
		size_t n = strlen(names[i].word);
		if (n > len || strncasecmp(word, names[i].word, n) != 0)
			continue;
		if (n == len ||
		    (word[n] == '.' && len - n - 1 == strlen(group) && strncmp(word + n + 1, group, len - n - 1) == 0))
			return names[i].kind;
	}
	return OBJECT_KIND__COUNT;
}

const char *object_kind_closest(const char *word, size_t len)
{
	const char *words[N_NAMES];
	char text[WORD_BYTES];
	for (size_t i = 0; i < N_NAMES; i++)
		words[i] = names[i].word;
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), word);
	return num_closest_name(text, words, N_NAMES);
}
