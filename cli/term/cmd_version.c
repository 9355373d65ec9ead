// SPDX-License-Identifier: Apache-2.0
// gpuscale version [-o json]
#include <argp.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/print.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"

#define OUTPUT_MAX 4096

static error_t parse(int key, char *arg, struct argp_state *state)
{
	enum output_format *format = state->input;
	switch (key) {
	case 'o':
		*format = output_option(arg, OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML), state);
		return 0;
	case ARGP_KEY_ARG:
		print_usage(state, "unexpected argument \"%s\"", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_version(int argc, char **argv)
{
	static const struct argp_option options[] = {FLAG_OUTPUT("text, json or yaml (default text)", 0), {0}};
	const struct argp argp = {options, parse, "", "Print the version.", NULL, NULL, NULL};
	enum output_format format = OUTPUT_TEXT;
	struct buf out;
	args_parse(&argp, argc, argv, &format);
	buf_init(&out, OUTPUT_MAX);
	const char *curl = curl_version_info(CURLVERSION_NOW)->version;
	if (output_is_document(format))
		print_to(&out, "{\"version\":\"%s\",\"libcurl\":\"%s\",\"libevent\":\"%s\",\"openssl\":\"%s\"}\n",
		         GPUSCALE_VERSION, curl, event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	else
		print_to(&out, "gpuscale %s (libcurl %s, libevent %s, OpenSSL %s)\n", GPUSCALE_VERSION, curl,
		         event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	int code = output_print("gpuscale version", &out, format) < 0 ? EXIT_FAILED : EXIT_OK;
	buf_done(&out);
	return code;
}
