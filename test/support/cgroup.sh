# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # some variables are for the caller
# cgroup.sh: a memory cgroup for one process of a test, of either version. Source it after lib.sh.
#   cgroup_make LIMIT     such as 128Mi. Sets CGROUP_PROCS (a process writes its pid there), CGROUP_LIMIT_MIB; 1 with
#                         CGROUP_ERROR when it cannot be made. It is removed at the end.
#   cgroup_peak_mib       the most memory it has held
#   cgroup_parts          "USAGE ANON FILE KERNEL SOCKETS" in bytes, now; USAGE is the sum that a version 2 cgroup would limit
#   cgroup_watch FILE     appends "TIME USAGE ANON FILE KERNEL SOCKETS" twice a second, until it is stopped; for `start`
#   cgroup_watch_peak FILE  the line of FILE with the highest USAGE, in words
#   cgroup_oom_kills      how many processes were killed for it
cgroup_make() {
	local limit_bytes=$((${1%Mi} * 1048576)) v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup
	CGROUP_LIMIT_MIB=${1%Mi}
	if [ -e $v1/memory.limit_in_bytes ]; then
		CGROUP_DIR=$v1/gpuscale-test-$$ CGROUP_LIMIT=memory.limit_in_bytes CGROUP_PEAK=memory.max_usage_in_bytes
	elif [ -e $v2/cgroup.controllers ]; then
		CGROUP_DIR=$v2/gpuscale-test-$$ CGROUP_LIMIT=memory.max CGROUP_PEAK=memory.peak
		echo +memory >$v2/cgroup.subtree_control 2>/dev/null
	else
		CGROUP_ERROR='no cgroups are mounted at /sys/fs/cgroup'
		return 1
	fi
	mkdir "$CGROUP_DIR" 2>/dev/null || { CGROUP_ERROR="$CGROUP_DIR cannot be made"; return 1; }
	on_exit cgroup_remove
	# Version 1 counts socket buffers only once they have a limit, and beside the rest: this one counts them and limits nothing.
	if [ "$CGROUP_LIMIT" = memory.limit_in_bytes ]; then echo $((1 << 40)) >"$CGROUP_DIR/memory.kmem.tcp.limit_in_bytes"; fi 2>/dev/null
	{ echo "$limit_bytes" >"$CGROUP_DIR/$CGROUP_LIMIT"; } 2>/dev/null || { CGROUP_ERROR="$CGROUP_DIR/$CGROUP_LIMIT cannot be written"; return 1; }
	CGROUP_PROCS=$CGROUP_DIR/cgroup.procs
}
cgroup_peak_mib() { awk '{ printf "%.1f", $1 / 1048576 }' "$CGROUP_DIR/$CGROUP_PEAK" 2>/dev/null; }
cgroup_parts() {
	if [ "$CGROUP_LIMIT" = memory.max ]; then
		awk 'NF == 1 {usage = $1} NF == 2 {v[$1] = $2} END {print usage, v["anon"], v["file"], v["kernel"], v["sock"]}' "$CGROUP_DIR"/memory.{current,stat}
	else
		awk 'NF == 1 {n[++files] = $1} NF == 2 {v[$1] = $2} END {print n[1] + n[3], v["rss"], v["cache"], n[2], n[3]}' \
			"$CGROUP_DIR"/memory.{usage_in_bytes,kmem.usage_in_bytes,kmem.tcp.usage_in_bytes,stat}
	fi
}
cgroup_watch() { while sleep 0.5; do printf '%s %s\n' "$EPOCHREALTIME" "$(cgroup_parts)" >>"$1"; done; }
cgroup_watch_peak() {
	sort -k2,2n "$1" | tail -n 1 | awk '{m = 1048576; printf "%.1f MiB: %.1f of the process, %.1f of files, %.1f of the kernel, %.1f of socket buffers", $2 / m, $3 / m, $4 / m, $5 / m, $6 / m}'
}
cgroup_oom_kills() { sed -n 's/^oom_kill //p' "$CGROUP_DIR/memory.oom_control" "$CGROUP_DIR/memory.events" 2>/dev/null; }
# Its processes are stopped after the commands of on_exit, so they are moved out first.
cgroup_remove() {
	local pid
	while read -r pid; do echo "$pid" >"${CGROUP_DIR%/*}/cgroup.procs"; done <"$CGROUP_DIR/cgroup.procs" 2>/dev/null
	rmdir "$CGROUP_DIR" 2>/dev/null
}
