# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh: what bash test scripts share. Source it first:
#
#   . "$(dirname "$0")/../support/lib.sh"
#
# Sets  root    the repository
#       out     the build output, e.g. $root/build/release ($OUT or $VARIANT choose another)
#       work    a fresh folder of this test, removed at its end (kept with KEEP=1)
# The programs of scripts/kube/build, kubectl among them, come first in PATH.
# Tests print TAP through the functions below; `done_testing` is the last line of every script: without it there is no
# plan line and the runner calls the script a failure. Everything started with `start` is stopped when the script ends.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${OUT:-build/${VARIANT:-release}}
[[ $out == /* ]] || out=$root/$out
PATH=$("$root/scripts/kube/build" --path)$PATH
export PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuscale-${0##*/}.XXXXXX") || exit 1
export KUBECACHEDIR=$work/kubectl-cache # for hours kubectl believes what it read at an address, and another server may have it by now

# However few seconds a test names, nothing counts as never before these: who waits is done as soon as it is there, and a
# busy machine must not look like a fault. A time that is itself the proof is measured by the test.
PATIENCE_S=${PATIENCE_S:-60}
# What a kubectl that was held up for more than a second says on stderr, for who takes what it says as a whole.
# shellcheck disable=SC2034 # for the tests
HELD_UP='^I[0-9]{4} .*(Throttling request took|client-side throttling)'
TAP_COUNT=0 TAP_FAILED=0
PORT_LOCKS=${TMPDIR:-/tmp}/gpuscale-ports-$(id -u)
declare -A STARTED=()   # name -> pid
declare -a PORTS_HELD=() ON_EXIT=()

# diag LINE..: prints TAP comments. Of more than 60 lines, the first and the last 30; of each, the first 400 bytes.
diag() {
	printf '%s\n' "$@" | awk -v max=60 -v width=400 '
		{ line = "# " substr($0, 1, width); if (NR <= max / 2) print line; else last[NR % (max / 2)] = line }
		END {
			if (NR > max) printf "# [%d lines omitted]\n", NR - max
			for (i = NR > max ? NR - max / 2 + 1 : max / 2 + 1; i <= NR; i++) print last[i % (max / 2)]
		}'
}

# pass NAME, fail NAME [DETAIL..], skip NAME WHAT_WAS_MISSING
pass() { TAP_COUNT=$((TAP_COUNT + 1)); printf 'ok %d - %s\n' "$TAP_COUNT" "$1"; }
fail() {
	local name=$1; shift
	TAP_COUNT=$((TAP_COUNT + 1)) TAP_FAILED=$((TAP_FAILED + 1))
	printf 'not ok %d - %s\n' "$TAP_COUNT" "$name"
	[ $# = 0 ] || diag "$@"
}
skip() { TAP_COUNT=$((TAP_COUNT + 1)); printf 'ok %d - %s # SKIP %s\n' "$TAP_COUNT" "$1" "$2"; }

# skip_all WHAT_WAS_MISSING: ends the script; every test of it is skipped.
skip_all() { printf '1..0 # SKIP %s\n' "$1"; exit 0; }

# bail_out WHY: ends the script as a failure, when going on makes no sense.
bail_out() { printf 'Bail out! %s\n' "$1"; TAP_FAILED=$((TAP_FAILED + 1)); exit 1; }

# check NAME COMMAND..: passes when the command exits 0; its output is shown when not.
check() {
	local name=$1 output; shift
	if output=$("$@" 2>&1); then pass "$name"; else fail "$name" "exit $?: $*" "$output"; fi
}

# is NAME GOT WANT: equal strings.  like NAME GOT REGEX: extended regular expression found in GOT.
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:  $2" "want: $3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "got:  $2" "want a match of: $3"; fi; }
unlike() { if [[ $2 =~ $3 ]]; then fail "$1" "got: $2" "must not match: $3"; else pass "$1"; fi; }

done_testing() {
	printf '1..%d\n' "$TAP_COUNT"
	[ "$TAP_FAILED" = 0 ]
	exit
}

# nap START_US: sleeps between two tries of something that was first tried at that time: an eighth of the time since then,
# from 20 to 500 ms. A test notices quickly what happens soon, and does not keep the machine busy while it waits.
nap() {
	local ms=$(((${EPOCHREALTIME/[^0-9]/} - $1) / 8000))
	ms=$((1000 + (ms < 20 ? 20 : ms > 500 ? 500 : ms)))
	sleep "0.${ms:1}"
}

# wait_for SECONDS COMMAND..: tries until the command succeeds. Returns 1, with a comment, after these seconds or
# $PATIENCE_S, whichever is more.
wait_for() {
	local seconds=$(($1 > PATIENCE_S ? $1 : PATIENCE_S)) start_us=${EPOCHREALTIME/[^0-9]/}; shift
	while ! "$@" >/dev/null 2>&1; do
		if [ "${EPOCHREALTIME/[^0-9]/}" -ge $((start_us + seconds * 1000000)) ]; then
			diag "gave up after $seconds s waiting for: $*"
			return 1
		fi
		nap "$start_us"
	done
}

# becomes NAME WANT COMMAND..: what the command prints is WANT, or becomes it within $PATIENCE_S; becomes_like NAME REGEX
# COMMAND.. matches. For whatever another process brings about in its own time: a controller of Kubernetes, a kubelet, a
# scrape, the program under test. `is` and `like` are for what no longer changes.
becomes() { comes_true is "$@"; }
becomes_like() { comes_true like "$@"; }
comes_true() { # is|like NAME WANT COMMAND..
	local how=$1 name=$2 want=$3 start_us=${EPOCHREALTIME/[^0-9]/} got; shift 3
	while :; do
		got=$("$@" 2>&1)
		if [ "$how" = is ]; then [ "$got" != "$want" ] || break; else [[ ! $got =~ $want ]] || break; fi
		if [ "${EPOCHREALTIME/[^0-9]/}" -ge $((start_us + PATIENCE_S * 1000000)) ]; then diag "asked for $PATIENCE_S s: $*"; break; fi
		nap "$start_us"
	done
	"$how" "$name" "$got" "$want"
}

# free_port VARIABLE: stores a loopback TCP port that nothing listens on, held for this script against other test
# scripts until it ends. Below 32768, so that no outgoing connection takes it in between.
free_port() {
	local -n ret_port=$1
	local try port holder
	mkdir -p "$PORT_LOCKS"
	for ((try = 0; try < 200; try++)); do
		port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		if ! (set -o noclobber; echo $$ >"$PORT_LOCKS/$port") 2>/dev/null; then
			holder=$(cat "$PORT_LOCKS/$port" 2>/dev/null)
			if [ -z "$holder" ] || kill -0 "$holder" 2>/dev/null; then continue; fi
			echo $$ >"$PORT_LOCKS/$port"
		fi
		PORTS_HELD+=("$port")
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			# shellcheck disable=SC2034 # a name reference: the caller's variable
			ret_port=$port
			return 0
		fi
	done
	bail_out 'no free port found in 200 tries'
}

# start NAME COMMAND..: runs the command in the background, its output in $work/NAME.log.
start() {
	local name=$1; shift
	"$@" >>"$work/$name.log" 2>&1 </dev/null &
	STARTED[$name]=$!
}
pid_of() { echo "${STARTED[$1]-}"; }
is_running() { [ -n "${STARTED[$1]-}" ] && kill -0 "${STARTED[$1]}" 2>/dev/null; }

# stop NAME [SIGNAL]: sends TERM (or SIGNAL), waits up to $PATIENCE_S, then KILL. Returns the exit status of the command,
# 137 when it had to be killed.
stop() {
	local name=$1 signal=${2:-TERM} pid=${STARTED[$1]-} end=$((SECONDS + PATIENCE_S)) status
	[ -n "$pid" ] || return 0
	unset "STARTED[$name]"
	kill -"$signal" "$pid" 2>/dev/null
	while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do sleep 0.05; done
	if kill -KILL "$pid" 2>/dev/null; then diag "$name did not end within $PATIENCE_S s of SIG$signal: killed"; fi
	wait "$pid" 2>/dev/null
	status=$?
	return "$status"
}

# show_log NAME [LINES]: the end of a log as TAP comments, for a failure.
show_log() { diag "--- end of $1.log ---" "$(tail -n "${2:-20}" "$work/$1.log" 2>&1)"; }

# side_by_side PART..: runs this script once for each PART, its only argument, all at the same time; what they say is
# printed as that of one, and the script ends. For worlds that wait more than they work.
side_by_side() {
	local part line status planned seen
	local -A of=()
	for part; do
		"$0" "$part" >"$work/$part.tap" 2>&1 </dev/null &
		of[$part]=$!
		on_exit stop_part "${of[$part]}"
	done
	for part; do
		wait "${of[$part]}"
		status=$? planned=none seen=0
		while IFS= read -r line; do
			case $line in
			1..*) planned=${line#1..} ;;
			'ok '* | 'not ok '*)
				TAP_COUNT=$((TAP_COUNT + 1)) seen=$((seen + 1))
				[[ $line == ok* ]] || TAP_FAILED=$((TAP_FAILED + 1))
				echo "${line%%ok *}ok $TAP_COUNT - ${line#* - }"
				;;
			'Bail out!'*) fail "$part: $line" ;;
			*) printf '%s\n' "$line" ;;
			esac
		done <"$work/$part.tap"
		[[ $planned = "$seen"* ]] || fail "$part comes to its end" "exit $status, $seen tests, planned: $planned"
	done
	done_testing
}
stop_part() { ! kill "$1" 2>/dev/null || wait "$1"; }

# on_exit COMMAND..: run at the end of the script, last registered first, before what was started is stopped.
on_exit() { ON_EXIT=("$(printf '%q ' "$@")" "${ON_EXIT[@]}"); }

tap_cleanup() {
	local status=$? name port command
	# A child that gets a signal between fork and exec runs its parent's traps.
	[ "$BASHPID" = $$ ] || exit "$status"
	trap '' INT TERM
	PATIENCE_S=10 # nothing is proved any more
	for command in "${ON_EXIT[@]}"; do eval "$command"; done
	for name in "${!STARTED[@]}"; do stop "$name"; done
	for port in "${PORTS_HELD[@]}"; do rm -f "$PORT_LOCKS/$port"; done
	if [ "${KEEP-}" = 1 ]; then diag "kept $work"; else rm -rf "$work"; fi
	exit "$status"
}
trap tap_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
