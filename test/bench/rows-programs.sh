# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench that need no cluster: the engine, the exporter, the size of the binaries.

measure_decide_ns() {
	local said instructions='callgrind not installed'
	need "$bench/bench_decide"
	said=$("$bench/bench_decide") || die 'bench_decide failed'
	if command -v valgrind >/dev/null; then
		# Two runs of different length: what starts and prepares falls out of the difference.
		instructions="$(calc %.0f "($(instructions_of 4000) - $(instructions_of 2000)) / 2000.0") instructions each"
	fi
	row decide_ns "$(field "$said" ns)" \
		"batches from $(field "$said" ns_min) to $(field "$said" ns_max) ns; $instructions; state of $(field "$said" state_bytes) bytes" \
		"$(field "$said" allocations) allocations in $(field "$said" decisions) decisions"
	[ "$(field "$said" allocations)" = 0 ] || say 'decide_ns: decide() ALLOCATES, and must not'
}
instructions_of() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench/bench_decide" "$1" 2>&1 >/dev/null |
		awk '/Collected/ { print $4 }'
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
	local pid said before after share seconds=10 scrapes=2000
	exporter_up
	pid=$(pid_of exporter)
	before=$(cpu_us "$pid")
	said=$("$bench/bench_scrape" "$exporter_port" /metrics "$scrapes") || die 'bench_scrape failed'
	after=$(cpu_us "$pid")
	local cpu; cpu=$(calc %.1f "($after - $before) / $scrapes")
	before=$(cpu_us "$pid")
	sleep "$seconds"
	after=$(cpu_us "$pid")
	share=$(calc %.3f "($after - $before) / ($seconds * 1e6) * 100")
	row exporter_scrape_us "$cpu" \
		"CPU of the server per scrape of $(field "$said" bytes) bytes; seen by a client on loopback: $(field "$said" us) us (median of $scrapes)" \
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
