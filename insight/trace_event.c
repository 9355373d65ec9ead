// SPDX-License-Identifier: Apache-2.0
#include "insight/trace_event.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

const char *trace_activity_name(enum trace_activity a)
{
	static const char *const names[] = {"collective", "data-loading", "copy", "launch", "unknown"};
	_Static_assert(sizeof names / sizeof *names == TRACE_ACTIVITY__COUNT, "one name per activity");
	return names[a];
}

// ---- places ----

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

// ---- activities ----

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

bool trace_is_frame(const struct trace_labels *l)
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
	if (trace_is_frame(l) || match == MODULE)
		return match == MODULE && trace_is_frame(l) && is_in_module(l->name, text);
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

enum trace_activity trace_activity_of_host(const struct trace_labels *l)
{
	if (trace_is_frame(l) && strstr(l->name, "torch._C._distributed_c10d."))
		return TRACE_COLLECTIVE; // a built-in method of a process group
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (is_match(rules[i].match, rules[i].text, l))
			return rules[i].activity;
	return is_operator(l) ? TRACE_LAUNCH : TRACE_UNKNOWN;
}

bool trace_is_collective_kernel(const char *name)
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
	while (sign && a < TRACE_ACTIVITY__COUNT && strcmp(sign + 1, trace_activity_name((enum trace_activity)a)) != 0)
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

enum trace_activity trace_classes_find(const struct trace_classes *c, const char *name, enum trace_activity otherwise)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (regexec(&c->rows[i].regex, name, 0, NULL, 0) == 0)
			return c->rows[i].activity;
	return otherwise;
}
