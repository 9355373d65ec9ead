// SPDX-License-Identifier: Apache-2.0
// gpuscale version [-o json]
#include <argp.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;
	switch (key) {
	case 'o':
		if (strcmp(arg, "json") != 0 && strcmp(arg, "text") != 0)
			print_usage(state, "-o takes text or json, not \"%s\"", arg);
		*json = strcmp(arg, "json") == 0;
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
	static const struct argp_option options[] = {{"output", 'o', "FORMAT", 0, "text or json", 0}, {0}};
	const struct argp argp = {options, parse, "", "Print the version.", NULL, NULL, NULL};
	bool json = false;
	args_parse(&argp, argc, argv, &json);
	const char *curl = curl_version_info(CURLVERSION_NOW)->version;
	if (json)
		print_line("{\"version\":\"%s\",\"libcurl\":\"%s\",\"libevent\":\"%s\",\"openssl\":\"%s\"}\n",
		           GPUSCALE_VERSION, curl, event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	else
		print_line("gpuscale %s (libcurl %s, libevent %s, OpenSSL %s)\n", GPUSCALE_VERSION, curl,
		           event_get_version(), OpenSSL_version(OPENSSL_VERSION_STRING));
	return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}
