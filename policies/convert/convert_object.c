// SPDX-License-Identifier: Apache-2.0
// One object: which kind it is, and what is checked for all kinds.
#include <string.h>

#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/convert/convert.h"

static bool has_template(const struct doc_node *node)
{
	if (!node)
		return false;
	if (strstr(node->text, "{{"))
		return true;
	for (const struct doc_node *c = node->child; c; c = c->next)
		if (has_template(c))
			return true;
	return false;
}

// Adds one note if a text below `root` is still a template.
static void note_templates(struct conversion *c, const struct doc_node *root)
{
	if (has_template(doc_get(root, "metadata")) || has_template(doc_get(root, "spec")))
		convert_note(c, "{{ .. }}: this is a Helm template; convert what `helm template` makes of it");
}

// "HorizontalPodAutoscaler" for a HorizontalPodAutoscalerList; "" if the name of the list does not show the kind.
static const char *list_kind(struct conversion *c, const struct doc_node *list)
{
	const char *kind = convert_get(list, "kind", "");
	size_t n = strlen(kind);
	return n > 4 && strcmp(kind + n - 4, "List") == 0 ? convert_text(c, "%.*s", (int)(n - 4), kind) : "";
}

// Texts end at their first NUL: a NUL inside would truncate them.
static const struct doc_node *find_nul(const struct doc_node *node)
{
	if (strlen(node->text) != node->text_len)
		return node;
	for (const struct doc_node *c = node->child; c; c = c->next) {
		const struct doc_node *found = find_nul(c);
		if (found)
			return found;
	}
	return NULL;
}

int convert_object(struct conversion *c, struct arena *a, const struct doc_node *root, const struct doc_node *list,
                   const struct convert_live *live, struct err *e)
{
	const struct doc_node *metadata = doc_get(root, "metadata"), *nul = find_nul(root);
	*c = (struct conversion){.arena = a, .live = live};
	c->kind = convert_get(root, "kind", list_kind(c, list));
	c->api_version = convert_get(root, "apiVersion", convert_get(list, "apiVersion", "no apiVersion"));
	c->name = convert_get(metadata, "name", NULL);
	c->namespace_name = convert_get(metadata, "namespace", NULL);
	if (nul)
		return err_set(e, ERR_INPUT, "%d: a text holds the character \\0: remove it", nul->line);
	if (!convert_hpa(c, root) && !convert_keda(c, root) && !convert_wpa(c, root) && !convert_aibrix(c, root) &&
	    !convert_datadog(c, root))
		return err_set(e, ERR_UNSUPPORTED,
		               "%d: %s is not converted: only HorizontalPodAutoscaler, ScaledObject, "
		               "WatermarkPodAutoscaler, PodAutoscaler (AIBrix) and DatadogPodAutoscaler are",
		               root->line, c->kind[0] ? c->kind : "an object without kind");
	note_templates(c, root);
	if (c->is_too_large)
		return err_set(e, ERR_LIMIT, "%d: an object this large is not converted", root->line);
	return 0;
}
