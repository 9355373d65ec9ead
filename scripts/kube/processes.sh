# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # dir: set by the script; so is die
# processes.sh: the processes of one folder: $dir/NAME.pid and $dir/NAME.log each, on ports of their own. A part of apiserver and fleet.

# shellcheck source=scripts/kube/ports.sh
. "$(dirname "${BASH_SOURCE[0]}")/ports.sh"

alive() { [ -s "$dir/$1.pid" ] && kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null; }

stop_one() { # NAME [SIGNAL]: SIGTERM, 5 s, SIGKILL
	local name=$1 signal=${2:-TERM} pid
	[ -s "$dir/$name.pid" ] || return 0
	pid=$(cat "$dir/$name.pid")
	kill "-$signal" "$pid" 2>/dev/null || true
	for _ in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -9 "$pid" 2>/dev/null || true
	rm -f "$dir/$name.pid"
}

wait_ready() { # NAME SECONDS COMMAND..
	local name=$1 seconds=$2
	shift 2
	for _ in $(seq $((seconds * 20))); do
		"$@" >/dev/null 2>&1 && return 0
		alive "$name" || break
		sleep 0.05
	done
	echo "$name did not become ready; the end of $dir/$name.log:" >&2
	tail -n 5 "$dir/$name.log" >&2
	return 1
}
