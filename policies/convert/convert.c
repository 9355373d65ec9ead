// SPDX-License-Identifier: Apache-2.0
#include "policies/convert/convert.h"

#include <ctype.h>
#include <stdarg.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"

#define TEXT_BYTES_MAX (64 * 1024)

static const char *keep(struct conversion *c, struct buf *b)
{
	char *text = b->failed ? NULL : arena_alloc(c->arena, b->len + 1);
	if (text)
		memcpy(text, buf_str(b), b->len + 1);
	c->is_too_large |= !text;
	buf_done(b);
	return text ? text : "";
}

__attribute__((format(printf, 2, 0))) static const char *format(struct conversion *c, const char *fmt, va_list ap)
{
	struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	buf_vprintf(&b, fmt, ap);
	return keep(c, &b);
}

const char *convert_text(struct conversion *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = format(c, fmt, ap);
	va_end(ap);
	return text;
}

static const char *add_note(struct conversion *c, const char *text)
{
	if (c->n_notes < CONVERT_NOTES_MAX)
		c->notes[c->n_notes++] = text;
	else
		c->is_full = true;
	return text;
}

void convert_note(struct conversion *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add_note(c, c->n_notes < CONVERT_NOTES_MAX ? format(c, fmt, ap) : "");
	va_end(ap);
}

void convert_lost(struct conversion *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = add_note(c, format(c, fmt, ap));
	va_end(ap);
	c->is_incomplete = true;
	c->lost = c->lost ? c->lost : text;
}

// True for letters, digits, '_', '-' and '.', as in names of signals.
static const char *signal_name(struct conversion *c, const char *text)
{
	struct buf b;
	buf_init(&b, 64);
	for (const char *p = text; *p && b.len < CONVERT_NAME_MAX; p++)
		buf_putc(&b, isalnum((unsigned char)*p) || strchr("_-.", *p) ? *p : '_');
	if (b.len == 0)
		buf_puts(&b, "signal");
	return keep(c, &b);
}

static bool name_is_taken(const struct conversion *c, const char *name)
{
	for (size_t i = 0; i < c->n_signals; i++)
		if (strcmp(c->signals[i].name, name) == 0)
			return true;
	return false;
}

struct conversion_signal *convert_add_signal(struct conversion *c, const char *name)
{
	if (c->n_signals == CONVERT_SIGNALS_MAX) {
		convert_lost(c, "the metric %s: a policy has at most %d signals", name, CONVERT_SIGNALS_MAX);
		return NULL;
	}
	const char *base = signal_name(c, name), *unique = base;
	for (int i = 2; !c->is_too_large && name_is_taken(c, unique); i++)
		unique = convert_text(c, "%s-%d", base, i);
	struct conversion_signal *s = &c->signals[c->n_signals++];
	*s = (struct conversion_signal){.name = unique};
	return s;
}

const char *convert_get(const struct doc_node *node, const char *key, const char *fallback)
{
	const struct doc_node *child = doc_get(node, key);
	return child && child->kind == DOC_SCALAR ? child->text : fallback;
}

const char *convert_seconds(struct conversion *c, const char *seconds)
{
	return seconds ? convert_text(c, "%ss", seconds) : NULL;
}

int convert_bool(const char *text)
{
	static const char *const words[2][6] = {{"0", "f", "F", "false", "False", "FALSE"},
	                                        {"1", "t", "T", "true", "True", "TRUE"}};
	for (int value = 0; value < 2; value++)
		for (size_t i = 0; text && i < 6; i++)
			if (strcmp(text, words[value][i]) == 0)
				return value;
	return -1;
}

size_t convert_count_notes(const struct conversion *c)
{
	size_t n = c->n_notes + (c->combine_note != NULL) + (c->schedules_note != NULL) + (c->idle_note != NULL) +
	           (c->fallback_note != NULL);
	for (size_t i = 0; i < c->n_signals; i++)
		n += c->signals[i].note != NULL;
	return n;
}

// ---- PromQL ----

static void put_escaped(struct buf *b, const char *text, bool is_regex)
{
	for (const char *p = text; *p; p++) {
		if (is_regex && strchr(".+*?()[]{}|^$\\", *p))
			buf_puts(b, "\\\\");
		if (*p == '"' || *p == '\\' || *p == '\n')
			buf_putc(b, '\\');
		buf_putc(b, *p == '\n' ? 'n' : *p);
	}
}

static void put_quoted(struct buf *b, const char *text)
{
	buf_putc(b, '"');
	put_escaped(b, text, false);
	buf_putc(b, '"');
}

static const char *in_quotes(struct conversion *c, const char *text)
{
	struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	put_quoted(&b, text);
	return keep(c, &b);
}

static void put_alternatives(struct buf *b, const struct doc_node *values)
{
	buf_putc(b, '"');
	for (const struct doc_node *v = values ? values->child : NULL; v; v = v->next) {
		put_escaped(b, v->text, true);
		if (v->next)
			buf_putc(b, '|');
	}
	buf_putc(b, '"');
}

static void put_label(struct buf *b, const char *name)
{
	buf_putc(b, ',');
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		buf_putc(b, '_');
	for (const char *p = name; *p; p++)
		buf_putc(b, isalnum((unsigned char)*p) ? *p : '_');
}

const char *convert_matchers(struct conversion *c, const struct doc_node *selector)
{
	struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	const struct doc_node *labels = doc_get(selector, "matchLabels"),
	                      *rules = doc_get(selector, "matchExpressions");
	for (const struct doc_node *l = labels ? labels->child : NULL; l; l = l->next) {
		put_label(&b, l->key);
		buf_putc(&b, '=');
		put_quoted(&b, l->text);
	}
	for (const struct doc_node *r = rules ? rules->child : NULL; r; r = r->next) {
		const char *key = convert_get(r, "key", ""), *op = convert_get(r, "operator", "");
		put_label(&b, key);
		if (strcmp(op, "In") == 0 || strcmp(op, "NotIn") == 0) {
			buf_puts(&b, strcmp(op, "In") == 0 ? "=~" : "!~");
			put_alternatives(&b, doc_get(r, "values"));
		} else {
			buf_puts(&b, strcmp(op, "Exists") == 0 ? "!=\"\"" : "=\"\"");
		}
	}
	return keep(c, &b);
}

// Returns whether the matchers (",a=\"x\",b!~\"y\"") contain one for `label`.
static bool has_label(const char *matchers, const char *label)
{
	size_t n = strlen(label);
	bool quoted = false;
	for (const char *p = matchers; *p; p++) {
		if (quoted && *p == '\\' && p[1])
			p++;
		else if (*p == '"')
			quoted = !quoted;
		else if (!quoted && *p == ',' && strncmp(p + 1, label, n) == 0 && strchr("=!", p[1 + n]))
			return true;
	}
	return false;
}

const char *convert_matcher(struct conversion *c, const char *label, const char *value, const char *matchers)
{
	return has_label(matchers, label) ? matchers
	                                  : convert_text(c, ",%s=%s%s", label, in_quotes(c, value), matchers);
}

static bool is_metric_name(const char *s)
{
	if (!isalpha((unsigned char)s[0]) && s[0] != '_' && s[0] != ':')
		return false;
	for (const char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != ':')
			return false;
	return true;
}

const char *convert_selector(struct conversion *c, const char *metric, const char *matchers)
{
	struct buf b;
	if (is_metric_name(metric))
		return matchers[0] ? convert_text(c, "%s{%s}", metric, matchers + 1) : convert_text(c, "%s", metric);
	buf_init(&b, TEXT_BYTES_MAX);
	buf_puts(&b, "{__name__=");
	put_quoted(&b, metric);
	buf_printf(&b, "%s}", matchers);
	return keep(c, &b);
}

const char *convert_namespace(struct conversion *c)
{
	if (c->namespace_name)
		return c->namespace_name;
	if (!c->is_default_noted)
		convert_note(c, "no namespace: the queries look at default");
	c->is_default_noted = true;
	return "default";
}

// What follows the name of the target in the names of the pods that its selector selects.
static const char *pod_tail(const char *kind)
{
	static const char *const tails[][2] = {
	        {"Deployment", "[a-z0-9]+-[a-z0-9]+"},
	        {"Rollout", "[a-z0-9]+-[a-z0-9]+"},
	        {"ReplicaSet", "[a-z0-9]+"},
	        {"ReplicationController", "[a-z0-9]+"},
	        {"StatefulSet", "[0-9]+"},
	        {"LeaderWorkerSet", "[0-9]+"}, // the leaders
	};
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
		if (strcmp(kind, tails[i][0]) == 0)
			return tails[i][1];
	return ".+";
}

const char *convert_pods(struct conversion *c, const char *prefix, const char *matchers)
{
	struct buf name;
	buf_init(&name, TEXT_BYTES_MAX);
	put_escaped(&name, c->target_name, !strstr(c->target_name, "{{")); // a template stays a template
	const char *pods =
	        convert_text(c, ",%spod=~\"%s-%s\"%s", prefix, keep(c, &name), pod_tail(c->target_kind), matchers);
	return convert_matcher(c, convert_text(c, "%snamespace", prefix), convert_namespace(c), pods);
}

void convert_resource(struct conversion *c, const char *resource, const char *container, const char *utilization,
                      const char *average_value)
{
	bool cpu = strcmp(resource, "cpu") == 0, memory = strcmp(resource, "memory") == 0;
	if (!cpu && !memory) {
		convert_lost(c,
		             "the resource %s: only cpu and memory have well-known metrics; write the query yourself",
		             resource);
		return;
	}
	if (!utilization && !average_value) {
		convert_lost(c, "the resource %s: no target", resource);
		return;
	}
	struct conversion_signal *s = convert_add_signal(c, resource);
	if (!s)
		return;
	const char *pods = convert_pods(c, "", "");
	const char *of = container ? convert_text(c, "%s,container=%s", pods, in_quotes(c, container))
	                           : convert_text(c, "%s,container!=\"\"", pods);
	s->query = cpu ? convert_text(c, "sum by (pod) (rate(container_cpu_usage_seconds_total{%s}[1m]))", of + 1)
	               : convert_text(c, "sum by (pod) (container_memory_working_set_bytes{%s})", of + 1);
	s->target_type = "Pods";
	s->target_value = utilization ? utilization : average_value;
	s->note = "the HPA reads this from metrics-server; here cAdvisor must be scraped. The HPA ignores the CPU of a "
	          "pod that started less than 5 minutes ago and is not ready";
	if (!utilization)
		return;
	s->query = convert_text(c, "100 * %s / sum by (pod) (kube_pod_container_resource_requests{%s,resource=\"%s\"})",
	                        s->query, of + 1, resource);
	s->note = "the HPA reads this from metrics-server; here cAdvisor and kube-state-metrics must be scraped. The "
	          "HPA cuts the mean to a whole percent, counts a pod without a sample as 100 % on the way down, and "
	          "ignores the CPU of a pod that started less than 5 minutes ago and is not ready";
}

void convert_activation(struct conversion *c, const char *signal, const char *above)
{
	if (c->n_activations < CONVERT_SIGNALS_MAX) {
		c->activations[c->n_activations].signal = signal;
		c->activations[c->n_activations++].above = above;
	}
}

// HPA: calculateScaleUpLimit. A policy has the rules that the HPA uses once it has any behavior.
void convert_note_growth(struct conversion *c)
{
	int64_t min, max;
	bool never =
	        (convert_whole(c->min_replicas, &min) && min > 3) || (convert_whole(c->max_replicas, &max) && max < 5);
	if (!c->behavior && !never)
		convert_note(c, "no behavior: from fewer than 4 replicas, the HPA grows to 4 or to twice as many at "
		                "once, the policy by 4");
}

bool convert_whole(const char *text, int64_t *ret_value)
{
	struct err e;
	return text && num_parse_i64(text, strlen(text), 0, INT32_MAX, ret_value, &e) == 0;
}

// ---- one object: which kind it is, and what is checked for all kinds ----

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

// The kinds that are converted. To add one, add a row.
static const struct {
	const char *kind, *group; // group: the start of its apiVersion
	const char *target;       // the reference to its target, an apps/v1 Deployment by default
	convert_fn *convert;
} kinds[] = {
        {"HorizontalPodAutoscaler", "", "scaleTargetRef", convert_hpa},
        {"ScaledObject", "", "scaleTargetRef", convert_keda},
        {"WatermarkPodAutoscaler", "", "scaleTargetRef", convert_wpa},
        {"PodAutoscaler", "autoscaling.aibrix.ai/", "scaleTargetRef", convert_aibrix},
        {"DatadogPodAutoscaler", "", "targetRef", convert_datadog},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

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
	size_t k = 0;
	while (k < N_KINDS && (strcmp(c->kind, kinds[k].kind) != 0 ||
	                       strncmp(c->api_version, kinds[k].group, strlen(kinds[k].group)) != 0))
		k++;
	if (k == N_KINDS)
		return err_set(e, ERR_UNSUPPORTED,
		               "%d: %s is not converted: only HorizontalPodAutoscaler, ScaledObject, "
		               "WatermarkPodAutoscaler, PodAutoscaler (AIBrix) and DatadogPodAutoscaler are",
		               root->line, c->kind[0] ? c->kind : "an object without kind");
	c->from = convert_text(c, "%s %s (%s)", c->kind, c->name && c->name[0] ? c->name : "without a name",
	                       c->api_version);
	const struct doc_node *spec = doc_get(root, "spec"), *ref = doc_get(spec, kinds[k].target);
	c->annotations = doc_get(metadata, "annotations");
	c->min_replicas = convert_get(spec, "minReplicas", "1");
	c->max_replicas = convert_get(spec, "maxReplicas", NULL);
	c->target_api_version = convert_get(ref, "apiVersion", "apps/v1");
	c->target_kind = convert_get(ref, "kind", "Deployment");
	c->target_name = convert_get(ref, "name", "");
	kinds[k].convert(c, root);
	note_templates(c, root);
	if (c->is_too_large)
		return err_set(e, ERR_LIMIT, "%d: an object this large is not converted", root->line);
	return 0;
}
