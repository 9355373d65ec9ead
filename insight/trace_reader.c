// SPDX-License-Identifier: Apache-2.0
#include "insight/trace_reader.h"

#include <ctype.h>
#include <strings.h>

#include "base/base.h"
#include "base/hash.h"

const char *const trace_activity_names[] = {"collective", "data-loading", "copy", "launch", "unknown"};
_Static_assert(sizeof trace_activity_names / sizeof *trace_activity_names == TRACE_ACTIVITY__COUNT,
               "one name per activity");

// ---- what an event is: places ----

// Categories of events on the GPU; Kineto wrote "Kernel" until 1.11 and writes "kernel" since.
static const char *const gpu_categories[] = {
        "kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "hpu_op", "mtia_ccp_events"};
// The profiler's own record, waits of a stream, and host annotations that are drawn again above their kernels.
static const char *const other_categories[] = {
        "trace", "overhead", "cuda_sync", "gpu_user_annotation", "memory_profiler", "python_gc", "cuda_profiler_range"};

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(text, list[i]) == 0)
			return true;
	return false;
}

enum trace_place trace_place_of(const struct trace_labels *l)
{
	if (is_one_of(l->cat, gpu_categories, sizeof gpu_categories / sizeof *gpu_categories))
		return TRACE_ON_GPU;
	if (is_one_of(l->cat, other_categories, sizeof other_categories / sizeof *other_categories))
		return TRACE_NOWHERE;
	// Converted Nsight reports have a row per stream of a device. NVTX ranges have rows of their own in the same
	// process.
	if (strncmp(l->pid, "Device ", 7) == 0 && strncmp(l->tid, "Stream ", 7) == 0)
		return TRACE_ON_GPU;
	return TRACE_ON_HOST;
}

// ---- what an event is: activities ----

enum match {
	CALL,   // part of the name of a C function
	WHOLE,  // the name
	PREFIX, // its start
	MODULE, // start of a Python function's file, behind the folder of the packages
	PHRASE, // is_data_loading()
};

// In order of precedence.
static const struct {
	enum trace_activity activity;
	enum match match;
	const char *text;
} rules[] = {
        // clang-format off
        {TRACE_COLLECTIVE,   PREFIX, "nccl:"},
        {TRACE_COLLECTIVE,   PREFIX, "rccl:"},
        {TRACE_COLLECTIVE,   PREFIX, "gloo:"},
        {TRACE_COLLECTIVE,   PREFIX, "mpi:"},
        {TRACE_COLLECTIVE,   PREFIX, "ucc:"},
        {TRACE_COLLECTIVE,   PREFIX, "c10d::"},
        {TRACE_COLLECTIVE,   PREFIX, "_c10d_functional::"},
        {TRACE_COLLECTIVE,   PREFIX, "symm_mem::"},
        {TRACE_COLLECTIVE,   CALL,   "nccl"},
        {TRACE_COLLECTIVE,   WHOLE,  "record_param_comms"},
        {TRACE_COLLECTIVE,   WHOLE,  "gpuscale.collective"},
        {TRACE_COLLECTIVE,   MODULE, "torch/distributed/distributed_c10d.py("},
        {TRACE_COLLECTIVE,   MODULE, "torch/distributed/_functional_collectives.py("},
        {TRACE_DATA_LOADING, WHOLE,  "gpuscale.data"},
        {TRACE_DATA_LOADING, MODULE, "torch/utils/data/"},
        {TRACE_DATA_LOADING, MODULE, "torchdata/"},
        {TRACE_DATA_LOADING, MODULE, "webdataset/"},
        {TRACE_DATA_LOADING, MODULE, "nvidia/dali/"},
        {TRACE_DATA_LOADING, PHRASE, NULL},
        {TRACE_COPY,         CALL,   "Memcpy"},
        {TRACE_COPY,         CALL,   "Memset"},
        {TRACE_COPY,         WHOLE,  "aten::copy_"},
        {TRACE_COPY,         WHOLE,  "aten::to"},
        {TRACE_COPY,         WHOLE,  "aten::_to_copy"},
        {TRACE_COPY,         WHOLE,  "aten::item"},
        {TRACE_COPY,         WHOLE,  "aten::_local_scalar_dense"},
        {TRACE_COPY,         WHOLE,  "aten::pin_memory"},
        {TRACE_COPY,         WHOLE,  "aten::_pin_memory"},
        {TRACE_LAUNCH,       CALL,   "LaunchKernel"},
        {TRACE_LAUNCH,       CALL,   "GraphLaunch"},
        {TRACE_LAUNCH,       CALL,   "LaunchCooperative"},
        // clang-format on
};

static bool is_frame(const struct trace_labels *l)
{
	return strcasecmp(l->cat, "python_function") == 0;
}

static bool is_operator(const struct trace_labels *l)
{
	return strcasecmp(l->cat, "cpu_op") == 0 || strcasecmp(l->cat, "Operator") == 0;
}

// Whether the name is that of a C function, such as cudaMemcpyAsync or zeCommandListAppendLaunchKernel.
static bool is_call(const char *name, const char *part)
{
	return !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] &&
	       strstr(name, part) != NULL;
}

static bool is_in_module(const char *name, const char *module)
{
	size_t len = strlen(module);
	for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (strncmp(at, module, len) == 0)
			return true;
	return false;
}

// Whether an annotation names the loading of data, in any spelling: "DATA_LOADING", "Load Batch", "getNextBatch". A
// path is not an annotation.
static bool is_data_loading(const struct trace_labels *l)
{
	static const char phrases[] =
	        "dataload\0dataprep\0datafetch\0loaddata\0fetchdata\0readdata\0preparedata\0"
	        "waitfordata\0loadbatch\0loadingbatch\0batchload\0batchfetch\0fetchbatch\0getbatch\0"
	        "nextbatch\0readbatch\0preparebatch\0inputpipeline\0iteratorgetnext\0";
	if (l->name[0] == '/' || strstr(l->name, ".py") || (is_operator(l) && strstr(l->name, "::")))
		return false;
	for (const char *phrase = phrases; *phrase; phrase += strlen(phrase) + 1)
		for (const char *at = l->name; *at; at++) {
			size_t n = 0;
			if (at > l->name && isalnum((unsigned char)at[-1]) &&
			    !(isupper((unsigned char)*at) && islower((unsigned char)at[-1])))
				continue; // inside of a word
			for (const char *c = at; *c && *c != '/' && phrase[n]; c++)
				if (isalnum((unsigned char)*c) && tolower((unsigned char)*c) != phrase[n++])
					break;
				else if (!phrase[n])
					return true;
		}
	return false;
}

static bool is_match(enum match match, const char *text, const struct trace_labels *l)
{
	if (is_frame(l) || match == MODULE)
		return match == MODULE && is_frame(l) && is_in_module(l->name, text);
	switch (match) {
	case CALL:
		return is_call(l->name, text) && (strcmp(text, "nccl") != 0 || strncmp(l->name, text, 4) == 0);
	case WHOLE:
		return strcmp(l->name, text) == 0;
	case PREFIX:
		return strncmp(l->name, text, strlen(text)) == 0;
	default:
		return is_data_loading(l);
	}
}

// Operators and calls by their exact names, Python functions by their module, annotations by what they name. The names
// of files and folders decide nothing.
static enum trace_activity activity_of_host(const struct trace_labels *l)
{
	if (is_frame(l) && strstr(l->name, "torch._C._distributed_c10d."))
		return TRACE_COLLECTIVE; // a built-in method of a process group
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (is_match(rules[i].match, rules[i].text, l))
			return rules[i].activity;
	return is_operator(l) ? TRACE_LAUNCH : TRACE_UNKNOWN;
}

// Collectives of NCCL, RCCL, NVSHMEM, DeepEP, and the all-reduce of inference engines.
static bool is_collective_kernel(const char *name)
{
	static const char *const parts[] = {
	        "ncclKernel", "ncclDevKernel", "cross_device_reduce", "allreduce",      "all_reduce",
	        "allgather",  "all_gather",    "reducescatter",       "reduce_scatter", "alltoall",
	        "all_to_all", "multimem_",     "deep_ep::",           "nvshmem",        "mscclpp",
	        "quickreduce"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strcasestr(name, parts[i]))
			return true;
	return strncmp(name, "nccl", 4) == 0 || strncmp(name, "rccl", 4) == 0;
}

bool trace_is_launch(const char *name)
{
	return is_call(name, "LaunchKernel") || is_call(name, "GraphLaunch") || is_call(name, "LaunchCooperative");
}

bool trace_is_pin_thread(const char *name)
{
	return strstr(name, "): _pin_memory_loop") != NULL;
}

bool trace_is_pin_operator(const char *name)
{
	return strcmp(name, "aten::pin_memory") == 0 || strcmp(name, "aten::_pin_memory") == 0;
}

// ---- rules of the user ----

int trace_classes_add(struct trace_classes *c, const char *text, struct err *e)
{
	const char *sign = strrchr(text, '=');
	int a = 0;
	while (sign && a < TRACE_ACTIVITY__COUNT && strcmp(sign + 1, trace_activity_names[a]) != 0)
		a++;
	if (!sign || sign == text || a == TRACE_ACTIVITY__COUNT)
		return err_set(e, ERR_INPUT,
		               "expected REGEX=ACTIVITY with one of collective, data-loading, copy, launch, unknown, "
		               "got \"%s\"",
		               text);
	if (c->n == TRACE_CLASSES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d rules", TRACE_CLASSES_MAX);
	struct trace_class *row = &c->rows[c->n];
	char message[128], *regex = strndup(text, (size_t)(sign - text));
	if (!regex)
		return err_no_memory(e);
	int code = regcomp(&row->regex, regex, REG_EXTENDED | REG_NOSUB);
	free(regex);
	if (code != 0) {
		regerror(code, &row->regex, message, sizeof message);
		return err_set(e, ERR_INPUT, "invalid regular expression in \"%s\": %s", text, message);
	}
	row->activity = (enum trace_activity)a;
	c->n++;
	return 0;
}

void trace_classes_done(struct trace_classes *c)
{
	for (size_t i = 0; i < c->n; i++)
		regfree(&c->rows[i].regex);
	c->n = 0;
}

// Returns the activity of the first rule that matches, else `otherwise`. c may be NULL.
static enum trace_activity find_class(const struct trace_classes *c, const char *name, enum trace_activity otherwise)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (regexec(&c->rows[i].regex, name, 0, NULL, 0) == 0)
			return c->rows[i].activity;
	return otherwise;
}

// ---- members ----

enum member { OTHER, PHASE, CATEGORY, NAME, PROCESS, THREAD, TIME, DURATION, ARGUMENTS, DEVICE, LABEL };

static const struct {
	const char *key;
	enum member member;
} members[] = {
        {"ph", PHASE},   {"cat", CATEGORY}, {"name", NAME},    {"pid", PROCESS},
        {"tid", THREAD}, {"ts", TIME},      {"dur", DURATION}, {"args", ARGUMENTS},
};

// A "B" event.
struct trace_open {
	uint64_t thread; // hash of process and thread
	int64_t ts_ns, device;
	bool has_device;
	char cat[TRACE_TEXT_BYTES], *name;
};

static int on_token(void *arg, const struct json_token *token, struct err *e);

void trace_reader_init(struct trace_reader *r, trace_event_fn *fn, void *arg)
{
	*r = (struct trace_reader){.fn = fn, .arg = arg};
	json_scan_init(&r->scan, TRACE_NAME_BYTES - 1, on_token, r);
}

void trace_reader_done(struct trace_reader *r)
{
	json_scan_done(&r->scan);
	for (size_t i = 0; i < r->n_open; i++)
		free(r->open[i].name);
	free(r->open);
	r->open = NULL;
}

static int invalid(const char *what, struct err *e)
{
	return err_set(e, ERR_INPUT, "%s", what);
}

// ---- values ----

// Copies a text; the scanner has cut it at a byte, which may be inside of a character.
static void take_text(char *out, size_t size, const struct json_token *t)
{
	size_t len = t->len < size - 1 ? t->len : size - 1;
	while (len > 0 && len < t->bytes && ((unsigned char)t->text[len - 1] & 0xc0) == 0x80)
		len--; // the bytes of a cut character behind its first
	if (len > 0 && len < t->bytes && ((unsigned char)t->text[len - 1] & 0xc0) == 0xc0)
		len--;
	memcpy(out, t->text, len);
	out[len] = '\0';
}

// Microseconds as a decimal number, which some programs write as a string, to nanoseconds, exactly: a double has 53
// bits, and times since 1970 need 61.
static int take_time(const struct json_token *t, int64_t *ret_ns, bool *ret_has, struct err *e)
{
	double v;
	if (t->kind == JSON_NULL)
		return 0;
	if ((t->kind != JSON_NUMBER && t->kind != JSON_STRING) || num_parse_f64(t->text, t->len, &v, e) < 0)
		return invalid("expected a number of microseconds in ts and dur", e);
	const char *end = t->text + t->len, *digits = t->text + (t->text[0] == '-');
	const char *point = memchr(t->text, '.', t->len);
	const char *whole_end = point ? point : end;
	int64_t us = 0, ns = 0;
	if (memchr(t->text, 'e', t->len) || memchr(t->text, 'E', t->len)) {
		if (!(v > -(double)TRACE_TIME_MAX_US && v < (double)TRACE_TIME_MAX_US))
			return invalid("a time or duration is beyond 95 years", e);
		*ret_ns = (int64_t)(v * 1000);
		*ret_has = true;
		return 0;
	}
	if (num_parse_i64(digits, (size_t)(whole_end - digits), 0, TRACE_TIME_MAX_US, &us, NULL) < 0)
		return invalid("a time or duration is beyond 95 years", e);
	for (int i = 0; i < 3; i++)
		ns = ns * 10 + (point && point + 1 + i < end ? point[1 + i] - '0' : 0);
	us = us * 1000 + ns;
	*ret_ns = digits == t->text ? us : -us;
	*ret_has = true;
	return 0;
}

static int take_value(struct trace_reader *r, const struct json_token *t, struct err *e)
{
	static const struct {
		size_t at, size;
	} texts[] = {
	        [CATEGORY] = {offsetof(struct trace_members, cat), TRACE_TEXT_BYTES},
	        [NAME] = {offsetof(struct trace_members, name), TRACE_NAME_BYTES},
	        [PROCESS] = {offsetof(struct trace_members, pid), TRACE_TEXT_BYTES},
	        [THREAD] = {offsetof(struct trace_members, tid), TRACE_TEXT_BYTES},
	        [LABEL] = {offsetof(struct trace_members, label), TRACE_TEXT_BYTES},
	};
	enum member member = (enum member)r->member;
	r->member = OTHER;
	if (texts[member].size > 0)
		take_text((char *)&r->event + texts[member].at, texts[member].size, t);
	else if (member == TIME)
		return take_time(t, &r->event.ts_ns, &r->event.has_ts, e);
	else if (member == DURATION)
		return take_time(t, &r->event.dur_ns, &r->event.has_dur, e);
	else if (member == PHASE)
		r->event.phase = t->kind == JSON_STRING && t->len == 1 ? t->text[0] : '\0';
	else if (member == DEVICE)
		r->event.has_device = t->kind <= JSON_NUMBER &&
		                      num_parse_i64(t->text, t->len, 0, INT32_MAX, &r->event.device, NULL) == 0;
	return 0;
}

// ---- events ----

static uint64_t thread_of(const struct trace_reader *r)
{
	return hash_text(hash_text(HASH_START, r->event.pid), r->event.tid);
}

// The device of a GPU event: args.device, else the number of its process ("0", "Device 0"), else 0.
static int32_t gpu_of(bool has_device, int64_t device, const char *pid)
{
	const char *digits = pid + strcspn(pid, "0123456789");
	if (!has_device && num_parse_i64(digits, strspn(digits, "0123456789"), 0, INT32_MAX, &device, NULL) < 0)
		device = 0;
	return (int32_t)device;
}

// The rows of GPUs in the traces of TensorFlow and JAX: the process "/device:GPU:0" and its threads "Stream #14(..)".
static const struct trace_row *find_row(const struct trace_reader *r, uint64_t key)
{
	for (size_t i = 0; i < r->n_rows; i++)
		if (r->rows[i].key == key)
			return &r->rows[i];
	return NULL;
}

static void take_metadata(struct trace_reader *r)
{
	static const char device[] = "/device:GPU:";
	const char *number = strstr(r->event.label, device);
	int64_t gpu = 0;
	bool is_stream = strcmp(r->event.name, "thread_name") == 0 && strncmp(r->event.label, "Stream #", 8) == 0;
	if (!number && strstr(r->event.label, "/device:") && !strstr(r->event.label, ":CPU") && !r->other_device[0])
		memcpy(r->other_device, r->event.label, sizeof r->other_device);
	if (r->n_rows == TRACE_ROWS_MAX || (!is_stream && (!number || strcmp(r->event.name, "process_name") != 0)))
		return;
	if (number)
		num_parse_i64(number + strlen(device), strspn(number + strlen(device), "0123456789"), 0, INT32_MAX,
		              &gpu, NULL);
	r->rows[r->n_rows++] =
	        (struct trace_row){is_stream ? thread_of(r) : hash_text(HASH_START, r->event.pid), (int32_t)gpu};
}

static int emit(struct trace_reader *r, const struct trace_labels *l, int64_t start_ns, int64_t end_ns, int32_t gpu,
                struct err *e)
{
	struct trace_event event = {.place = trace_place_of(l),
	                            .activity = TRACE_UNKNOWN,
	                            .gpu = gpu,
	                            .process = l->pid,
	                            .thread = thread_of(r),
	                            .is_frame = is_frame(l),
	                            .start_ns = start_ns,
	                            .end_ns = end_ns,
	                            .name = l->name};
	if (end_ns < start_ns) {
		r->n_negative++;
		return 0;
	}
	const struct trace_row *row = r->n_rows > 0 ? find_row(r, hash_text(HASH_START, l->pid)) : NULL;
	if (row) {
		event.place = find_row(r, event.thread) ? TRACE_ON_GPU : TRACE_NOWHERE;
		event.gpu = row->gpu;
	}
	if (event.place == TRACE_ON_HOST)
		event.activity = find_class(r->classes, l->name, activity_of_host(l));
	if (event.place == TRACE_ON_HOST && event.activity == TRACE_UNKNOWN && r->event.has_device &&
	    !strstr(l->cat, "runtime") && !strstr(l->cat, "driver") && !r->other_device[0])
		memcpy(r->other_device, l->cat, strlen(l->cat) + 1);
	else if (event.place == TRACE_ON_GPU)
		event.activity = is_collective_kernel(l->name) ? TRACE_COLLECTIVE : TRACE_UNKNOWN;
	r->n_events++;
	return r->fn(r->arg, &event, e);
}

static int begin_event(struct trace_reader *r, struct err *e)
{
	if (!r->open && !(r->open = calloc(TRACE_OPEN_MAX, sizeof *r->open)))
		return err_no_memory(e);
	if (r->n_open == TRACE_OPEN_MAX)
		return err_set(e, ERR_LIMIT, "more than %d events have begun (\"B\") and not ended (\"E\")",
		               TRACE_OPEN_MAX);
	char *name = strdup(r->event.name);
	if (!name)
		return err_no_memory(e);
	struct trace_open *o = &r->open[r->n_open++];
	*o = (struct trace_open){.thread = thread_of(r),
	                         .ts_ns = r->event.ts_ns,
	                         .device = r->event.device,
	                         .has_device = r->event.has_device,
	                         .name = name};
	memcpy(o->cat, r->event.cat, sizeof o->cat);
	return 0;
}

// "E" ends the last "B" of its thread.
static int end_event(struct trace_reader *r, struct err *e)
{
	uint64_t thread = thread_of(r);
	size_t i = r->n_open;
	while (i > 0 && r->open[i - 1].thread != thread)
		i--;
	if (i == 0) {
		r->n_unmatched++;
		return 0;
	}
	const struct trace_open *o = &r->open[i - 1];
	const struct trace_labels l = {o->cat, o->name, r->event.pid, r->event.tid};
	int rc = emit(r, &l, o->ts_ns, r->event.ts_ns, gpu_of(o->has_device, o->device, r->event.pid), e);
	free(o->name);
	r->n_open--;
	memmove(&r->open[i - 1], &r->open[i], (r->n_open - (i - 1)) * sizeof *r->open);
	return rc;
}

static int take_event(struct trace_reader *r, struct err *e)
{
	char phase = r->event.phase;
	if (phase == 'M')
		take_metadata(r);
	if (phase != 'X' && phase != 'B' && phase != 'E')
		return 0; // metadata, flows, counters, instants
	if (!r->event.has_ts)
		return invalid("an event of phase X, B or E has no ts", e);
	if (phase == 'B')
		return begin_event(r, e);
	if (phase == 'E')
		return end_event(r, e);
	const struct trace_labels l = {r->event.cat, r->event.name, r->event.pid, r->event.tid};
	return emit(r, &l, r->event.ts_ns, r->event.ts_ns + r->event.dur_ns,
	            gpu_of(r->event.has_device, r->event.device, r->event.pid), e);
}

// ---- structure ----

static enum member member_of(const struct json_token *t)
{
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (strlen(members[i].key) == t->bytes && memcmp(members[i].key, t->text, t->len) == 0)
			return members[i].member;
	return OTHER;
}

// Tokens outside of events. Depth 1 is the root.
static int take_outer(struct trace_reader *r, const struct json_token *t, struct err *e)
{
	size_t depth = r->scan.depth;
	if (depth == 1 && t->kind == JSON_ARRAY_BEGIN && !r->event_depth) {
		r->event_depth = 2;
		r->in_events = r->has_events = true;
	} else if (depth == 1 && t->kind == JSON_OBJECT_BEGIN && !r->event_depth) {
		r->event_depth = 3;
	} else if (!r->event_depth) {
		return invalid("expected an object with traceEvents, or an array of events", e);
	} else if (depth == 1 && t->kind == JSON_KEY) {
		r->in_events = t->bytes == 11 && memcmp(t->text, "traceEvents", 11) == 0;
	} else if (r->in_events && r->event_depth == 3 && depth == 2 && t->kind == JSON_ARRAY_BEGIN) {
		r->has_events = true;
	} else if (r->in_events && r->event_depth == 3 && depth == 1 && t->kind != JSON_ARRAY_END &&
	           t->kind != JSON_OBJECT_END) {
		return invalid("expected an array in traceEvents", e);
	}
	return 0;
}

static bool is_scalar(const struct json_token *t)
{
	return t->kind >= JSON_STRING;
}

// A token directly in an event.
static int take_member(struct trace_reader *r, const struct json_token *t, struct err *e)
{
	if (is_scalar(t))
		return take_value(r, t, e);
	if (t->kind == JSON_ARRAY_BEGIN)
		return invalid("expected an event, an object, in the list of events", e);
	if (t->kind == JSON_OBJECT_BEGIN) {
		r->event.phase = r->event.cat[0] = r->event.pid[0] = r->event.tid[0] = r->event.name[0] = '\0';
		r->event.label[0] = '\0';
		r->event.has_ts = r->event.has_dur = r->event.has_device = false;
		r->event.ts_ns = r->event.dur_ns = r->event.device = 0;
	}
	r->member = t->kind == JSON_KEY ? (int)member_of(t) : OTHER;
	return 0;
}

// A token in an object or array in an event; only args.device and args.name matter.
static int take_inner(struct trace_reader *r, const struct json_token *t, struct err *e)
{
	bool is_argument = r->scan.depth == r->event_depth + 1;
	if (t->kind == JSON_OBJECT_BEGIN || t->kind == JSON_ARRAY_BEGIN) {
		if (is_argument && (r->member == TIME || r->member == DURATION))
			return invalid("expected a number of microseconds in ts and dur", e);
		if (is_argument)
			r->in_args = r->member == ARGUMENTS && t->kind == JSON_OBJECT_BEGIN;
		r->member = OTHER;
	} else if (t->kind == JSON_KEY) {
		bool is_read = is_argument && r->in_args;
		r->member = is_read && t->bytes == 6 && memcmp(t->text, "device", 6) == 0 ? (int)DEVICE
		            : is_read && t->bytes == 4 && memcmp(t->text, "name", 4) == 0 ? (int)LABEL
		                                                                          : OTHER;
	} else if (is_scalar(t)) {
		return take_value(r, t, e);
	}
	return 0;
}

static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	struct trace_reader *r = arg;
	size_t depth = r->scan.depth, list = r->event_depth - 1;
	if (!r->in_events || depth < list || (depth == list && t->kind == JSON_ARRAY_BEGIN))
		return take_outer(r, t, e);
	if (depth == list)
		return t->kind == JSON_OBJECT_END ? take_event(r, e)
		                                  : invalid("expected an event, an object, in the list of events", e);
	return depth == r->event_depth ? take_member(r, t, e) : take_inner(r, t, e);
}

// ---- the stream ----

static int at_byte(const struct trace_reader *r, struct err *e)
{
	if (e->kind == ERR_PROTOCOL)
		e->kind = ERR_INPUT;
	if (e->kind == ERR_INPUT || e->kind == ERR_LIMIT)
		err_wrap(e, "byte %zu", r->scan.error_at);
	return -1;
}

int trace_reader_feed(struct trace_reader *r, const char *data, size_t len, struct err *e)
{
	return json_scan_feed(&r->scan, data, len, e) < 0 ? at_byte(r, e) : 0;
}

int trace_reader_finish(struct trace_reader *r, struct err *e)
{
	bool is_list = r->event_depth == 2 && r->scan.depth == 1 && !r->scan.has_failed;
	if (!is_list && json_scan_finish(&r->scan, e) < 0) // the format allows a list without its end
		return at_byte(r, e);
	if (!r->has_events)
		return err_set(e, ERR_INPUT, "no traceEvents: this is not a trace in Chrome's format");
	r->n_unmatched += r->n_open;
	while (r->n_open > 0)
		free(r->open[--r->n_open].name);
	return 0;
}
