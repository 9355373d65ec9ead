// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the two reviews with which another server delegates to the API server: authentication of a token
// (TokenReview) and authorization (SubjectAccessReview). The caller sends them. Kubernetes:
// authentication.k8s.io/v1, authorization.k8s.io/v1.
#ifndef GPUSCALE_K8S_SERVER_ACCESS_REVIEW_H
#define GPUSCALE_K8S_SERVER_ACCESS_REVIEW_H

#include <stddef.h>

struct buf;
struct err;
struct k8s_user;

#define TOKEN_REVIEW_PATH          "/apis/authentication.k8s.io/v1/tokenreviews"
#define SUBJECT_ACCESS_REVIEW_PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"

// The requested action: on a resource, or, when resource is NULL, on a path.
struct access_attributes {
	const char *verb;
	const char *group, *version, *resource, *namespace_name;
	const char *name, *subresource; // with a resource; may be NULL
	const char *path;
};

void token_review_write(struct buf *out, const char *token);
// 1 and *ret_user (the caller's reference; in system:authenticated) when the token is good, 0 when it is not, -1 and *e
// when the response does not state it.
int token_review_read(const char *text, size_t len, struct k8s_user **ret_user, struct err *e);

void subject_access_review_write(struct buf *out, const struct k8s_user *user,
                                 const struct access_attributes *attributes);

#define ACCESS_REASON_BYTES 256
// 1 allowed, 0 not; reason: text of the authorizer, "" if none. -1 and *e when the response does not state it.
int subject_access_review_read(const char *text, size_t len, char reason[ACCESS_REASON_BYTES], struct err *e);

#endif
