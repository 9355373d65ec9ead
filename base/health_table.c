// SPDX-License-Identifier: Apache-2.0
#include "base/health_table.h"

#include <assert.h>
#include <string.h>

static const char *const action_names[] = {
        [HEALTH_IGNORE] = "ignore",
        [HEALTH_WATCH] = "watch",
        [HEALTH_RESTART_APP] = "restart-app",
        [HEALTH_RESET_IDLE] = "reset-idle",
        [HEALTH_DRAIN] = "drain",
        [HEALTH_DRAIN_RESET] = "drain-reset",
        [HEALTH_DRAIN_REBOOT] = "drain-reboot",
        [HEALTH_REPLACE] = "replace",
};
_Static_assert(sizeof action_names / sizeof action_names[0] == HEALTH_ACTION__COUNT, "one name per action");

const char *health_action_name(enum health_action a)
{
	assert(a < HEALTH_ACTION__COUNT);
	return action_names[a];
}

enum health_action health_action_find(const char *name)
{
	int a = 0;
	while (a < HEALTH_ACTION__COUNT && strcmp(action_names[a], name) != 0)
		a++;
	return (enum health_action)a;
}

// Codes and meanings: NVIDIA's XID catalogue. Actions: the common practice of device plugins, node monitors and cloud
// providers.
const struct health_xid health_xids[] = {
        {13, HEALTH_RESTART_APP, 1, "engine exception caused by the application"},
        {31, HEALTH_RESTART_APP, 1, "memory page fault caused by the application"},
        {43, HEALTH_IGNORE, 1, "channel stopped after another error"},
        {45, HEALTH_IGNORE, 1, "cleanup after another error"},
        {46, HEALTH_DRAIN, 1, "the GPU stopped processing"},
        {48, HEALTH_DRAIN_RESET, 1, "uncorrectable memory error"},
        {54, HEALTH_REPLACE, 1, "auxiliary power is not connected"},
        {61, HEALTH_DRAIN_RESET, 1, "microcontroller breakpoint"},
        {62, HEALTH_DRAIN_RESET, 1, "microcontroller halted"},
        {63, HEALTH_RESET_IDLE, 1, "row remapping or page retirement recorded"},
        {64, HEALTH_REPLACE, 1, "row remapping or page retirement failed"},
        {68, HEALTH_RESTART_APP, 1, "video decoder exception"},
        {69, HEALTH_RESTART_APP, 1, "graphics engine class error"},
        {74, HEALTH_DRAIN_RESET, 1, "NVLink error"},
        {79, HEALTH_DRAIN_REBOOT, 1, "the GPU has fallen off the bus"},
        {92, HEALTH_WATCH, 1, "many corrected memory errors"},
        {94, HEALTH_RESET_IDLE, 1, "contained memory error"},
        {95, HEALTH_DRAIN_RESET, 1, "uncontained memory error"},
        {109, HEALTH_DRAIN, 3, "context switch timeout"},
        {110, HEALTH_DRAIN, 1, "security fault"},
        {119, HEALTH_DRAIN_RESET, 1, "GSP timeout"},
        {120, HEALTH_DRAIN_RESET, 1, "GSP error"},
        {136, HEALTH_DRAIN, 1, "link initialisation failed"},
        {140, HEALTH_DRAIN_RESET, 1, "unrecovered memory error"},
        {142, HEALTH_DRAIN, 1, "initialisation failed"},
        {143, HEALTH_DRAIN, 1, "initialisation failed"},
        {151, HEALTH_DRAIN, 1, "key rotation failed"},
        {154, HEALTH_IGNORE, 1, "the recovery action changed, which has its own finding"},
        {155, HEALTH_DRAIN, 1, "NVLink software error"},
        {156, HEALTH_DRAIN, 1, "resource retired"},
        {158, HEALTH_DRAIN, 1, "fatal timeout"},
        {162, HEALTH_IGNORE, 1, "power smoothing on"},
        {163, HEALTH_IGNORE, 1, "power smoothing off"},
};

const size_t health_n_xids = sizeof health_xids / sizeof health_xids[0];

// clang-format off
const struct health_condition health_conditions[] = {
	{NULL,                               HEALTH_ABOVE,    0,    HEALTH_DRAIN_REBOOT, "GPULost",               "does not respond"},
	{NULL,                               HEALTH_ABOVE,    0,    HEALTH_DRAIN_REBOOT, "GPUMissing",            "is gone"},
	{"gpuscale_gpu_recovery_action",     HEALTH_IS,       1,    HEALTH_DRAIN_RESET,  "RecoveryAction",        "the driver asks for a reset"},
	{"gpuscale_gpu_recovery_action",     HEALTH_IS,       2,    HEALTH_DRAIN_REBOOT, "RecoveryAction",        "the driver asks for a reboot"},
	{"gpuscale_gpu_recovery_action",     HEALTH_IS,       3,    HEALTH_DRAIN,        "RecoveryAction",        "the driver asks to drain peer-to-peer work"},
	{"gpuscale_gpu_recovery_action",     HEALTH_IS,       4,    HEALTH_DRAIN_RESET,  "RecoveryAction",        "the driver asks to drain and reset"},
	{"gpuscale_gpu_recovery_action",     HEALTH_ABOVE,    4,    HEALTH_DRAIN,        "RecoveryAction",        "the driver asks for a recovery of the fabric"},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE",    HEALTH_ABOVE,    0,    HEALTH_REPLACE,      "RowRemapFailure",       "a memory row could not be remapped"},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING",    HEALTH_ABOVE,    0,    HEALTH_RESET_IDLE,   "RowRemapPending",       "a memory row will be remapped at the next reset"},
	{"DCGM_FI_DEV_RETIRED_PENDING",      HEALTH_ABOVE,    0,    HEALTH_RESET_IDLE,   "PageRetirementPending", "a memory page will be retired at the next reset"},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",    HEALTH_ABOVE,    0,    HEALTH_DRAIN_RESET,  "UncorrectableEcc",      "uncorrectable memory errors since the last reset"},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", HEALTH_HAS_BITS, 0x40, HEALTH_WATCH,        "HwThermalSlowdown",     "high temperature reduces the clocks"},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", HEALTH_HAS_BITS, 0x80, HEALTH_WATCH,        "HwPowerBrake",          "the power supply reduces the clocks"},
	{HEALTH_HEAT,                        HEALTH_ABOVE,    0,    HEALTH_DRAIN,        "SustainedHeat",         "high temperature has reduced the clocks for long"},
};
// clang-format on

const size_t health_n_conditions = sizeof health_conditions / sizeof health_conditions[0];

bool health_condition_holds(const struct health_condition *c, double value)
{
	if (c->compare == HEALTH_IS)
		return value == c->value;
	if (c->compare == HEALTH_ABOVE)
		return value > c->value;
	return value >= 0 && value < 1e15 && ((uint64_t)value & (uint64_t)c->value) != 0;
}
