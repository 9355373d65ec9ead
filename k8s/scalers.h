// SPDX-License-Identifier: Apache-2.0
// Who else drives a target: HorizontalPodAutoscalers (autoscaling/v1) and, where the cluster has KEDA, ScaledObjects
// (keda.sh/v1alpha1), from watches of the namespaces in which somebody wants to know. Beyond SCALERS_NAMESPACES_MAX of
// them one watch of all namespaces takes over, where that is allowed. Whether there is KEDA is asked at the start and
// then every few minutes; besides that, nothing is asked while nothing changes.
#ifndef GPUSCALE_K8S_SCALERS_H
#define GPUSCALE_K8S_SCALERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct scale_ref;
struct scalers;
struct scalers_want;

#define SCALERS_NAMESPACES_MAX 32 // watches of one kind; above, all namespaces in one
#define SCALERS_OWNER_BYTES    560
#define SCALERS_KEDA_ASK_MS    300000 // whether the group keda.sh has appeared; plus up to a tenth at random
#define SCALERS_KEDA_RETRY_MS  30000  // after that could not be asked

struct scalers_options {
	struct k8s_client *client; // not owned
	// scalers_owner or scalers_error of a target that was wanted with `user` has changed, or scalers_is_known has
	// become true. From the loop; must not call scalers_want or _unwant.
	void (*on_change)(void *arg, void *user);
	void *arg;
	int64_t keda_ask_ms; // 0: SCALERS_KEDA_ASK_MS
};

// NULL and *e when memory ends. Asks nothing before something is wanted.
struct scalers *scalers_new(const struct scalers_options *options, struct err *e);
// Before the client is freed. What is still wanted is gone. NULL is fine.
void scalers_free(struct scalers *s);

// From any callback but on_change. ref is copied. ERR_INTERNAL when memory ends, ERR_USAGE for a name that cannot be.
struct scalers_want *scalers_want(struct scalers *s, const struct scale_ref *ref, void *user, struct err *e);
void scalers_unwant(struct scalers_want *w); // NULL is fine

// "HorizontalPodAutoscaler ns/name" or "ScaledObject ns/name", the first by that order when there are several; NULL:
// nobody, as far as is known. A HPA that KEDA made is named by its ScaledObject. Valid until the loop runs.
const char *scalers_owner(const struct scalers_want *w);
// Everything was listed, or refused: before, it is too early to say that there is nobody.
bool scalers_is_known(const struct scalers_want *w);
// Why somebody may be overlooked (such as a verb that RBAC does not give, in the server's words); NULL: nobody is.
// Valid until the loop runs.
const char *scalers_error(const struct scalers_want *w);

struct scalers_stats {
	size_t wants, namespaces, watches, objects;
	bool has_keda;
	uint64_t keda_asked; // requests
};
void scalers_get_stats(const struct scalers *s, struct scalers_stats *ret_stats);

#endif
