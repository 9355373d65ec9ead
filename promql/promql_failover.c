// SPDX-License-Identifier: Apache-2.0
// Queries whose response is used as a whole: the servers of a source are queried in order, until one has data.
#include "promql/promql_source.h"

#include "base/base.h"

struct failover {
	struct promql_source *server; // that is asked
	struct promql_question question;
	struct promql_ticket ticket;
	struct err error;            // to report if no server responds; ERR_NONE: no server failed
	bool is_partial, is_empty;   // a response had warnings; a response had no series
	enum promql_type empty_type; // type of that response
	promql_done_fn *done;
	void *arg;
	char *query, *namespace_name;
};

static void release(struct failover *f)
{
	free(f->query);
	free(f->namespace_name);
	free(f);
}

static bool is_unreached(const struct err *e)
{
	return e->kind == ERR_UNREACHABLE || e->kind == ERR_TIMEOUT || e->kind == ERR_TLS;
}

// The error of a server that was reached explains more than a failed connection to another server.
static void keep_error(struct failover *f, const struct err *e)
{
	if (f->error.kind == ERR_NONE || (!f->is_partial && is_unreached(&f->error) && !is_unreached(e)))
		f->error = *e;
}

static void on_done(void *arg, const struct promql_result *result, const struct err *error);

// Queries `server`, or the first of the servers after it that accepts the query. Returns false if none does.
static bool ask_from(struct failover *f, struct promql_source *server)
{
	for (; server; server = server->next) {
		struct err e = {.kind = ERR_NONE};
		f->server = server;
		if (promql_source_ask(server, &f->question, &f->ticket, on_done, f, &e) == 0)
			return true;
		keep_error(f, &e);
	}
	return false;
}

static bool is_final(const struct promql_result *result, const struct err *error)
{
	if (error)
		return error->kind == ERR_REJECTED || error->kind == ERR_CANCELED;
	return result->n_warnings == 0 && (result->n_series > 0 || result->type == PROMQL_STRING);
}

static void keep(struct failover *f, const struct promql_result *result, const struct err *error)
{
	if (error) {
		keep_error(f, error);
	} else if (result->n_warnings > 0) {
		f->is_partial = true;
		err_set(&f->error, ERR_PROTOCOL, "the answer is incomplete: %s", result->warnings[0]);
	} else {
		f->is_empty = true;
		f->empty_type = result->type;
	}
}

static void on_done(void *arg, const struct promql_result *result, const struct err *error)
{
	struct failover *f = arg;
	if (is_final(result, error)) {
		f->done(f->arg, result, error);
	} else {
		keep(f, result, error);
		if (ask_from(f, f->server->next))
			return;
		const struct promql_result empty = {.type = f->empty_type};
		bool is_empty = f->is_empty && !f->is_partial;
		f->done(f->arg, is_empty ? &empty : NULL, is_empty ? NULL : &f->error);
	}
	release(f);
}

int promql_failover_ask(struct promql_source *first, const struct promql_question *question,
                        const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e)
{
	if (!first->next)
		return promql_source_ask(first, question, ticket, done, arg, e);
	struct failover *f = must_alloc(calloc(1, sizeof *f));
	const char *namespace_name = ticket->namespace_name ? ticket->namespace_name : "";
	f->query = must_alloc(strdup(question->query));
	f->namespace_name = must_alloc(strdup(namespace_name));
	f->question = *question;
	f->question.query = f->query;
	f->ticket = *ticket;
	f->ticket.namespace_name = f->namespace_name;
	f->done = done;
	f->arg = arg;
	if (ask_from(f, first))
		return 0;
	if (e)
		*e = f->error;
	release(f);
	return -1;
}
