// SPDX-License-Identifier: Apache-2.0
// Certificates for TLS tests, made at run time in a folder of their own: no key is ever kept in the project.
#ifndef GPUSCALE_TEST_SUPPORT_CERTS_H
#define GPUSCALE_TEST_SUPPORT_CERTS_H

enum certs_file {
	CERTS_CA,       // signs all below
	CERTS_OTHER_CA, // signs nothing: an unknown authority
	CERTS_SERVER,   // for localhost, 127.0.0.1, ::1 and api.gpuscale.test
	CERTS_SERVER_KEY,
	CERTS_EXPIRED, // as CERTS_SERVER, valid from 2020-01-01 to 2021-01-01
	CERTS_EXPIRED_KEY,
	CERTS_OTHER_NAME, // for other.gpuscale.test only
	CERTS_OTHER_NAME_KEY,
	CERTS_CLIENT, // CN=gpuscale-client, O=gpuscale-testers
	CERTS_CLIENT_KEY,
	CERTS__COUNT
};

struct certs {
	char dir[64];
	char path[CERTS__COUNT][96];
	char *pem[CERTS__COUNT]; // the same as text
};

// 0, or -1 when the folder or a file cannot be written. *c is to be given to certs_done in both cases.
int certs_init(struct certs *c);
// Removes the files and the folder.
void certs_done(struct certs *c);

#endif
