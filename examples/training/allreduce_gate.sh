#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# allreduce_gate.sh MIN_GB_PER_S [FILE.prom]: runs all_reduce_perf of nccl-tests on the GPUs of this node before a job starts. Exit
# status 0: its average bus bandwidth is at least the minimum; 1: it is lower; 2: no figure. FILE.prom is written for the textfile
# collector of node-exporter. $ALL_REDUCE_PERF is the command, by default all_reduce_perf with messages of 1 GB on all GPUs.
set -u
min=${1:?usage: allreduce_gate.sh MIN_GB_PER_S [FILE.prom]} file=${2:-}
gpus=${GPUS:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')}
# shellcheck disable=SC2086 # words of a command
output=$(${ALL_REDUCE_PERF:-all_reduce_perf -b 1G -e 1G -n 50 -g "$gpus"} 2>&1)
busbw=$(printf '%s\n' "$output" | sed -n 's/^# Avg bus bandwidth *: *\([0-9][0-9.]*\).*/\1/p' | tail -1)
if [ -z "$busbw" ]; then
	printf '%s\nallreduce_gate: all_reduce_perf reported no average bus bandwidth\n' "$output" >&2
	exit 2
fi
if [ -n "$file" ]; then # the collector reads whole files only
	{
		echo '# HELP node_gpu_allreduce_bus_bytes_per_second Bus bandwidth of the last all_reduce_perf on the GPUs of this node.'
		echo '# TYPE node_gpu_allreduce_bus_bytes_per_second gauge'
		awk -v v="$busbw" 'BEGIN { printf "node_gpu_allreduce_bus_bytes_per_second %.0f\n", v * 1e9 }'
	} >"$file.new" && mv "$file.new" "$file" || exit 2
fi
awk -v v="$busbw" -v min="$min" 'BEGIN { printf "bus bandwidth %s GB/s, at least %s\n", v, min; exit v + 0 < min + 0 }'
