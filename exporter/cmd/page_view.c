// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/page_view.h"

#include <math.h>

#include "base/base.h"

// The values that DCGM writes for a missing value (dcgm_structs.h: DCGM_INT64_BLANK, DCGM_FP64_BLANK), or above.
#define INT_BLANK    9223372036854775792.0
#define DOUBLE_BLANK 140737488355328.0

struct label {
	const char *name, *value;
};

// One sample line, split in place.
struct sample {
	const char *name;
	struct label labels[PAGE_VIEW_LABELS_MAX];
	size_t n;
	double value;
};

static const char *label_of(const struct sample *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return s->labels[i].value;
	return "";
}

// Unescapes "value" in place and returns the position after its closing quote; NULL if the quote is not closed.
static char *cut_value(char *p)
{
	char *out = p;
	for (; *p != '"'; p++) {
		char c = *p;
		if (c == '\\' && p[1]) {
			c = *++p;
			c = c == 'n' ? '\n' : c;
		}
		if (!c) // the end of the line
			return NULL;
		*out++ = c;
	}
	*out = '\0';
	return p + 1;
}

// Splits "{a="b",c="d"}" after the opening brace. NULL if it is malformed.
static char *cut_labels(char *p, struct sample *s)
{
	while (*p != '}') {
		char *eq = strchr(p, '=');
		if (!eq || eq[1] != '"' || s->n == PAGE_VIEW_LABELS_MAX)
			return NULL;
		*eq = '\0';
		s->labels[s->n++] = (struct label){.name = p, .value = eq + 2};
		p = cut_value(eq + 2);
		if (!p || (*p != ',' && *p != '}'))
			return NULL;
		p += *p == ',';
	}
	return p + 1;
}

static bool cut_sample(char *line, struct sample *s)
{
	char *p = line + strcspn(line, "{ ");
	bool labels = *p == '{';
	s->name = line;
	s->n = 0;
	if (p == line || !*p)
		return false;
	*p++ = '\0';
	if (labels && !(p = cut_labels(p, s)))
		return false;
	p += strspn(p, " ");
	return num_parse_sample(p, strcspn(p, " "), &s->value, NULL) == 0; // a time stamp may follow
}

static void copy(char *out, size_t size, const char *text)
{
	if (!out[0])
		snprintf(out, size, "%s", text);
}

static struct page_view_gpu *find_gpu(struct page_view *v, const struct sample *s, struct err *e)
{
	const char *uuid = label_of(s, "UUID"), *index = label_of(s, "gpu"), *instance = label_of(s, "GPU_I_ID");
	int64_t number = -1;
	if (num_parse_i64(index, strlen(index), 0, INT32_MAX, &number, NULL) < 0)
		number = -1;
	for (size_t i = 0; i < v->n; i++) {
		const struct device *d = &v->gpus[i].device;
		if (d->index == number && strcmp(d->uuid, uuid) == 0 && strcmp(d->mig_id, instance) == 0)
			return &v->gpus[i];
	}
	if (v->n == DEVICES_MAX) {
		err_set(e, ERR_LIMIT, "more than %d GPUs", DEVICES_MAX);
		return NULL;
	}
	struct page_view_gpu *g = &v->gpus[v->n++];
	g->device.index = (int32_t)number;
	copy(g->device.uuid, sizeof g->device.uuid, uuid);
	copy(g->device.mig_id, sizeof g->device.mig_id, instance);
	return g;
}

static void add_pod(struct page_view_gpu *g, const struct sample *s)
{
	const char *namespace_ = label_of(s, "namespace"), *pod = label_of(s, "pod");
	char name[2 * OWNER_NAME_BYTES];
	if (!pod[0]) { // renamed by Prometheus, if the page comes from a federation
		namespace_ = label_of(s, "exported_namespace");
		pod = label_of(s, "exported_pod");
	}
	if (!pod[0])
		return;
	snprintf(name, sizeof name, "%s/%s", namespace_, pod);
	size_t len = strlen(g->pods), n = strlen(name);
	for (const char *p = g->pods; (p = strstr(p, name)); p += n)
		if ((p == g->pods || p[-1] == ',') && (p[n] == ',' || !p[n]))
			return;
	if (len >= 3 && strcmp(g->pods + len - 3, "...") == 0)
		return;
	if (len + 1 + n + 5 > sizeof g->pods)
		snprintf(g->pods + len, sizeof g->pods - len, ",...");
	else
		snprintf(g->pods + len, sizeof g->pods - len, "%s%s", len ? "," : "", name);
}

// Finds or adds the GPU of a sample and fills its names from the labels.
static struct page_view_gpu *name_gpu(struct page_view *v, const struct sample *s, struct err *e)
{
	struct page_view_gpu *g = find_gpu(v, s, e);
	if (!g)
		return NULL;
	struct device *d = &g->device;
	copy(d->model, sizeof d->model, label_of(s, "modelName"));
	copy(d->pci_bus_id, sizeof d->pci_bus_id, label_of(s, "pci_bus_id"));
	copy(d->node, sizeof d->node, label_of(s, "device"));
	copy(d->mig_profile, sizeof d->mig_profile, label_of(s, "GPU_I_PROFILE"));
	return g;
}

static int take_up(struct page_view *v, const struct sample *s, struct err *e)
{
	struct page_view_gpu *g = name_gpu(v, s, e);
	if (!g)
		return -1;
	g->lost = s->value != 1; // NaN means lost, too
	return 0;
}

// Returns the entry of a code. When too many codes occurred, it is NULL.
static struct page_view_xid *find_xid(struct page_view_gpu *g, int64_t code, bool undated)
{
	size_t i = 0;
	while (i < g->n_xids && (g->xids[i].code != code || g->xids[i].undated != undated))
		i++;
	if (i == XID_CODES_MAX + 1)
		return NULL;
	if (i == g->n_xids)
		g->xids[g->n_xids++] = (struct page_view_xid){.code = (int32_t)code, .undated = undated};
	return &g->xids[i];
}

// Takes an XID of dcgm-exporter. Several series of a GPU, such as one for each pod, may repeat it.
static void count_undated(struct page_view_gpu *g, double code, double count)
{
	g->knows[PAGE_KNOWN_XIDS] = true;
	struct page_view_xid *x = code >= 1 && code <= INT32_MAX ? find_xid(g, (int64_t)code, true) : NULL;
	if (x && count > (double)x->count && count < 1e15)
		x->count = (uint64_t)count;
}

static int take_field(struct page_view *v, const struct sample *s, enum field f, double factor, struct err *e)
{
	struct page_view_gpu *g = name_gpu(v, s, e);
	if (!g)
		return -1;
	add_pod(g, s);
	if (family_of(f)->scope == FAMILY_WHOLE && g->device.mig_id[0])
		return 0;
	if (!isfinite(s->value) || s->value >= (family_of(f)->kind == FIELD_INT ? INT_BLANK : DOUBLE_BLANK))
		return 0;
	g->has[f] = true;
	g->value[f] = s->value / factor;
	if (f == FIELD_XID_ERRORS)
		count_undated(g, s->value, 1);
	return 0;
}

// The field of gpuscale_gpu_<window>_window_<statistic>, or FIELD__COUNT.
static enum field window_of(const char *name, enum page_window *ret_statistic)
{
	static const char prefix[] = "gpuscale_gpu_";
	static const char *const suffixes[PAGE_WINDOW__COUNT] = {"_window_min", "_window_avg", "_window_max"};
	size_t len = strlen(name), ends = sizeof prefix - 1 + strlen(suffixes[0]);
	if (len <= ends || strncmp(name, prefix, sizeof prefix - 1) != 0)
		return FIELD__COUNT;
	for (int i = 0; i < PAGE_WINDOW__COUNT; i++)
		if (strcmp(name + len - strlen(suffixes[i]), suffixes[i]) == 0)
			for (enum field f = 0; f < FIELD__COUNT; f++) {
				const char *window = family_of(f)->window;
				*ret_statistic = (enum page_window)i;
				if (window && strlen(window) == len - ends &&
				    memcmp(name + sizeof prefix - 1, window, len - ends) == 0)
					return f;
			}
	return FIELD__COUNT;
}

static bool has_attributes(const struct sample *s, const struct otel_metric *m)
{
	for (size_t a = 0; a < OTEL_ATTRIBUTES_MAX && m->attributes[a].key; a++)
		if (strcmp(label_of(s, m->attributes[a].label), m->attributes[a].value) != 0)
			return false;
	return true;
}

// The field of a sample under any naming, and the factor of its value; FIELD__COUNT if there is none.
static enum field field_of(const struct sample *s, double *ret_factor)
{
	if (strncmp(s->name, "hw_", 3) != 0)
		return naming_find(s->name, ret_factor);
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		const struct otel_metric *m = naming_otel_of(f);
		*ret_factor = m ? m->factor : 1;
		if (m && strcmp(m->prometheus, s->name) == 0 && has_attributes(s, m))
			return f;
	}
	return FIELD__COUNT;
}

static int take_window(struct page_view *v, const struct sample *s, enum field f, enum page_window w, struct err *e)
{
	struct page_view_gpu *g = find_gpu(v, s, e);
	if (!g)
		return -1;
	g->has_window[f][w] = isfinite(s->value);
	g->window[f][w] = s->value;
	return 0;
}

// Processes are an addition to the page: one that cannot be shown does not hide the GPUs.
static int take_process(struct page_view *v, const struct sample *s)
{
	if (v->n_processes == PAGE_VIEW_PROCESSES_MAX || !(s->value >= 0 && s->value < 1e15)) {
		v->processes_left_out++;
		return 0;
	}
	struct page_view_process *p = &v->processes[v->n_processes++];
	copy(p->uuid, sizeof p->uuid, label_of(s, "UUID"));
	copy(p->mig_id, sizeof p->mig_id, label_of(s, "GPU_I_ID"));
	copy(p->pid, sizeof p->pid, label_of(s, "pid"));
	copy(p->name, sizeof p->name, label_of(s, "process"));
	p->memory_bytes = s->value;
	return 0;
}

// The code of the label xid; false for another text.
static bool read_code(const struct sample *s, int64_t *ret_code)
{
	const char *text = label_of(s, "xid");
	return num_parse_i64(text, strlen(text), 0, INT32_MAX, ret_code, NULL) == 0;
}

// XID samples carry the labels of the GPU, never those of an instance.
static int take_xid(struct page_view *v, const struct sample *s, bool stamp, struct err *e)
{
	struct page_view_gpu *g = find_gpu(v, s, e);
	int64_t code;
	if (!g)
		return -1;
	struct page_view_xid *x = find_xid(g, read_code(s, &code) ? code : XID_CODE_OTHER, false);
	if (!x)
		return 0;
	if (!(s->value >= 0 && s->value < 1e15))
		return err_set(e, ERR_INPUT, "%s is not a %s", s->name, stamp ? "time" : "count");
	g->knows[PAGE_KNOWN_XIDS] = true;
	if (stamp)
		x->last_s = s->value;
	else
		x->count = (uint64_t)s->value;
	return 0;
}

// dcgm-exporter's number of XIDs with one code in the last minutes.
static int take_dcgm_count(struct page_view *v, const struct sample *s, struct err *e)
{
	struct page_view_gpu *g = name_gpu(v, s, e);
	int64_t code;
	if (!g)
		return -1;
	v->has_count = true;
	if (read_code(s, &code))
		count_undated(g, (double)code, s->value);
	return 0;
}

// Reads a count of GPUs. An invalid one is an error, not 0: the page then does not show the health.
static int take_count(const struct sample *s, int64_t *ret_count, struct err *e)
{
	if (!(s->value >= 0 && s->value < 1e9))
		return err_set(e, ERR_INPUT, "%s is not a count", s->name);
	*ret_count = (int64_t)s->value;
	return 0;
}

static int take_sample(struct page_view *v, const struct sample *s, struct err *e)
{
	v->is_own |= strncmp(s->name, "gpuscale_", 9) == 0;
	if (strcmp(s->name, "gpuscale_gpu_xid_errors_total") == 0)
		return take_xid(v, s, false, e);
	if (strcmp(s->name, "gpuscale_gpu_xid_last_timestamp_seconds") == 0)
		return take_xid(v, s, true, e);
	if (strcmp(s->name, "DCGM_EXP_XID_ERRORS_COUNT") == 0)
		return take_dcgm_count(v, s, e);
	if (strcmp(s->name, "gpuscale_gpu_process_memory_bytes") == 0)
		return take_process(v, s);
	if (strcmp(s->name, "gpuscale_gpu_up") == 0)
		return take_up(v, s, e);
	if (strcmp(s->name, "gpuscale_exporter_up") == 0) {
		v->has_up = true;
		v->up = s->value == 1;
	} else if (strcmp(s->name, "gpuscale_exporter_sample_age_seconds") == 0) {
		// An invalid or absurd age is treated as the highest age.
		v->has_age = true;
		v->age_s = s->value >= 0 && s->value < PAGE_VIEW_AGE_MAX_S ? s->value : PAGE_VIEW_AGE_MAX_S;
	} else if (strcmp(s->name, "gpuscale_exporter_samples_dropped") == 0) {
		v->dropped = s->value != 0;
	} else if (strcmp(s->name, "gpuscale_exporter_devices") == 0) {
		const char *state = label_of(s, "state");
		if (strcmp(state, "lost") == 0)
			return take_count(s, &v->lost, e);
		if (strcmp(state, "missing") == 0)
			return take_count(s, &v->missing, e);
	} else {
		double factor;
		enum page_window w;
		enum field f = field_of(s, &factor), in_window = window_of(s->name, &w);
		if (in_window != FIELD__COUNT)
			return take_window(v, s, in_window, w, e);
		bool names_gpu = label_of(s, "gpu")[0] || label_of(s, "UUID")[0];
		return f == FIELD__COUNT || !names_gpu ? 0 : take_field(v, s, f, factor, e);
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct device *x = &((const struct page_view_gpu *)a)->device,
	                    *y = &((const struct page_view_gpu *)b)->device;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	int order = strcmp(x->uuid, y->uuid);
	return order ? order : strcmp(x->mig_id, y->mig_id);
}

static int read_lines(struct page_view *v, char *line, const char *text, size_t len, struct err *e)
{
	const char *end = text + len;
	size_t number = 0;
	for (const char *p = text, *stop; p < end; p = stop + 1) {
		struct sample s;
		stop = memchr(p, '\n', (size_t)(end - p));
		number++;
		// A truncated page: the last number may be incomplete, and families may be missing.
		if (!stop)
			return err_set(e, ERR_INPUT,
			               "not a page of metrics: line %zu is not terminated, the page is truncated",
			               number);
		size_t n = (size_t)(stop - p);
		if (n == 0 || *p == '#')
			continue;
		if (n >= PAGE_VIEW_LINE_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "line %zu has %zu bytes, the ceiling is %d", number, n,
			               PAGE_VIEW_LINE_BYTES_MAX - 1);
		memcpy(line, p, n);
		line[n] = '\0';
		if (strlen(line) != n || !cut_sample(line, &s)) {
			char shown[60];
			text_show(shown, sizeof shown, p, n);
			return err_set(e, ERR_INPUT, "not a page of metrics: line %zu: %s%s", number, shown,
			               *p == '<' ? "; does the URL include the path of the page, usually /metrics?"
			                         : "");
		}
		if (take_sample(v, &s, e) < 0)
			return err_wrap(e, "line %zu", number);
	}
	return 0;
}

static bool is_next_gpu(const struct page_view *v, size_t i)
{
	const struct device *d = &v->gpus[i].device, *last = i ? &v->gpus[i - 1].device : NULL;
	return !last || last->index != d->index || strcmp(last->uuid, d->uuid) != 0;
}

// Resolves what depends on the whole page. A GPU and its instances may have their faults on different series.
static void resolve_faults(struct page_view *v)
{
	bool knows[PAGE_KNOWN__COUNT] = {false};
	for (size_t i = 0; i < v->n; i++) {
		struct page_view_gpu *g = &v->gpus[i];
		size_t n = 0;
		// On a page of this exporter, DCGM_FI_DEV_XID_ERRORS repeats one of the dated counters.
		for (size_t k = 0; k < g->n_xids; k++)
			if (!g->xids[k].undated || !v->is_own)
				g->xids[n++] = g->xids[k];
		g->n_xids = n;
		g->knows[PAGE_KNOWN_XIDS] = v->is_own ? n > 0 : g->knows[PAGE_KNOWN_XIDS] || v->has_count;
		g->knows[PAGE_KNOWN_ECC] = g->has[FIELD_ECC_DBE_VOL];
		g->knows[PAGE_KNOWN_MEMORY] = g->has[FIELD_ROW_REMAP_FAILURE] || g->has[FIELD_RETIRED_PENDING];
		// Only NVIDIA's driver has them all.
		bool is_exempt = g->lost || strncmp(g->device.node, "card", 4) == 0;
		for (int k = 0; k < PAGE_KNOWN__COUNT; k++) {
			knows[k] = (!is_next_gpu(v, i) && knows[k]) || g->knows[k] || is_exempt;
			v->unknown[k] += !knows[k] && (i + 1 == v->n || is_next_gpu(v, i + 1));
		}
	}
}

size_t page_view_count(const struct page_view *v)
{
	size_t n = 0;
	for (size_t i = 0; i < v->n; i++)
		n += is_next_gpu(v, i);
	return n;
}

struct page_view *page_view_new(const char *text, size_t len, struct err *e)
{
	struct page_view *v = calloc(1, sizeof *v);
	char *line = malloc(PAGE_VIEW_LINE_BYTES_MAX);
	int rc = v && line ? read_lines(v, line, text, len, e) : err_no_memory(e);
	free(line);
	if (rc < 0) {
		free(v);
		return NULL;
	}
	qsort(v->gpus, v->n, sizeof v->gpus[0], by_index);
	resolve_faults(v);
	return v;
}

void page_view_free(struct page_view *v)
{
	free(v);
}

bool page_view_get(const struct page_view_gpu *g, const char *family, double *ret_value)
{
	enum field f = family_find(family);
	if (f == FIELD__COUNT || !g->has[f])
		return false;
	*ret_value = g->value[f];
	return true;
}

bool page_view_get_window(const struct page_view_gpu *g, const char *family, enum page_window w, double *ret_value)
{
	enum field f = family_find(family);
	if (f == FIELD__COUNT || !g->has_window[f][w])
		return false;
	*ret_value = g->window[f][w];
	return true;
}
