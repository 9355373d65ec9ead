# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # dir: set by the script; so is die
# processes.sh: the processes of one folder: $dir/NAME.pid and $dir/NAME.log each, on ports of their own. A part of apiserver and fleet.

# shellcheck source=scripts/kube/ports.sh
. "$(dirname "${BASH_SOURCE[0]}")/ports.sh"

alive() { [ -s "$dir/$1.pid" ] && runs "$(cat "$dir/$1.pid")"; }
runs() { # PID: fails for a process that has exited, even when its parent has not waited for it yet
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } != Z* ]]
}
ends_within() { # SECONDS PID
	local end=$((SECONDS + $1))
	while runs "$2"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done
}

stop_one() { # NAME [SIGNAL]: SIGTERM, 5 s, SIGKILL. When it returns the port is free.
	local name=$1 signal=${2:-TERM} pid
	[ -s "$dir/$name.pid" ] || return 0
	pid=$(cat "$dir/$name.pid")
	kill "-$signal" "$pid" 2>/dev/null || true
	if ! ends_within 5 "$pid"; then
		kill -9 "$pid" 2>/dev/null || true
		ends_within 60 "$pid" || echo "$name (pid $pid) does not go" >&2
	fi
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
