// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_reason.h"

// clang-format off
static const struct remedy_reason_info table[] = {
	[REMEDY_NO_REASON]          = {"",                      ""},
	[REMEDY_FAULT]              = {"Fault",                 "the GPU reported a fault"},
	[REMEDY_CLEAN]              = {"Clean",                 "no fault for the required time, with telemetry"},
	[REMEDY_REPLACED]           = {"Replaced",              "the GPU is no longer in the node"},
	[REMEDY_IDLE]               = {"Idle",                  "no pod uses the GPU"},
	[REMEDY_MAX_UNAVAILABLE]    = {"MaxUnavailable",        "as many nodes are out of service as the limits allow"},
	[REMEDY_ATTEMPTS_EXHAUSTED] = {"AttemptsExhausted",     "the node was taken out of service as often as the limit per day allows: a person must examine it"},
	[REMEDY_CORDONED]           = {"CordonedByOther",       "the node is already cordoned, or not ready: its evidence is kept"},
	[REMEDY_TELEMETRY_MISSING]  = {"TelemetryMissing",      "the GPU reports nothing: the planner neither takes it out of service nor returns it"},
	[REMEDY_CHECKPOINT]         = {"WaitsForCheckpoint",    "a pod moves at its next checkpoint"},
	[REMEDY_EVICTION_REFUSED]   = {"EvictionRefused",       "a PodDisruptionBudget refuses the eviction: the planner tries again at growing intervals"},
	[REMEDY_PODS_UNKNOWN]       = {"PodsUnknown",           "the pods of the node are not known: nothing is evicted or reset"},
	[REMEDY_NEEDS_REBOOT]       = {"NeedsReboot",           "the fault needs a reboot of the node"},
	[REMEDY_NEEDS_REPLACEMENT]  = {"NeedsReplacement",      "the fault needs new hardware"},
	[REMEDY_RESET_FAILED]       = {"ResetFailed",           "the reset of the GPU failed, or had no answer: a person must examine it"},
	[REMEDY_LIFTED]             = {"LiftedByHand",          "the taint was removed by hand: the evidence so far counts as handled"},
	[REMEDY_ADOPTED]            = {"Adopted",               "the node has a taint of gpuscale without a record: it returns after the clean time"},
	[REMEDY_CONTRADICTED]       = {"Contradicted",          "series about this node contradict each other or are too many: none is used"},
	[REMEDY_UNKNOWN_NODE]       = {"UnknownNode",           "the cluster has no such node"},
	[REMEDY_FUTURE]             = {"FromTheFuture",         "the time of the event lies in the future"},
	[REMEDY_TOO_OLD]            = {"TooOld",                "the event is more than an hour old"},
	[REMEDY_TOO_MANY_GPUS]      = {"TooManyGPUs",           "the node has more GPUs than the ceiling of 16"},
	[REMEDY_TOO_MANY_NODES]     = {"TooManyNodes",          "the cluster has more nodes than the ceiling of 5000"},
	[REMEDY_TOO_MANY_PODS]      = {"TooManyPods",           "the node has more pods with GPUs than the ceiling of 64"},
	[REMEDY_BAD_RECORD]         = {"BadRecord",             "the record in the node's annotation is invalid: it is ignored"},
};
// clang-format on
_Static_assert(sizeof table / sizeof table[0] == REMEDY_REASON__COUNT, "one row per reason");
_Static_assert(REMEDY_REASON__COUNT <= 32, "struct remedy_gpu has one bit per reason");

const struct remedy_reason_info *remedy_reason_info(enum remedy_reason reason)
{
	return &table[reason];
}
