# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work: lib.sh; BUDGETS: the script
# measure.sh: what the benchmarks share: the table and its JSON, CPU time and memory of a process. After lib.sh.
# $BUDGETS has one line per row: id|unit|how it is compared|budget|what|the reference it is held against. A row without a
# budget is reported, not judged.

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }
# Of "a=1 b=2": field TEXT NAME.
field() { [[ " $1 " =~ \ $2=([^ ]+)\  ]] || die "no field \"$2\" in: $1"; printf '%s\n' "${BASH_REMATCH[1]}"; }
calc() { awk "BEGIN { printf \"$1\", $2 }"; }

# The factor of this moment by which the machine is slower than that of docs/evidence/performance.md. calibrate prints it.
# calibrate_around begins the measurement of a row; row() ends it and takes the mean of the factors of both ends, because
# the speed of a virtual machine drifts. A caller that measured earlier sets `factor` instead.
calibrate() {
	need "$bench/bench_calibration"
	field "$("$bench/bench_calibration")" factor
}
calibrate_around() { factor_before=$(calibrate) || exit 1; }
mean() { calc %.3f "($1 + $2) / 2"; }
is_time() { case $1 in ns | us | ms | s) true ;; *) false ;; esac; }

# row ID VALUE [NOTE..]: one line of the table, its notes, and the command that gives it alone. A budget of time is
# multiplied by the factor. A row whose budget has instructions is given them in `instructions`.
row() {
	local id=$1 value=$2 line unit compare budget what reference instructions_budget ok=false note factor=${factor-} now
	shift 2
	line=$(grep "^$id|" <<<"$BUDGETS") || die "no budget for $id"
	IFS='|' read -r _ unit compare budget what reference instructions_budget <<<"$line"
	if [ -z "$budget" ] || ! is_time "$unit"; then
		factor=
	else
		[ -n "$factor" ] || { now=$(calibrate) || exit 1; factor=$(mean "${factor_before:-$now}" "$now"); }
		echo "$factor" >>"$work/factors"
		set -- "$@" "budget on this machine: $(calc %.4g "$budget * $factor") $unit, as it took $factor times the reference's time just now"
	fi
	if [ -n "$instructions_budget" ]; then
		set -- "${instructions:-unknown (valgrind is missing)} instructions (budget $instructions_budget)" "$@"
	fi
	if [ -z "$budget" ]; then
		ok=null
	elif [ "$(calc %d "$value <= $budget * ${factor:-1} && ${instructions:-0} <= ${instructions_budget:-0}")" = 1 ]; then
		ok=true
	fi
	printf '%-20s %9s %-8s %2s %-6s %-4s %s\n' "$id" "$value" "$unit" "$compare" "$budget" \
		"$(case $ok in true) echo ok ;; false) echo MISS ;; esac)" "$what"
	for note; do printf '    %s\n' "$note"; done
	[ -z "${command_name-}" ] || printf '    alone: %s %s\n' "$command_name" "$id"
	jq -nc --arg id "$id" --argjson value "$value" --arg unit "$unit" --argjson budget "${budget:-null}" \
		--arg reference "$reference" --argjson ok $ok --argjson factor "${factor:-null}" \
		--argjson instructions "${instructions:-null}" --argjson instructions_budget "${instructions_budget:-null}" \
		'$ARGS.named | if .instructions_budget then . else del(.instructions, .instructions_budget) end' >>"$work/rows"
}
# not_measured ID WHY: no row in the JSON either.
not_measured() { say "$1: not measured: $2"; }

need() { local p; for p; do [ -x "$p" ] || die "$p is not built: run make bench-programs"; done; }
wait_line() { # NAME REGEX [SECONDS]: until the log of NAME has the line
	wait_for "${3:-10}" grep -qE "$2" "$work/$1.log" >&2 || { tail -n 20 "$work/$1.log" >&2; die "$1 did not get ready"; }
}
# CPU time of all threads in us. schedstat counts ns, /proc/PID/stat only ticks of 10 ms; threads that ended are in the
# latter alone, and the programs measured here keep theirs.
cpu_us() {
	local sum
	sum=$(cat "/proc/$1/task/"*/schedstat 2>/dev/null | awk '{ ns += $1 } END { printf "%d", ns / 1000 }')
	if [ "${sum:-0}" -gt 0 ]; then echo "$sum"; return; fi
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d\n", ($12 + $13) * 1000000 / hz }' "/proc/$1/stat"
}
status_mib() { awk -v name="$2:" '$1 == name { printf "%.2f", $2 / 1024 }' "/proc/$1/status"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# begin_table: what machine this is. write_json FILE: all rows so far, and the factors of the rows as one more.
begin_table() {
	command -v jq >/dev/null || die 'jq is missing (make deps)'
	: >"$work/rows"
	: >"$work/factors"
	say "$(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-)"
}
write_json() {
	mkdir -p "$(dirname "$1")"
	calibration_row
	jq -s . "$work/rows" >"$1" || die "cannot write $1"
	printf '%s of %s rows within budget; %s\n' "$(jq '[.[] | select(.ok)] | length' "$1")" \
		"$(jq '[.[] | select(.ok != null)] | length' "$1")" "$1"
}
calibration_row() {
	local median
	[ -s "$work/factors" ] || return 0
	median=$(median <"$work/factors")
	printf 'calibration: this machine took %s times the reference'"'"'s time (median of the rows above, %s to %s)\n' "$median" \
		"$(sort -g "$work/factors" | head -n 1)" "$(sort -g "$work/factors" | tail -n 1)"
	jq -nc --argjson factor "$median" '{id: "calibration", value: $factor, unit: "ratio", budget: null,
		reference: "the machine of docs/evidence/performance.md: 1", ok: null, factor: $factor}' >>"$work/rows"
}
