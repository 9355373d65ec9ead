// SPDX-License-Identifier: Apache-2.0
// Which namespaces may query a source, and which series they may read.
#include "promql/promql_source.h"

#include "base/base.h"
#include "promql/confine.h"

#define NAMESPACE_BYTES_MAX 63 // Kubernetes: a label of RFC 1123

static bool is_namespace(const char *name)
{
	size_t len = strlen(name);
	return len >= 1 && len <= NAMESPACE_BYTES_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
	       name[0] != '-' && name[len - 1] != '-';
}

static int add_namespace(struct promql_access *a, const char *name, struct err *e)
{
	if (strcmp(name, PROMQL_ACCESS_ALL) == 0) {
		a->is_open = true;
		return 0;
	}
	if (!is_namespace(name))
		return err_set(e, ERR_INPUT,
		               "\"%.80s\" is not a valid namespace: write its name, or \"*\" for every namespace",
		               name);
	if (a->n == PROMQL_ACCESS_NAMESPACES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d namespaces are named: write \"*\" for every namespace",
		               PROMQL_ACCESS_NAMESPACES_MAX);
	a->namespaces[a->n] = strdup(name);
	return a->namespaces[a->n++] ? 0 : err_no_memory(e);
}

static int take(struct promql_access *a, const struct promql_access_options *o, struct err *e)
{
	size_t n = 0;
	while (o->namespaces && o->namespaces[n])
		n++;
	a->namespaces = calloc(n + 1, sizeof *a->namespaces);
	if (!a->namespaces)
		return err_no_memory(e);
	for (size_t i = 0; i < n; i++)
		if (add_namespace(a, o->namespaces[i], e) < 0)
			return -1;
	if (!o->label)
		return 0;
	if (!confine_label_is_valid(o->label) || strlen(o->label) >= sizeof a->label)
		return err_set(e, ERR_INPUT,
		               "\"%.80s\" is not a label that queries can be confined by: write letters, digits and "
		               "'_', such as namespace",
		               o->label);
	snprintf(a->label, sizeof a->label, "%s", o->label);
	return 0;
}

struct promql_access *promql_access_new(const struct promql_access_options *options, bool is_open, struct err *e)
{
	struct promql_access *a = err_calloc(sizeof *a, e);
	if (!a)
		return NULL;
	a->is_stated = options->namespaces != NULL;
	a->is_open = !a->is_stated && is_open;
	a->is_closed = !a->is_stated && !is_open;
	if (take(a, options, e) == 0)
		return a;
	promql_access_free(a);
	return NULL;
}

void promql_access_free(struct promql_access *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		free(a->namespaces[i]);
	free(a->namespaces);
	free(a);
}

const char *promql_access_admit(const struct promql_access *a, const char *source, const char *namespace_name,
                                const char *query, struct buf *out, size_t *ret_offset, struct err *e)
{
	if (ret_offset)
		*ret_offset = 0;
	if (!a->is_open && !text_is_one_of(namespace_name, (const char *const *)a->namespaces, a->n)) {
		err_set(e, ERR_AUTH,
		        a->is_stated ? "policies of namespace %.63s may not ask source %.63s: add the namespace to its "
		                       "allowedNamespaces"
		                     : "policies of namespace %.63s may not ask source %.63s, which does not state its "
		                       "allowedNamespaces: it has credentials, or is not the only source",
		        namespace_name, source);
		return NULL;
	}
	if (!a->label[0])
		return query;
	buf_reset(out);
	if (confine_query(out, query, a->label, namespace_name, ret_offset, e) < 0)
		return NULL;
	return buf_str(out);
}
