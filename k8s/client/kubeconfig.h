// SPDX-License-Identifier: Apache-2.0
// Merges kubeconfig files and resolves a context of them. Only k8s_config_load.c includes it.
#ifndef GPUSCALE_K8S_CLIENT_KUBECONFIG_H
#define GPUSCALE_K8S_CLIENT_KUBECONFIG_H

#include <stddef.h>

#include "base/schema/doc.h"
#include "k8s/client/k8s_config.h"

struct arena;
struct err;

#define KUBECONFIG_FILES_MAX 32

struct kubeconfig_file {
	const char *path;   // for messages
	const char *folder; // relative paths in the file start here; "": the working directory
	const struct doc_node *root;
};
struct kubeconfig {
	struct kubeconfig_file files[KUBECONFIG_FILES_MAX];
	size_t n_files;
};

// Parses text[0..len) as another file; files that were added before take precedence. An empty file is valid. Unknown
// keys are ignored: other tools store theirs there. Everything is allocated in `a`; path must be, too. Returns 0, or -1
// and *e.
int kubeconfig_add(struct kubeconfig *k, struct arena *a, const char *path, const char *text, size_t len,
                   struct err *e);
// Resolves a context (NULL: the current-context of the first file that has one) to a config in `a`. Checks that the
// named files can be read; does not run plugins. Returns 0, or -1 and *e.
int kubeconfig_resolve(const struct kubeconfig *k, struct arena *a, const char *context, struct k8s_config *ret_config,
                       struct err *e);
// Overwrites every scalar of the parsed files.
void kubeconfig_wipe(struct kubeconfig *k);

#endif
