// SPDX-License-Identifier: Apache-2.0
// The part of an API server that a server behind the aggregation layer asks: token reviews, access reviews, and the
// ConfigMap with the cluster's authenticator, listed and watched.
#ifndef GPUSCALE_TEST_SUPPORT_REVIEW_API_H
#define GPUSCALE_TEST_SUPPORT_REVIEW_API_H

#include <stdbool.h>

struct event_base;
struct http_exchange;
struct http_server;

struct review_api {
	struct event_base *loop;
	struct http_server *server;
	const char *client_ca;                      // PEM, what the list of ConfigMaps says
	struct http_exchange *watch;                // the stream that is open; NULL: none
	int token_reviews, access_reviews, watches; // asked
	char *last_review;                          // the body of the last one
	int status;                                 // of the next answers to reviews; 0: a good one
	const char *garbage;                        // instead of an answer; NULL: none
	bool hold;                                  // reviews are not answered
	struct http_exchange *held;                 // the last of those
};

// Token "good" is that of user tess in group t, any other is bad. Everything is allowed but metric "secret".
void review_api_start(struct review_api *a, struct event_base *loop, const char *client_ca);
void review_api_stop(struct review_api *a);
const char *review_api_url(const struct review_api *a, char out[64]);
// Answers a held token review: it is tess's.
void review_api_release(struct review_api *a);
// An event of the watch ("MODIFIED"), with this authority of clients; turns the loop until it has arrived.
void review_api_push(struct review_api *a, const char *type, const char *client_ca);

#endif
