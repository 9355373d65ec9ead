// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/fleet_get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/json/json_span.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_view.h"
#include "cli/term/commands.h"
#include "cli/term/output.h"
#include "cli/term/table.h"
#include "controller/fleet/fleet_targets.h"
#include "controller/source/policy_object.h"
#include "k8s/cache/target_decode.h"
#include "k8s/targets/workload_kind.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"

#define OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define PAGES_MAX  100
#define PATH_BYTES 512
#define TEXT_BYTES 256

static const char *const heads[] = {"TARGET", "REPLICAS", "READY", "MIN", "MAX", "STATE", "MESSAGE", NULL};

struct listing {
	const struct policy_view *policy;
	struct table table;
	struct buf spaces; // the namespaces that the fleet spans: " NAME NAME "; empty: it does not
};

static void put_annotation(struct table *t, struct json_span annotations, const char *key, const char *fallback)
{
	char text[TEXT_BYTES];
	bool is_given = json_span_text(json_span_get(annotations, key), text, sizeof text) >= 0;
	table_text(t, is_given ? text : fallback);
}

static int add_space(void *arg, struct json_span object, struct err *e)
{
	struct listing *l = arg;
	char none[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	if (object_decode_name(object.text, object.len, none, name) && strcmp(name, "kube-system") != 0) {
		buf_puts(&l->spaces, name);
		buf_putc(&l->spaces, ' ');
	}
	return 0;
}

static void restart_spaces(void *arg)
{
	struct listing *l = arg;
	buf_reset(&l->spaces);
	buf_putc(&l->spaces, ' ');
}

static bool is_in_scope(const struct listing *l, const char *space)
{
	char word[TARGET_NAME_BYTES + 2];
	snprintf(word, sizeof word, " %s ", space);
	return l->spaces.len == 0 || strstr(buf_str(&l->spaces), word);
}

static int put_target(void *arg, struct json_span object, struct err *e)
{
	struct listing *l = arg;
	struct json_span annotations = json_span_get(json_span_get(object, "metadata"), "annotations");
	char space[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES], key[2 * TARGET_NAME_BYTES];
	struct target_fields f;
	if (!object_decode_name(object.text, object.len, space, name))
		return err_set(e, ERR_PROTOCOL, "the list has an object without a name");
	if (!is_in_scope(l, space))
		return 0;
	if (target_decode(object.text, object.len, &f, e) < 0)
		return -1;
	snprintf(key, sizeof key, "%s/%s", space, name);
	const struct doc_node *worst = doc_get(l->policy->status.fleet, "worst");
	const struct doc_node *one = worst ? worst->child : NULL;
	while (one && strcmp(doc_get_text(one, "target", ""), key) != 0)
		one = one->next;
	table_text(&l->table, l->spaces.len ? key : name);
	table_cell(&l->table, "%d", f.spec_replicas);
	table_cell(&l->table, "%d", f.ready_replicas > 0 ? f.ready_replicas : 0);
	put_annotation(&l->table, annotations, FLEET_ANNOTATION_MIN, l->policy->min);
	put_annotation(&l->table, annotations, FLEET_ANNOTATION_MAX, l->policy->max);
	table_text(&l->table, doc_get_text(one, "state", NULL));
	table_text(&l->table, doc_get_text(one, "message", NULL));
	return 0;
}

// The server dropped its list, and the rows with it.
static void restart(void *arg)
{
	struct listing *l = arg;
	table_done(&l->table);
	table_init(&l->table, heads);
}

static int fetch(struct connections *session, struct listing *l, const char *path, const char *what,
                 const char *selector, kube_item_fn *item, void (*dropped)(void *arg), struct err *e)
{
	struct buf text;
	buf_init(&text, 4 * FLEET_SELECTOR_BYTES_MAX);
	buf_puts(&text, "labelSelector=");
	http_append_urlencoded(&text, selector);
	const struct kube_pages pages = {.path = path,
	                                 .selector = selector[0] ? buf_str(&text) : "",
	                                 .what = what,
	                                 .pages_max = PAGES_MAX,
	                                 .item = item,
	                                 .restart = dropped,
	                                 .arg = l};
	int rc = kube_pages_fetch(session, &pages, e);
	buf_done(&text);
	return rc;
}

static int list(struct connections *session, struct listing *l, const struct fleet_selection *fleet, struct err *e)
{
	const struct workload_kind *kind = workload_kind_find(fleet->api_version, fleet->kind, NULL);
	char path[PATH_BYTES];
	if (!kind->plural)
		return err_set(e, ERR_UNSUPPORTED, "not supported: a fleet of kind %s", fleet->kind);
	if (fleet->spans) {
		restart_spaces(l);
		if (fetch(session, l, "/api/v1/namespaces", "namespaces", fleet->namespaces.text, add_space,
		          restart_spaces, e) < 0)
			return -1;
		snprintf(path, sizeof path, "/apis/apps/v1/%s", kind->plural);
	} else {
		snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/%s", l->policy->namespace_name, kind->plural);
	}
	return fetch(session, l, path, kind->plural, fleet->selector.text, put_target, restart, e);
}

int fleet_get(struct connections *session, const struct policy_view *policy)
{
	struct schema_errors *errors = calloc(2, sizeof *errors);
	struct policy_ref *body = policy_ref_new();
	struct policy_object object;
	struct policy_document document;
	struct listing l = {.policy = policy};
	struct buf out;
	struct err e = {0};
	int code = EXIT_FAILED;
	if (!errors || !body) {
		print_error("gpuscale get: out of memory\n");
		free(errors);
		policy_ref_release(body);
		return code;
	}
	schema_errors_init(&errors[0], "");
	schema_errors_init(&errors[1], "");
	buf_init(&out, OUTPUT_MAX);
	buf_init(&l.spaces, OUTPUT_MAX);
	table_init(&l.table, heads);
	if (policy_object_decode(policy->json, strlen(policy->json), &body->arena, &object, &document, &errors[0],
	                         &errors[1]) < 0)
		print_error("gpuscale get: the policy is invalid: %s: %s\n", errors[0].items[0].path,
		            errors[0].items[0].message);
	else if (!document.fleet.set)
		print_error("gpuscale get: %s has one target: --targets is for a policy with scaleTargets\n",
		            policy->name);
	else if (list(session, &l, &document.fleet, &e) < 0)
		code = command_failed("gpuscale get", &e);
	else
		code = EXIT_OK;
	if (code == EXIT_OK) {
		table_print(&l.table, &out, 0, true);
		code = output_print("gpuscale get", &out, OUTPUT_TABLE) < 0 ? EXIT_FAILED : EXIT_OK;
	}
	table_done(&l.table);
	buf_done(&out);
	buf_done(&l.spaces);
	policy_ref_release(body);
	free(errors);
	return code;
}
