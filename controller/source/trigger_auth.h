// SPDX-License-Identifier: Apache-2.0
// The credentials of ScaledObjects: reads the TriggerAuthentications that their triggers name and the Secrets that
// these name, and makes a source of each (promql_sources_add), which only policies of the same namespace may query.
// KEDA: apis/keda/v1alpha1/triggerauthentication_types.go, authentication_types.go (names of modes and parameters).
#ifndef GPUSCALE_CONTROLLER_SOURCE_TRIGGER_AUTH_H
#define GPUSCALE_CONTROLLER_SOURCE_TRIGGER_AUTH_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct log;
struct promql_credentials;
struct promql_sources;
struct trigger_auths;

#define TRIGGER_AUTHS_MAX           32 // uses of TriggerAuthentications: one source each, for as long as the process lives
#define TRIGGER_AUTHS_NAMESPACE_MAX 8
#define TRIGGER_AUTH_READ_MS        60000 // they are read again this often
#define TRIGGER_AUTH_WHY_BYTES      512

struct trigger_auths_options { // owns nothing
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

struct trigger_auths *trigger_auths_new(const struct trigger_auths_options *options);
// Cancels outstanding requests. Call before the client is freed. NULL is fine.
void trigger_auths_free(struct trigger_auths *t);
// Returns the name of the source with these credentials, valid until trigger_auths_free(). Returns NULL and *ret_why,
// valid until the next call, when they are not read yet, or cannot be used.
const char *trigger_auths_find(struct trigger_auths *t, const struct trigger_auth_use *use, const char **ret_why);

// ---- the credentials of one use ----
// Decodes TriggerAuthentications and Secrets to the credentials of a Prometheus server. No error has a secret in it.

#define TRIGGER_REF_BYTES        254             // name of a Secret, or a key in it
#define TRIGGER_SECRET_BYTES_MAX ((size_t)16384) // a value

enum trigger_parameter {
	TRIGGER_BEARER_TOKEN,
	TRIGGER_USERNAME,
	TRIGGER_PASSWORD,
	TRIGGER_CA,
	TRIGGER_CERT,
	TRIGGER_KEY,
	TRIGGER_HEADER,
	TRIGGER_HEADER_VALUE,
	TRIGGER_PARAMETER__COUNT
};

struct trigger_credentials {
	unsigned wanted, optional; // sets of parameters, of the modes
	struct trigger_value {
		char secret[TRIGGER_REF_BYTES], key[TRIGGER_REF_BYTES]; // secret "": not named
		char *value;                                            // NULL: not read
	} values[TRIGGER_PARAMETER__COUNT];
	char *header; // "Name: value", of trigger_credentials_use()
};

// Sets which parameters `modes` ("bearer,tls") need, without any value. Returns 0, or -1 and *e (ERR_UNSUPPORTED) with
// the mode that is not supported.
int trigger_credentials_init(struct trigger_credentials *c, const char *modes, struct err *e);
// Overwrites and frees the values.
void trigger_credentials_done(struct trigger_credentials *c);
// Reads from a TriggerAuthentication which Secrets have the parameters. Returns 0, or -1 and *e: ERR_INPUT,
// ERR_UNSUPPORTED for a parameter that comes from elsewhere.
int trigger_credentials_refer(struct trigger_credentials *c, const char *json, size_t len, struct err *e);
// Returns the name of a Secret that is still to be read; NULL: none.
const char *trigger_credentials_missing(const struct trigger_credentials *c);
// Reads the values that Secret `name` has. Returns 0, or -1 and *e (ERR_INPUT) with the key that it lacks.
int trigger_credentials_read(struct trigger_credentials *c, const char *name, const char *json, size_t len,
                             struct err *e);
// Fills *ret with pointers into *c, once no Secret is missing. Returns 0, or -1 and *e: ERR_INPUT, ERR_INTERNAL.
int trigger_credentials_use(struct trigger_credentials *c, struct promql_credentials *ret, struct err *e);
// Returns a fingerprint of the values, which is not 0.
uint64_t trigger_credentials_print(const struct trigger_credentials *c);

#endif
