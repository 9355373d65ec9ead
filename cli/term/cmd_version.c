// SPDX-License-Identifier: Apache-2.0
// gpuscale version [-o json]
#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/crypto.h>

#include "cli/term/cli.h"

struct version_args {
	enum output_format output;
};

// clang-format off
#define FLAGS_OF struct version_args
static const struct flag_set command = {.args = "", .about = "Print the version.", .flags = (const struct flag[]){
	FLAG_OUTPUT(0, output, OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML), "text, json or yaml (default text)"),
	FLAG_END}};
// clang-format on

int cmd_version(int argc, char **argv)
{
	struct version_args args = {.output = OUTPUT_TEXT};
	struct buf out = BUF(OUTPUT_MAX);
	args_parse(&command, argc, argv, &args);
	const char *curl = curl_version_info(CURLVERSION_NOW)->version;
	if (output_is_document(args.output))
		print_to(&out, "{\"version\":\"%s\",\"libcurl\":\"%s\",\"libevent\":\"%s\",\"openssl\":\"%s\"}\n",
		         GPUSCALE_VERSION, curl, event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	else
		print_to(&out, "gpuscale %s (libcurl %s, libevent %s, OpenSSL %s)\n", GPUSCALE_VERSION, curl,
		         event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	return output_print("gpuscale version", &out, args.output) < 0 ? EXIT_FAILED : EXIT_OK;
}
