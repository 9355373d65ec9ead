// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/remediation_list.h"

#include <cjson/cJSON.h>

#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "remedy/agent/node_view.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"

#define COMMAND      "gpuscale get"
#define COMPONENT    "gpuscale-remediate"
#define OUTPUT_MAX   ((size_t)64 * 1024 * 1024)
#define PAGES_MAX    200
#define NAME_BYTES   256
#define TEXT_BYTES   1100
#define TIME_BYTES   64
#define RECORD_BYTES (REMEDY_RECORD_BYTES_MAX + 1)

struct listing {
	enum output_format format;
	struct table nodes, events;
	cJSON *node_rows, *event_rows; // the same for documents
	size_t n_nodes, n_events;
	int64_t now_ms;
	struct remedy_node record;
	char text[RECORD_BYTES];
};

static const char *state_of(const struct remedy_node *n, int gpu, const struct remedy_fault *f, int64_t now_ms)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	if (g->out_ms >= 0)
		return "Out";
	if (f)
		return "Failing";
	return g->was_out_ms >= 0 && now_ms - g->was_out_ms < REMEDY_DAY_MS ? "Returned" : NULL;
}

static void put_time(cJSON *row, const char *key, int64_t ms)
{
	char time[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(time, ms);
	cJSON_AddStringToObject(row, key, time);
}

// Adds an object for a row; NULL when memory is exhausted, which the functions of cJSON accept.
static cJSON *add_row(cJSON *rows, const char *node)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "node", node);
	cJSON_AddItemToArray(rows, row);
	return row;
}

static void add_gpus(struct listing *l, const char *node)
{
	const struct remedy_node *n = &l->record;
	for (int i = 0; i < n->n_gpus; i++) {
		const struct remedy_fault *f = remedy_evidence_of(n, i, l->now_ms);
		const char *state = state_of(n, i, f, l->now_ms);
		char fault[REMEDY_FAULT_NAME_BYTES] = "-", need[NUM_TEXT_BYTES] = "-", age[TABLE_AGE_BYTES];
		if (!state)
			continue;
		if (f)
			remedy_evidence_name(f->id, fault);
		if (n->gpus[i].out_ms >= 0)
			num_format_duration_ms(need, n->gpus[i].need_ms);
		table_cell(&l->nodes, "%s", node);
		table_cell(&l->nodes, "%s", i > 0 ? n->gpus[i].uuid : "node");
		table_cell(&l->nodes, "%s", state);
		table_cell(&l->nodes, "%s", fault);
		table_cell(&l->nodes, "%s", need);
		table_cell(&l->nodes, "%d", n->n_attempts);
		int64_t since_ms = f ? f->first_ms : n->gpus[i].was_out_ms;
		table_cell(&l->nodes, "%s", table_age(age, since_ms, l->now_ms));
		cJSON *row = add_row(l->node_rows, node);
		cJSON_AddStringToObject(row, "gpu", i > 0 ? n->gpus[i].uuid : "node");
		cJSON_AddStringToObject(row, "state", state);
		if (f)
			cJSON_AddStringToObject(row, "fault", fault);
		if (n->gpus[i].out_ms >= 0)
			cJSON_AddNumberToObject(row, "cleanSeconds", (double)n->gpus[i].need_ms / 1000);
		cJSON_AddNumberToObject(row, "attempts", n->n_attempts);
		put_time(row, "since", since_ms);
		l->n_nodes++;
	}
}

static int add_node(void *listing, struct json_span node, struct err *e)
{
	struct listing *l = listing;
	static const char *const annotation[] = {"metadata", "annotations", NODE_ANNOTATION, NULL};
	char name[NAME_BYTES];
	struct err fault;
	struct json_span text = json_span_path(node, annotation);
	if (json_span_text(json_span_get(json_span_get(node, "metadata"), "name"), name, sizeof name) < 0 ||
	    json_span_kind(text) != '"')
		return 0;
	int len = json_span_text(text, l->text, sizeof l->text);
	if (len >= 0 && remedy_record_read(l->text, (size_t)len, l->now_ms, &l->record, &fault) == 0) {
		add_gpus(l, name);
		return 0;
	}
	const char *const cells[] = {name, "-", "BadRecord", "-", "-", "-", "<unknown>"};
	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
		table_cell(&l->nodes, "%s", cells[i]);
	cJSON_AddStringToObject(add_row(l->node_rows, name), "state", "BadRecord");
	l->n_nodes++;
	return 0;
}

static int add_event(void *listing, struct json_span event, struct err *e)
{
	struct listing *l = listing;
	static const char *const of[] = {"involvedObject", "name", NULL}, *const by[] = {"source", "component", NULL};
	char node[NAME_BYTES], reason[NAME_BYTES], message[TEXT_BYTES], time[TIME_BYTES], age[TABLE_AGE_BYTES];
	int64_t last_ms = 0, count = 1;
	if (!json_span_is(json_span_path(event, by), COMPONENT) ||
	    json_span_text(json_span_path(event, of), node, sizeof node) < 0 ||
	    json_span_text(json_span_get(event, "reason"), reason, sizeof reason) < 0 ||
	    json_span_text(json_span_get(event, "message"), message, sizeof message) < 0)
		return 0;
	int len = json_span_text(json_span_get(event, "lastTimestamp"), time, sizeof time);
	if (len > 0)
		(void)num_parse_rfc3339_ms(time, (size_t)len, &last_ms, NULL);
	(void)json_span_i64(json_span_get(event, "count"), 1, INT32_MAX, &count);
	table_cell(&l->events, "%s", node);
	table_cell(&l->events, "%s", reason);
	table_cell(&l->events, "%s", message);
	table_cell(&l->events, "%lld", (long long)count);
	table_cell(&l->events, "%s", table_age(age, last_ms, l->now_ms));
	cJSON *row = add_row(l->event_rows, node);
	cJSON_AddStringToObject(row, "event", reason);
	cJSON_AddStringToObject(row, "message", message);
	cJSON_AddNumberToObject(row, "count", (double)count);
	put_time(row, "last", last_ms);
	l->n_events++;
	return 0;
}

static const char *const node_head[] = {"NODE", "GPU", "STATE", "FAULT", "CLEAN-TIME", "ATTEMPTS", "AGE", NULL};
static const char *const event_head[] = {"NODE", "EVENT", "MESSAGE", "COUNT", "LAST", NULL};

static void restart_nodes(void *arg)
{
	struct listing *l = arg;
	table_done(&l->nodes);
	table_init(&l->nodes, node_head);
	cJSON_Delete(l->node_rows);
	l->node_rows = cJSON_CreateArray();
	l->n_nodes = 0;
}

static void restart_events(void *arg)
{
	struct listing *l = arg;
	table_done(&l->events);
	table_init(&l->events, event_head);
	cJSON_Delete(l->event_rows);
	l->event_rows = cJSON_CreateArray();
	l->n_events = 0;
}

static int fetch(struct connections *session, struct listing *l, struct err *e)
{
	static const struct kube_pages nodes = {"nodes", PAGES_MAX, add_node, restart_nodes};
	static const struct kube_pages events = {"Events", PAGES_MAX, add_event, restart_events};
	if (kube_pages_fetch(session, &nodes, "/api/v1/nodes", "", l, e) < 0)
		return -1;
	return kube_pages_fetch(session, &events, "/api/v1/namespaces/default/events",
	                        "fieldSelector=involvedObject.kind=Node", l, e);
}

static void put_document(const struct listing *l, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_key(&w, "gpus");
	output_put_tree(&w, l->node_rows);
	json_write_key(&w, "events");
	output_put_tree(&w, l->event_rows);
	json_write_object_end(&w);
	buf_putc(out, '\n');
	out->failed |= (size_t)cJSON_GetArraySize(l->node_rows) != l->n_nodes ||
	               (size_t)cJSON_GetArraySize(l->event_rows) != l->n_events;
}

static int print(struct listing *l)
{
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	if (output_is_document(l->format)) {
		put_document(l, &out);
	} else if (l->format == OUTPUT_NAME) {
		for (const cJSON *c = l->node_rows ? l->node_rows->child : NULL; c; c = c->next)
			if (!c->prev->next ||
			    strcmp(json_get_str(c, "node", ""), json_get_str(c->prev, "node", "")) != 0)
				print_to(&out, "node/%s\n", json_get_str(c, "node", ""));
	} else {
		if (l->n_nodes)
			table_print(&l->nodes, &out, 0, true);
		if (l->n_nodes && l->n_events)
			buf_putc(&out, '\n');
		if (l->n_events)
			table_print(&l->events, &out, 0, true);
		out.failed |= l->nodes.cells.failed || l->events.cells.failed;
		if (l->n_nodes + l->n_events == 0)
			print_error("No remediations found.\n");
	}
	int rc = output_print(COMMAND, &out, l->format);
	buf_done(&out);
	return rc < 0 ? EXIT_FAILED : EXIT_OK;
}

int remediation_list_print(const struct kube_options *kube, enum output_format format)
{
	struct connections session;
	struct err e;
	struct listing *l = calloc(1, sizeof *l);
	int code = EXIT_FAILED;
	if (!l) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	if (connections_open(&session, NULL, kube, NULL, NULL, &e) < 0) {
		print_error(COMMAND ": %s\n", e.msg);
		free(l);
		return err_kind_info(e.kind)->exit_code;
	}
	l->format = format;
	l->now_ms = clock_wall_ms(&session.clock);
	restart_nodes(l);
	restart_events(l);
	if (fetch(&session, l, &e) == 0)
		code = print(l);
	else
		print_error(COMMAND ": %s\n", e.msg);
	table_done(&l->nodes);
	table_done(&l->events);
	cJSON_Delete(l->node_rows);
	cJSON_Delete(l->event_rows);
	free(l);
	connections_close(&session);
	return code;
}
