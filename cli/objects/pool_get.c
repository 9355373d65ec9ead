// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/pool_get.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "base/num.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/objects/crd.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/kube_session.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/term/commands.h"
#include "cli/term/output.h"
#include "cli/term/table.h"
#include "controller/status/pool_status_schema.h"
#include "k8s/client/object_name.h"

#define POOL_GET_MAX   1000
#define POOL_PATH      "/apis/" CRD_GROUP "/" CRD_VERSION "/gpupools"
#define OUTPUT_MAX     ((size_t)256 * 1024 * 1024)
#define PATH_BYTES     512
#define SELECTOR_BYTES 4096
#define NONE           "<none>"

// A pool as the server has it. The objects hold its name, its age and its text.
struct pool_view {
	const struct doc_node *budget; // NULL: none
	const char *gpus;
	struct pool_status status;
	bool has_status;
};

struct pool_views {
	struct policy_views objects;
	struct pool_view *pools; // parallel to objects.items
};

static void views_init(struct pool_views *v)
{
	*v = (struct pool_views){0};
	policy_views_init(&v->objects);
}

static void views_done(struct pool_views *v)
{
	policy_views_done(&v->objects);
	free(v->pools);
}

// ---- fetching ----

// A status that cannot be decoded counts as absent: no number is better than a wrong one.
static void read_status(struct pool_views *v, struct pool_view *p, const struct doc_node *status)
{
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	if (!errors || !status || status->kind != DOC_MAP) {
		free(errors);
		return;
	}
	schema_errors_init(&errors[0], NULL);
	schema_errors_init(&errors[1], NULL);
	p->has_status = schema_decode_tolerant(pool_status_schema(), status, &p->status, &v->objects.arena, &errors[0],
	                                       &errors[1], "status") == 0;
	free(errors);
}

static int add(struct pool_views *v, struct cJSON *object, struct err *e)
{
	struct policy_views *o = &v->objects;
	const char *name = json_get_str(json_get(object, "metadata"), "name", "");
	if (!k8s_name_is_valid(name) || strcmp(json_get_str(object, "kind", "GPUPool"), "GPUPool") != 0)
		return err_set(e, ERR_PROTOCOL, "the server replied with an object that is not a GPUPool with a name");
	if (o->n == POOL_GET_MAX)
		return err_set(e, ERR_LIMIT, "more than %d GPUPools: name them, or use -l", POOL_GET_MAX);
	struct policy_view *items = realloc(o->items, (o->n + 1) * sizeof *items);
	o->items = items ? items : o->items;
	struct pool_view *pools = realloc(v->pools, (o->n + 1) * sizeof *pools);
	v->pools = pools ? pools : v->pools;
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"), "managedFields");
	char *text = cJSON_PrintUnformatted(object);
	if (!items || !pools || !text) {
		cJSON_free(text);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	struct policy_view *item = &o->items[o->n];
	struct pool_view *p = &v->pools[o->n];
	struct doc_node *root;
	*item = (struct policy_view){.json = arena_strdup(&o->arena, text), .name = arena_strdup(&o->arena, name)};
	*p = (struct pool_view){0};
	int rc = item->json && item->name
	                 ? doc_from_json(&o->arena, text, strlen(text), &root, e)
	                 : err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", o->arena.max_bytes);
	cJSON_free(text);
	if (rc < 0)
		return -1;
	const char *created = doc_get_text(doc_get(root, "metadata"), "creationTimestamp", "");
	if (num_parse_rfc3339_ms(created, strlen(created), &item->created_ms, NULL) < 0)
		item->created_ms = 0;
	p->gpus = doc_get_text(doc_get(root, "spec"), "gpus", NONE);
	p->budget = doc_get(doc_get(root, "spec"), "budget");
	read_status(v, p, doc_get(root, "status"));
	o->n++;
	return 0;
}

static int add_text(void *views, struct json_span text, struct err *e)
{
	cJSON *object = json_read(text.text, text.len, e);
	int rc = object ? add(views, object, e) : -1;
	cJSON_Delete(object);
	return rc;
}

static int take_page(void *arg, const char *json, size_t len, struct err *e)
{
	return kube_pages_each("GPUPools", json, len, add_text, arg, e);
}

static void start_over(void *arg)
{
	views_done(arg);
	views_init(arg);
}

static int fetch_all(struct kube_session *session, const char *labels, struct pool_views *v, struct err *e)
{
	struct buf selector;
	buf_init(&selector, SELECTOR_BYTES);
	buf_puts(&selector, labels ? "labelSelector=" : "");
	kube_pages_encode(&selector, labels ? labels : "");
	const struct kube_pages pages = {.path = POOL_PATH,
	                                 .selector = buf_str(&selector),
	                                 .what = "GPUPools",
	                                 .pages_max = POOL_GET_MAX / KUBE_PAGES_OBJECTS + 1,
	                                 .page = take_page,
	                                 .restart = start_over,
	                                 .arg = v};
	int rc = kube_pages_fetch(session, &pages, e);
	buf_done(&selector);
	return rc;
}

static int fetch_one(struct kube_session *session, const char *name, struct pool_views *v, struct err *e)
{
	char path[PATH_BYTES];
	struct buf body;
	if (!k8s_name_is_valid(name))
		return err_set(e, ERR_USAGE, "\"%s\" cannot be the name of a GPUPool", name);
	snprintf(path, sizeof path, POOL_PATH "/%s", name);
	buf_init(&body, JSON_BYTES_MAX);
	int rc = kube_session_request(session, "GET", path, NULL, NULL, &body, e);
	if (rc == 0)
		rc = add_text(v, (struct json_span){buf_str(&body), body.len}, e);
	buf_done(&body);
	return rc;
}

// ---- tables ----

static void text_cell(struct table *t, const char *text)
{
	table_cell(t, "%s", text && text[0] ? text : NONE);
}

// An amount that is absent without `is_known`.
static void money_cell(struct table *t, bool is_known, double money)
{
	if (is_known)
		table_cell(t, "%.2f", money);
	else
		table_cell(t, NONE);
}

static void put_pools(struct buf *out, const struct pool_views *v, bool wide, int64_t now_ms)
{
	static const char *const heads[] = {"NAME",   "GPUS",     "USED",  "MEMBERS",   "LIMITED",
	                                    "COST/H", "PER-HOUR", "SPENT", "PROJECTED", "PER-MONTH",
	                                    "AGE",    "MESSAGE",  NULL};
	static const char *const narrow[] = {"NAME", "GPUS", "USED", "MEMBERS", "LIMITED", "PROJECTED", "AGE", NULL};
	struct table t;
	table_init(&t, wide ? heads : narrow);
	t.columns = wide ? 0 : t.columns;
	for (size_t i = 0; i < v->objects.n; i++) {
		const struct pool_view *p = &v->pools[i];
		const struct pool_status *s = &p->status;
		const struct pool_status_spending *spending = &s->spending;
		bool is_known = spending->since_ms > 0;
		char age[TABLE_AGE_BYTES];
		text_cell(&t, v->objects.items[i].name);
		text_cell(&t, p->gpus);
		if (p->has_status) {
			table_cell(&t, "%lld", (long long)s->used_gpus);
			table_cell(&t, "%d", s->member_count);
			table_cell(&t, "%d", s->limited_count);
		} else {
			for (int k = 0; k < 3; k++)
				table_cell(&t, "<unknown>");
		}
		if (wide) {
			money_cell(&t, is_known, spending->per_hour);
			text_cell(&t, doc_get_text(p->budget, "perHour", NULL));
			money_cell(&t, is_known, spending->spent);
		}
		money_cell(&t, is_known, spending->projected);
		if (wide)
			text_cell(&t, doc_get_text(p->budget, "perMonth", NULL));
		table_cell(&t, "%s", table_age(age, v->objects.items[i].created_ms, now_ms));
		if (wide)
			text_cell(&t, s->message);
	}
	table_finish(&t, out, 0, true);
}

static void put_members(struct buf *out, const struct pool_views *v, bool wide)
{
	static const char *const heads[] = {"POOL", "MEMBER", "REQUESTED", "GRANTED",
	                                    "GPUS", "REASON", "MESSAGE",   NULL};
	static const char *const narrow[] = {"POOL", "MEMBER", "REQUESTED", "GRANTED", "GPUS", "REASON", NULL};
	struct table t;
	bool any = false;
	table_init(&t, wide ? heads : narrow);
	t.columns = wide ? 0 : t.columns;
	for (size_t i = 0; i < v->objects.n; i++)
		for (size_t k = 0; k < v->pools[i].status.n_members; k++) {
			const struct pool_status_member *m = &v->pools[i].status.members[k];
			any = true;
			text_cell(&t, v->objects.items[i].name);
			text_cell(&t, m->name);
			table_cell(&t, "%d", m->requested);
			table_cell(&t, "%d", m->granted);
			table_cell(&t, "%d", m->gpus);
			policy_render_state(&t, m->reason);
			if (wide)
				text_cell(&t, m->message);
		}
	if (any)
		buf_putc(out, '\n');
	if (any)
		table_finish(&t, out, 0, true);
	else
		table_done(&t);
}

static void put(struct buf *out, const struct pool_views *v, enum output_format format, bool is_single, int64_t now_ms)
{
	bool wide = format == OUTPUT_WIDE;
	if (format == OUTPUT_NAME) {
		for (size_t i = 0; i < v->objects.n; i++)
			print_to(out, "gpupool." CRD_GROUP "/%s\n", v->objects.items[i].name);
	} else if (output_is_document(format)) {
		policy_render_list(out, &v->objects, NULL, format, is_single, false, now_ms);
	} else {
		put_pools(out, v, wide, now_ms);
		put_members(out, v, wide);
	}
}

// ---- the command ----

static void explain(struct err *e)
{
	if (e->code == 404 && !strstr(e->msg, "\" not found"))
		err_set_code(e, ERR_NOT_FOUND, e->code,
		             "the cluster has no CRD for GPUPools; install it: gpuscale crd GPUPool | kubectl apply "
		             "-f -");
}

static int fetch(struct kube_session *session, const struct policy_scope *scope, struct pool_views *v)
{
	int code = EXIT_OK;
	for (size_t i = 0; i < (scope->n_names ? scope->n_names : 1); i++) {
		struct err e;
		err_clear(&e);
		if ((scope->n_names ? fetch_one(session, scope->names[i], v, &e)
		                    : fetch_all(session, scope->selector, v, &e)) == 0)
			continue;
		explain(&e);
		code = command_failed("gpuscale get", &e);
		if (e.kind != ERR_NOT_FOUND || e.code != 404)
			break; // the other names would fail, too
	}
	return code;
}

int pool_get(struct kube_session *session, const struct policy_scope *scope, enum output_format format)
{
	struct pool_views v;
	struct buf out;
	views_init(&v);
	buf_init(&out, OUTPUT_MAX);
	int code = fetch(session, scope, &v);
	bool is_document = output_is_document(format);
	if (v.objects.n > 0 || (is_document && code == EXIT_OK)) {
		put(&out, &v, format, scope->n_names == 1, clock_wall_ms(&session->clock));
		if (output_print("gpuscale get", &out, format) < 0)
			code = EXIT_FAILED;
	} else if (code == EXIT_OK) {
		print_error("No resources found\n");
	}
	buf_done(&out);
	views_done(&v);
	return code;
}
