// SPDX-License-Identifier: Apache-2.0
// gpuscale ui: the status page of the leader. kubectl forwards the port, because a forwarded port is a stream of its
// own protocol to the API server, which kubectl speaks.
#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "k8s/lease/lease_record.h"

#define PATH_BYTES     640
#define ARGUMENTS_MAX  12
#define PAGE_PORT      "http" // the name of the container's port
#define DEFAULT_PORT   8080
#define DEFAULT_SYSTEM "gpuscale-system"
#define DEFAULT_LEASE  "gpuscale"

struct ui_args {
	struct kube_options kube;
	const char *namespace_name, *lease_name;
	int64_t port;
};

static void set_port(void *port, char *arg, struct argp_state *state)
{
	if (num_parse_i64(arg, strlen(arg), 1, 65535, port, NULL) < 0)
		print_usage(state, "--port takes 1 to 65535, not \"%s\"", arg);
}

// clang-format off
#define FLAGS_OF struct ui_args
static const struct flag_set command = {
	.args = "",
	.about = "Open the status page: find the pod that leads, and forward a local port to it with kubectl until it is "
	         "interrupted.",
	.flags = (const struct flag[]){
		FLAG_TEXT(1, 'n', "namespace", "NAME", namespace_name, "namespace of the controller (default " DEFAULT_SYSTEM ")"),
		FLAG_TEXT(1, 0, "lease-name", "NAME", lease_name, "that of the controller (default " DEFAULT_LEASE ")"),
		FLAG_CALL(1, 0, "port", "PORT", port, set_port, "local port (default 8080)"),
		FLAG_INCLUDE(&kube_flags, kube, 0),
		FLAG_END}};
// clang-format on

// Reads the pod of the leader: its identity is HOSTNAME_UUID.
static int find_leader(const struct ui_args *a, char ret_pod[LEASE_IDENTITY_BYTES], struct err *e)
{
	struct connections session;
	struct lease_record lease;
	struct buf body = BUF(LEASE_OBJECT_BYTES_MAX);
	char path[PATH_BYTES];
	if (!k8s_name_is_valid(a->namespace_name) || !k8s_name_is_valid(a->lease_name))
		return err_set(e, ERR_INPUT, "-n and --lease-name take names of Kubernetes");
	if (connections_open(&session, NULL, &a->kube, NULL, NULL, e) < 0)
		return -1;
	snprintf(path, sizeof path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s-0", a->namespace_name,
	         a->lease_name);
	int rc = kube_request(&session, "GET", path, NULL, NULL, &body, e);
	if (rc < 0 && e->code == 404)
		err_set(e, ERR_NOT_FOUND,
		        "there is no lease %s-0 in namespace %s: name the namespace of the controller with -n",
		        a->lease_name, a->namespace_name);
	if (rc == 0)
		rc = lease_record_decode(body.data, body.len, &lease, e);
	if (rc == 0 && !lease.holder[0])
		rc = err_set(e, ERR_NOT_FOUND, "no process leads at the moment: check that the controller runs");
	if (rc == 0) {
		char *end = strrchr(lease.holder, '_');
		if (end)
			*end = '\0';
		memcpy(ret_pod, lease.holder, sizeof lease.holder);
		if (!k8s_name_is_valid(ret_pod))
			rc = err_set(e, ERR_PROTOCOL, "the identity of the leader is not that of a pod: \"%s\"",
			             lease.holder);
	}
	buf_done(&body);
	connections_close(&session);
	return rc;
}

// Becomes kubectl, which reports what goes wrong from then on. Returns only when there is no kubectl.
static int forward(const struct ui_args *a, const char *pod)
{
	char target[LEASE_IDENTITY_BYTES + 8], ports[32];
	const char *argv[ARGUMENTS_MAX] = {"kubectl"};
	size_t n = 1;
	snprintf(target, sizeof target, "pod/%s", pod);
	snprintf(ports, sizeof ports, "%d:" PAGE_PORT, (int)a->port);
	if (a->kube.config.kubeconfig) {
		argv[n++] = "--kubeconfig";
		argv[n++] = a->kube.config.kubeconfig;
	}
	if (a->kube.config.context) {
		argv[n++] = "--context";
		argv[n++] = a->kube.config.context;
	}
	argv[n++] = "-n";
	argv[n++] = a->namespace_name;
	argv[n++] = "port-forward";
	argv[n++] = target;
	argv[n++] = ports;
	print_line("%s leads: http://localhost:%d/\n", pod, (int)a->port);
	fflush(stdout);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	print_error("gpuscale ui: kubectl: %s. Where kubectl is installed, run:\n", strerror(errno));
	for (size_t i = 0; i < n; i++)
		print_error("%s%s", i ? " " : "", argv[i]);
	print_error("\n");
	return EXIT_FAILED;
}

int cmd_ui(int argc, char **argv)
{
	struct ui_args args = {.namespace_name = DEFAULT_SYSTEM, .lease_name = DEFAULT_LEASE, .port = DEFAULT_PORT};
	char pod[LEASE_IDENTITY_BYTES];
	struct err e;
	args_parse(&command, argc, argv, &args);
	if (find_leader(&args, pod, &e) < 0) {
		print_error("gpuscale ui: %s\n", e.msg);
		return EXIT_FAILED;
	}
	return forward(&args, pod);
}
