# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, out, work, bench: set by run-bench; instructions: for row
# Rows of run-bench that need no cluster: the engine, the exporter, the size of the binaries.

measure_decide_ns() {
	local result instructions
	result=$(decide_of) || die 'bench_decide failed'
	instructions=$(instructions_of)
	row decide_ns "$(field "$result" ns)" \
		"batches from $(field "$result" ns_min) to $(field "$result" ns_max) ns; state of $(field "$result" state_bytes) bytes" \
		"$(field "$result" allocations) allocations in $(field "$result" decisions) decisions"
}
measure_objective_us() {
	local result instructions
	result=$(decide_of objective) || die 'bench_decide objective failed'
	instructions=$(instructions_of objective)
	row objective_us "$(calc %.2f "$(field "$result" ns) / 1000")" \
		"state of $(field "$result" state_bytes) bytes, the histories of the other stages included" \
		"$(field "$result" allocations) allocations in $(field "$result" decisions) decisions"
}
# decide_of [objective]: the figures of one decision
decide_of() {
	local result
	need "$bench/bench_decide"
	result=$("$bench/bench_decide" "$@") || return
	[ "$(field "$result" allocations)" = 0 ] || say 'decide() ALLOCATES, and must not'
	printf '%s\n' "$result"
}
# instructions_of [objective]: of one decision. Two runs of different length: what starts and prepares falls out of the
# difference.
instructions_of() {
	command -v valgrind >/dev/null || return 0
	calc %.0f "($(instructions_of_run "$@" 4000) - $(instructions_of_run "$@" 2000)) / 2000.0"
}
instructions_of_run() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench/bench_decide" "$@" 2>&1 >/dev/null | awk '/Collected/ { print $4 }'
}

measure_capacity_5000_nodes() {
	local result
	result=$(capacity_of) || die 'bench_capacity failed'
	[ "$(field "$result" requests)" = 0 ] || say 'the inventory SENDS REQUESTS for changes, and must not'
	row capacity_5000_nodes "$(field "$result" rss_mib)" \
		"$(field "$result" requests) requests during 20000 changes; CPU of the first lists: $(field "$result" list_s) s" \
		"CPU of one fit: $(field "$result" fit_ms) ms"
}
measure_capacity_change_us() {
	local result
	result=$(capacity_of) || die 'bench_capacity failed'
	row capacity_change_us "$(field "$result" cpu_us)" 'from the bytes of the event to the account, 20000 changes'
}
capacity_of() { need "$bench/bench_capacity"; "$bench/bench_capacity"; }

measure_pool_1000_ms() {
	local result
	need "$bench/bench_pool"
	result=$("$bench/bench_pool" 2>/dev/null) || die 'bench_pool failed'
	row pool_1000_ms "$(field "$result" ms)" \
		"the slowest of five mixtures: $(field "$result" mixture)" \
		"$(field "$result" allocations) allocations of memory in $(field "$result" rounds) rounds"
}

measure_spread_us() {
	local result
	need "$bench/bench_spread"
	result=$("$bench/bench_spread") || die 'bench_spread failed'
	row spread_us "$(field "$result" us)" \
		"median of $(field "$result" rounds) random requests; 99 of 100 in $(field "$result" us_p99) us, the slowest in $(field "$result" us_max) us"
}

# A month of rows of 15 s, a policy with one signal, nothing but the policy: reading the file, simulating, deciding.
measure_backtest_30d_s() {
	local policy=$root/test/integration/golden/backtest/policy.yaml data=$work/month.csv seconds library
	need "$out/gpuscale"
	awk 'BEGIN { print "time,demand"; for (i = 0; i < 172800; i++) printf "%d,%.2f\n", 1767225600 + 15 * i, 6 + 4 * sin(i / 916.7) + (i * 7919 % 13) / 10 }' >"$data"
	seconds=$(backtest_cpu_s "$policy") || die 'the backtest failed'
	library=$(backtest_cpu_s "$root/policies/library/llm-demand.yaml") || die 'the backtest of llm-demand failed'
	row backtest_30d_s "$seconds" "CPU, user and system, the least of five; llm-demand, whose objective simulates 72 rules at each step: $library s"
}
backtest_cpu_s() {
	local TIMEFORMAT='%U %S' i
	for i in 1 2 3 4 5; do
		{ time "$out/gpuscale" backtest -f "$1" --data "$work/month.csv" --policy-only >"$work/backtest.out" 2>&1 || exit 1; } 2>&1
	done | awk '{ s = $1 + $2; if (NR == 1 || s < least) least = s } END { if (NR != 5) exit 1; printf "%.3f", least }'
}

# Two weeks with a day in them and noise; the time that passes, on two threads.
measure_tune_500_s() {
	local data=$work/weeks.csv seconds library
	need "$out/gpuscale"
	awk 'BEGIN { print "time,demand"; for (i = 0; i < 80640; i++) printf "%d,%.2f\n", 1767225600 + 15 * i, 6 + 4 * sin(i / 916.7) + (i * 7919 % 13) / 10 }' >"$data"
	seconds=$(tune_s "$root/test/integration/golden/backtest/policy.yaml") || die 'tune failed'
	library=$(tune_s "$root/policies/library/llm-demand.yaml") || die 'tune of llm-demand failed'
	row tune_500_s "$seconds" "time; llm-demand: $library s"
}
tune_s() {
	local TIMEFORMAT='%R'
	{ time "$out/gpuscale" tune -f "$1" --data "$work/weeks.csv" --threads 2 >"$work/tune.out" 2>&1 || exit 1; } 2>&1
}

# Starts the exporter with eight GPUs and sets exporter_port. Shared by two rows.
exporter_up() {
	is_running exporter && return
	need "$out/gpuscale-exporter" "$bench/bench_scrape"
	free_port exporter_port
	start exporter "$out/gpuscale-exporter" --backend mock --mock-script "$root/examples/mock/eight-gpus.yaml" \
		--listen "127.0.0.1:$exporter_port" --interval 1s
	wait_for 10 curl -sfo /dev/null "http://127.0.0.1:$exporter_port/-/ready" >&2 || die 'the exporter did not get ready'
	"$bench/bench_scrape" "$exporter_port" /metrics 50 >/dev/null || die 'the exporter does not answer'
}

measure_exporter_rss_mib() {
	local pid families
	exporter_up
	pid=$(pid_of exporter)
	families=$(curl -s "http://127.0.0.1:$exporter_port/metrics" | grep -c '^# TYPE')
	row exporter_rss_mib "$(status_mib "$pid" VmRSS)" \
		"$families families; own (anonymous) memory $(status_mib "$pid" RssAnon), mapped files $(status_mib "$pid" RssFile) MiB"
}

measure_exporter_scrape_us() {
	local pid result before after share seconds=10 scrapes=2000
	exporter_up
	pid=$(pid_of exporter)
	before=$(cpu_us "$pid")
	result=$("$bench/bench_scrape" "$exporter_port" /metrics "$scrapes") || die 'bench_scrape failed'
	after=$(cpu_us "$pid")
	local cpu; cpu=$(calc %.1f "($after - $before) / $scrapes")
	before=$(cpu_us "$pid")
	sleep "$seconds"
	after=$(cpu_us "$pid")
	share=$(calc %.3f "($after - $before) / ($seconds * 1e6) * 100")
	row exporter_scrape_us "$cpu" \
		"CPU of the server per scrape of $(field "$result" bytes) bytes; seen by a client on loopback: $(field "$result" us) us (median of $scrapes)" \
		"sampling at 1 s without scrapes: $share % of a core (budget 0.1)"
}

measure_binary_mib() {
	local p sizes=() bytes
	for p in gpuscale gpuscale-exporter; do
		need "$out/$p"
		strip -o "$work/$p.stripped" "$out/$p" || die "cannot strip $p"
		bytes=$(stat -c %s "$work/$p.stripped")
		sizes+=("$(calc %.3f "$bytes / 1048576")")
	done
	row binary_mib "${sizes[0]}" "the exporter: ${sizes[1]} MiB"
}
