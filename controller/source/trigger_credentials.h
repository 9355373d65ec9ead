// SPDX-License-Identifier: Apache-2.0
// Decodes TriggerAuthentications and Secrets to the credentials of a Prometheus server. No error has a secret in it.
#ifndef GPUSCALE_CONTROLLER_SOURCE_TRIGGER_CREDENTIALS_H
#define GPUSCALE_CONTROLLER_SOURCE_TRIGGER_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct promql_credentials;

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
