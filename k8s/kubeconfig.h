// SPDX-License-Identifier: Apache-2.0
// Kubeconfig files: merging, and what one context of them means. Used by k8s_config.c only.
#ifndef GPUSCALE_K8S_KUBECONFIG_H
#define GPUSCALE_K8S_KUBECONFIG_H

#include <stddef.h>

#include "base/doc.h"
#include "k8s/k8s_config.h"

struct arena;
struct err;

struct kubeconfig_file {
	const char *path;   // for messages
	const char *folder; // relative paths inside start here; "" = the working directory
	const struct doc_node *root;
};
struct kubeconfig {
	struct kubeconfig_file files[K8S_KUBECONFIG_FILES_MAX];
	size_t n_files;
};

// Parses text as one more file, after (weaker than) those already added. An empty file is fine. Unknown keys are
// tolerated: other tools keep theirs here. Everything lives in `a`; path must, too.
int kubeconfig_add(struct kubeconfig *k, struct arena *a, const char *path, const char *text, size_t len,
                   struct err *e);
// The context (NULL: current-context of the first file that has one) as a config in `a`. Checks that the named files
// can be read; does not run plugins.
int kubeconfig_resolve(const struct kubeconfig *k, struct arena *a, const char *context, struct k8s_config *ret_config,
                       struct err *e);
// Overwrites every scalar of the parsed files.
void kubeconfig_wipe(struct kubeconfig *k);

#endif
