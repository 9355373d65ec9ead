# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench that hold the exporter against Debian's prometheus-node-exporter, in the same run: what a node pays for
# another exporter beside the one it has. NODE_EXPORTER names another program.

node_exporter=${NODE_EXPORTER:-prometheus-node-exporter}
# Of the three programs, once measured: "rss= cpu= us= bytes= idle=". mig: the exporter with 128 MIG instances.
declare -A side=()

# weigh NAME PORT: memory in MiB after the scrapes, CPU time of the server per scrape in us, median wait of the client in us
weigh() {
	local pid result before after scrapes=500
	pid=$(pid_of "$1")
	"$bench/bench_scrape" "$2" /metrics 50 >/dev/null || die "$1 does not answer"
	before=$(cpu_us "$pid")
	result=$("$bench/bench_scrape" "$2" /metrics "$scrapes") || die 'bench_scrape failed'
	after=$(cpu_us "$pid")
	side[$1]="rss=$(status_mib "$pid" VmRSS) cpu=$(calc %.1f "($after - $before) / $scrapes") $result"
}

# False, and says so, where there is no node exporter.
exporters_side_by_side() { # ID
	local node_port mig_port
	[ -z "${side[node]-}" ] || return 0
	command -v "$node_exporter" >/dev/null || { not_measured "$1" 'prometheus-node-exporter is missing (scripts/deps e2e)'; return 1; }
	exporter_up
	free_port node_port
	start node "$node_exporter" --web.listen-address="127.0.0.1:$node_port"
	free_port mig_port
	start mig "$out/gpuscale-exporter" --backend mock --mock-script "$root/test/bench/mig-128.yaml" --listen "127.0.0.1:$mig_port" \
		--interval 1s
	wait_for 10 curl -sfo /dev/null "http://127.0.0.1:$mig_port/-/ready" >&2 || die 'the exporter with MIG did not get ready'
	wait_for 10 curl -sfo /dev/null "http://127.0.0.1:$node_port/metrics" >&2 || die "$node_exporter did not get ready"
	weigh exporter "$exporter_port"
	weigh node "$node_port"
	weigh mig "$mig_port"
	stop node
	stop mig
}

# against ID FIELD UNIT
against() {
	local ours theirs mig
	exporters_side_by_side "$1" || return 0
	ours=$(field "${side[exporter]}" "$2") theirs=$(field "${side[node]}" "$2") mig=$(field "${side[mig]}" "$2")
	row "$1" "$(calc %.2f "$ours / $theirs")" \
		"$ours against $theirs $3; pages of $(field "${side[exporter]}" bytes) and $(field "${side[node]}" bytes) bytes" \
		"with 128 MIG instances on 16 GPUs: $mig $3, $(calc %.2f "$mig / $theirs") of it; page of $(field "${side[mig]}" bytes) bytes"
}
measure_exporter_vs_node_exporter_rss() { against exporter_vs_node_exporter_rss rss MiB; }
measure_exporter_vs_node_exporter_cpu() { against exporter_vs_node_exporter_cpu cpu us; }
measure_exporter_vs_node_exporter_latency() { against exporter_vs_node_exporter_latency us us; }
