# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2030,SC2031 # each lane has a current step of its own
# steps.sh: named steps in lanes that run concurrently. Sourced by run and nightly.
#   begin FOLDER first|all [STEP..]   writes logs to FOLDER; `first` stops at the first failure, `all` continues; runs only these steps
#   lane FUNCTION                     runs the function, which calls step and after, concurrently with the other lanes
#   step NAME LIMIT_S COMMAND..       runs a step; prints its result, wall time and CPU seconds; the log is FOLDER/NAME.log.
#                                     A step of several lanes runs in the first that comes to it; the others go on
#   after NAME                        waits until the step has run, in whatever lane; returns 1 when it failed
#   finish                            waits for the lanes; prints the end of the log of the first step that failed, the
#                                     failures of every step, and the table; exits
# The last line is `N passed, N failed, N skipped`, summed over the lines of this form in the logs; a step without such
# a line counts as one test.
# CPU seconds exclude daemons that a step started and stopped by pid.

begin() {
	logs=$1 mode=$2 chosen=" ${*:3} " started=$SECONDS lanes=() current=''
	rm -rf "$logs"
	mkdir -p "$logs"
	trap 'stop_lanes; exit 130' INT
	trap 'stop_lanes; exit 143' TERM
}
is_chosen() { [[ $chosen = '  ' || $chosen = *" $1 "* ]]; }
is_stopped() { [ "$mode" = first ] && [ -e "$logs/first-failure" ]; }

step() {
	local name=$1 limit=$2 status=0 line p=0 f=0 s=0 p1 f1 s1 real user system verdict=ok TIMEFORMAT='%0R %0U %0S'
	shift 2
	is_chosen "$name" || return 0
	! is_stopped || return 1
	(set -o noclobber; : >"$logs/$name.taken") 2>/dev/null || return 0
	{
		time {
			timeout -k 30 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null &
			current=$!
			wait "$current" || status=$?
			current=
		}
	} 2>"$logs/$name.time"
	read -r real user system <"$logs/$name.time"
	while read -r line; do
		read -r p1 _ f1 _ s1 _ <<<"$line"
		p=$((p + p1)) f=$((f + f1)) s=$((s + s1))
	done < <(grep -xE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$logs/$name.log")
	[ $((p + f + s)) != 0 ] || [ "$status" != 0 ] || p=1
	[ "$status" = 0 ] || [ $f != 0 ] || f=1
	if [ "$status" != 0 ]; then
		verdict=FAIL
		(set -o noclobber; echo "$name" >"$logs/first-failure") 2>/dev/null
		[ "$status" != 124 ] || echo "stopped after its limit of $limit s" >>"$logs/$name.log"
	fi
	line=$(printf '%-15s %-4s %5d s (%5d s CPU)  %d passed, %d failed, %d skipped' "$name" $verdict "$real" $((user + system)) $p $f $s)
	printf '%s\n' "$line" "$(sed -n '/^skipped:$/,/^[^ ]/{/^  /p}' "$logs/$name.log")" | sed '/^$/d'
	echo "$line" >>"$logs/summary"
	echo "$p $f $s" >"$logs/$name.result"
	[ "$status" = 0 ]
}
after() {
	! is_chosen "$1" || until [ -e "$logs/$1.result" ] || is_stopped; do sleep 0.2; done
	! is_stopped && { [ ! -e "$logs/$1.result" ] || [ "$(cut -d' ' -f2 "$logs/$1.result")" = 0 ]; }
}
lane() {
	(
		current=
		trap '[ -z "$current" ] || { kill "$current"; wait "$current"; }; exit 143' TERM
		trap - INT
		"$1"
	) &
	lanes+=($!)
}
stop_lanes() { kill "${lanes[@]}" ${current:+"$current"} 2>/dev/null; wait; }
# failures_of STEP: prints the failing tests that test/run lists in its log, each with its program; without such a list,
# the last line of the log.
failures_of() {
	{ sed -n '/^failed:$/,/^[^ ]/s/^  \([^ ]\)/\1/p' "$logs/$1.log" | grep . || grep . "$logs/$1.log" | tail -n 1; } |
		cut -c 1-300 | awk -v name="$1" '++n <= 50 { print "  " name ": " $0 } END { if (n > 50) print "  " name ": " n - 50 " more" }'
}
finish() {
	local passed failed skipped first name
	while [ -n "$(jobs -rp)" ]; do
		wait -n
		! is_stopped || stop_lanes
	done
	if [ -e "$logs/first-failure" ]; then
		first=$(cat "$logs/first-failure")
		echo "---- $logs/$first.log (the last 400 lines) ----"
		tail -n 400 "$logs/$first.log"
		printf '\nfailures:\n'
		while read -r name; do failures_of "$name"; done < <(awk '$2 == "FAIL" {print $1}' "$logs/summary")
	fi
	printf '\n%s\ntotal %d s\n' "$(cat "$logs/summary")" $((SECONDS - started))
	read -r passed failed skipped < <(cat "$logs"/*.result | awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}
