// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/remediation_list.h"

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
	struct buf names;                  // "node/NAME" per line
	struct buf document;               // both lists as JSON
	struct json_writer w, after_nodes; // of the document
	size_t n_bytes;                    // of the document after the nodes
	int64_t now_ms;
	struct remedy_node record;
	char text[RECORD_BYTES], node[NAME_BYTES]; // node: of the last name
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

static void add_name(struct listing *l, const char *node)
{
	if (strcmp(l->node, node) != 0)
		print_to(&l->names, "node/%s\n", node);
	snprintf(l->node, sizeof l->node, "%s", node);
}

static void add_gpus(struct listing *l, const char *node)
{
	const struct remedy_node *n = &l->record;
	for (int i = 0; i < n->n_gpus; i++) {
		const struct remedy_gpu *g = &n->gpus[i];
		const struct remedy_fault *f = remedy_evidence_of(n, i, l->now_ms);
		const char *state = state_of(n, i, f, l->now_ms), *name = i > 0 ? g->uuid : "node";
		char fault[REMEDY_FAULT_NAME_BYTES] = "-", need[NUM_TEXT_BYTES] = "-";
		int64_t since_ms = f ? f->first_ms : g->was_out_ms;
		if (!state)
			continue;
		if (f)
			remedy_evidence_name(f->id, fault);
		if (g->out_ms >= 0)
			num_format_duration_ms(need, g->need_ms);
		add_name(l, node);
		table_put(&l->nodes, "%s\t%s\t%s\t%s\t%s\t%d\t%s", node, name, state, fault, need, n->n_attempts,
		          table_age(since_ms, l->now_ms).text);
		json_write_format(&l->w, "{node:%s,gpu:%s,state:%s", node, name, state);
		if (f)
			json_write_member_str(&l->w, "fault", fault);
		if (g->out_ms >= 0)
			json_write_member_f64(&l->w, "cleanSeconds", (double)g->need_ms / 1000);
		json_write_member_i64(&l->w, "attempts", n->n_attempts);
		json_write_member_time(&l->w, "since", since_ms);
		json_write_object_end(&l->w);
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
	add_name(l, name);
	table_put(&l->nodes, "%s\t-\tBadRecord\t-\t-\t-\t<unknown>", name);
	json_write_format(&l->w, "{node:%s,state:%s}", name, "BadRecord");
	return 0;
}

static int add_event(void *listing, struct json_span event, struct err *e)
{
	struct listing *l = listing;
	static const char *const of[] = {"involvedObject", "name", NULL}, *const by[] = {"source", "component", NULL};
	char node[NAME_BYTES], reason[NAME_BYTES], message[TEXT_BYTES], time[TIME_BYTES];
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
	table_put(&l->events, "%s\t%s\t%s\t%lld\t%s", node, reason, message, (long long)count,
	          table_age(last_ms, l->now_ms).text);
	json_write_format(&l->w, "{node:%s,event:%s,message:%s,count:%ld", node, reason, message, count);
	json_write_member_time(&l->w, "last", last_ms);
	json_write_object_end(&l->w);
	return 0;
}

static const char *const node_head[] = {"NODE", "GPU", "STATE", "FAULT", "CLEAN-TIME", "ATTEMPTS", "AGE", NULL};
static const char *const event_head[] = {"NODE", "EVENT", "MESSAGE", "COUNT", "LAST", NULL};

static void restart_nodes(void *arg)
{
	struct listing *l = arg;
	table_done(&l->nodes);
	table_init(&l->nodes, node_head);
	buf_reset(&l->names);
	l->node[0] = '\0';
	buf_reset(&l->document);
	json_write_init(&l->w, &l->document, 2);
	json_write_format(&l->w, "{gpus:[");
}

static void restart_events(void *arg)
{
	struct listing *l = arg;
	table_done(&l->events);
	table_init(&l->events, event_head);
	l->document.len = l->n_bytes;
	l->w = l->after_nodes;
}

static int fetch(struct connections *session, struct listing *l, struct err *e)
{
	static const struct kube_pages nodes = {"nodes", PAGES_MAX, add_node, restart_nodes};
	static const struct kube_pages events = {"Events", PAGES_MAX, add_event, restart_events};
	restart_nodes(l);
	if (kube_pages_fetch(session, &nodes, "/api/v1/nodes", "", l, e) < 0)
		return -1;
	json_write_format(&l->w, "],events:[");
	l->n_bytes = l->document.len;
	l->after_nodes = l->w;
	restart_events(l);
	int rc = kube_pages_fetch(session, &events, "/api/v1/namespaces/default/events",
	                          "fieldSelector=involvedObject.kind=Node", l, e);
	json_write_format(&l->w, "]}");
	return rc;
}

static int print(struct listing *l)
{
	struct buf tables;
	buf_init(&tables, OUTPUT_MAX);
	if (l->nodes.n_cells)
		table_print(&l->nodes, &tables, 0, true);
	if (tables.len && l->events.n_cells)
		buf_putc(&tables, '\n');
	if (l->events.n_cells)
		table_print(&l->events, &tables, 0, true);
	tables.failed |= l->nodes.cells.failed || l->events.cells.failed;
	bool is_document = output_is_document(l->format), is_table = !is_document && l->format != OUTPUT_NAME;
	if (is_table && tables.len == 0 && !tables.failed)
		print_error("No remediations found.\n");
	struct buf *report = is_document ? &l->document : is_table ? &tables : &l->names;
	int code = output_print(COMMAND, report, l->format) < 0 ? EXIT_FAILED : EXIT_OK;
	buf_done(&tables);
	return code;
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
		free(l);
		return command_failed(COMMAND, &e);
	}
	l->format = format;
	l->now_ms = clock_wall_ms(&session.clock);
	buf_init(&l->names, OUTPUT_MAX);
	buf_init(&l->document, OUTPUT_MAX);
	if (fetch(&session, l, &e) == 0)
		code = print(l);
	else
		print_error(COMMAND ": %s\n", e.msg);
	table_done(&l->nodes);
	table_done(&l->events);
	buf_done(&l->names);
	buf_done(&l->document);
	free(l);
	connections_close(&session);
	return code;
}
