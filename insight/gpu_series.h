// SPDX-License-Identifier: Apache-2.0
// How much of a device is in use, in PromQL: what every query of insight/ reads. Which families apply to an instance is
// in the table of exporter/families.h: GPU_UTIL does not, and exporters that serve it there report 0. The recording
// rules (manifests/monitoring/rules/gpu.yaml) define gpu:busy:ratio and gpu:priced_share:ratio in the same way.
#ifndef GPUSCALE_INSIGHT_GPU_SERIES_H
#define GPUSCALE_INSIGHT_GPU_SERIES_H

// The pods of exporters: dcgm-exporter, gpuscale-exporter, AMD's device-metrics-exporter, Intel's xpumanager.
#define GPU_EXPORTER_PODS ".*((dcgm|gpuscale|metrics)-exporter|xpumanager).*"

// A device is a GPU, or a MIG instance of a GPU that is divided.
#define GPU_DEVICE       "UUID, GPU_I_ID"
#define GPU_INSTANCE     "{GPU_I_ID!=\"\"}"
#define GPU_WHOLE        "{GPU_I_ID=\"\"}"
#define GPU_BY_DEVICE(x) "max by (" GPU_DEVICE ") (" x ")"
#define GPU_UTIL         "DCGM_FI_DEV_GPU_UTIL" GPU_WHOLE
#define GPU_SM           "DCGM_FI_PROF_SM_ACTIVE"
#define GPU_ENGINE       "DCGM_FI_PROF_GR_ENGINE_ACTIVE"

// The busy part of each device, from 0 to 1: GPU_UTIL of a whole GPU, else the larger of SM_ACTIVE and
// GR_ENGINE_ACTIVE, which reach 1.3 on an instance (NVIDIA/DCGM issue 152). Without any of them there is no value.
// OF(family) is what is measured of a family, such as its mean over a window.
#define GPU_BUSY(OF)                                                                                                   \
	"clamp(" GPU_BY_DEVICE(OF(GPU_UTIL)) " / 100 or " GPU_BY_DEVICE(                                               \
	        "(" OF(GPU_SM) ") or label_replace((" OF(GPU_ENGINE) "), \"is\", \"engine\", \"\", \"\")") ", 0, 1)"
#define GPU_NOW(family) family

// The part of the GPU that each instance is, by its memory among that of all instances: they share the whole price.
#define GPU_MEMORY(selector) GPU_BY_DEVICE("DCGM_FI_DEV_FB_USED" selector " + DCGM_FI_DEV_FB_FREE" selector)
#define GPU_INSTANCE_SHARE                                                                                             \
	"(" GPU_MEMORY(GPU_INSTANCE) " / on (UUID) group_left () sum by (UUID) (" GPU_MEMORY(GPU_INSTANCE) "))"

#endif
