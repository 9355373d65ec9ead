// SPDX-License-Identifier: Apache-2.0
// The credentials of ScaledObjects: reads the TriggerAuthentications that their triggers name and the Secrets that
// these name, and makes a source of each (promql_sources_add), which only policies of the same namespace may query.
// KEDA: apis/keda/v1alpha1/triggerauthentication_types.go, authentication_types.go (names of modes and parameters).
#ifndef GPUSCALE_CONTROLLER_SOURCE_TRIGGER_AUTH_H
#define GPUSCALE_CONTROLLER_SOURCE_TRIGGER_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "controller/source/trigger_credentials.h"

struct err;
struct event_base;
struct k8s_client;
struct log;
struct promql_sources;
struct trigger_auths;

#define TRIGGER_AUTHS_MAX           32 // uses of TriggerAuthentications: one source each, for as long as the process lives
#define TRIGGER_AUTHS_NAMESPACE_MAX 8
#define TRIGGER_AUTH_READ_MS        60000 // they are read again this often
#define TRIGGER_AUTH_WHY_BYTES      512

struct trigger_auths_options { // owns nothing
	struct event_base *loop;
	struct k8s_client *client;
	struct promql_sources *sources;
	struct log *log;
	// The answer of trigger_auths_find() for this object has changed. Called from the loop.
	void (*on_changed)(void *arg, const char *namespace_name, const char *object);
	void *arg;
};

// One use: what an object asks for. Texts are copied.
struct trigger_auth_use {
	const char *namespace_name, *object; // the ScaledObject
	const char *name;                    // of the TriggerAuthentication
	const char *modes;                   // "bearer", "basic", "tls", "custom", or several with commas
	const char *like;                    // the source whose servers are queried
};

// Returns NULL and *e when memory is exhausted.
struct trigger_auths *trigger_auths_new(const struct trigger_auths_options *options, struct err *e);
// Cancels outstanding requests. Call before the client is freed. NULL is fine.
void trigger_auths_free(struct trigger_auths *t);
// Returns the name of the source with these credentials, valid until trigger_auths_free(). Returns NULL and *ret_why,
// valid until the next call, when they are not read yet, or cannot be used.
const char *trigger_auths_find(struct trigger_auths *t, const struct trigger_auth_use *use, const char **ret_why);

#endif
