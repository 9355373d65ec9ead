# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# ports.sh: free loopback ports, reserved against all callers of this file and of test/support/lib.sh: a file named after the port contains the
# process that holds it, in a folder of this user. A part of scripts/cluster, apiserver and fleet, which have die().
PORT_LOCKS=${TMPDIR:-/tmp}/gpuscale-ports-$(id -u)

# free_port: prints a port below those of outgoing connections that no process listens on, held by this shell's process ($$).
free_port() {
	local port try holder
	mkdir -p "$PORT_LOCKS"
	for ((try = 0; try < 200; try++)); do
		port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		if ! (set -o noclobber; echo $$ >"$PORT_LOCKS/$port") 2>/dev/null; then
			holder=$(cat "$PORT_LOCKS/$port" 2>/dev/null) || continue
			if [ -z "$holder" ] || kill -0 "$holder" 2>/dev/null; then continue; fi
			echo $$ >"$PORT_LOCKS/$port"
		fi
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
		rm -f "$PORT_LOCKS/$port"
	done
	die 'no free port found'
}
# give_port PORT PID: from now on that process holds it, until it ends.
give_port() { echo "$2" >"$PORT_LOCKS/$1"; }
