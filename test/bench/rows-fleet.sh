# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench about 20,000 policies: objects of the tests' fake API server, a scripted Prometheus, an interval of 15 s.

readonly FLEET=${FLEET:-20000} FLEET_INTERVAL_S=15 FLEET_STEADY_S=60

fleet_ready() { curl -sf -m 20 -o /dev/null "$fleet_url/readyz"; }
fleet_metric() { curl -sf -m 20 "$fleet_url/metrics" | awk -v name="$1" '$1 == name || index($1, name "{") == 1 { s += $2 } END { printf "%.9g", s }'; }
# fleet_starts: "ALL ON-TIME": ticks that started, and those within a second of their time. Both come from one page: of two
# pages, the second would count the ticks between them as well.
fleet_starts() {
	curl -sf -m 20 "$fleet_url/metrics" | awk '$1 == "gpuscale_tick_delay_seconds_count" { all = $2 }
		$1 == "gpuscale_tick_delay_seconds_bucket{le=\"1\"}" { on_time = $2 } END { printf "%d %d", all, on_time }'
}

measure_fleet() { # once, several rows; sets fleet_*
	[ -z "${fleet_cpu-}" ] || return 0
	local kubeconfig=$work/fleet.kubeconfig chosen='' began pid ticks on_time cpu before after starts
	need "$out/gpuscale" "$out/fake-apiserver" "$out/fake-prometheus" "$bench/bench_kube"
	start fleet-server "$out/fake-apiserver" --no-pods --write-kubeconfig "$kubeconfig"
	wait_line fleet-server '^listening on '
	"$bench/bench_kube" "$kubeconfig" create "$FLEET" >/dev/null || die 'cannot create the Deployments'
	"$bench/bench_kube" "$kubeconfig" policies "$FLEET" "$FLEET_INTERVAL_S" >/dev/null || die 'cannot create the policies'
	echo 'bench_load => each 1' >"$work/fleet.answers"
	start fleet-prometheus "$out/fake-prometheus" --answers "$work/fleet.answers"
	wait_line fleet-prometheus '^listening on '
	free_port chosen
	fleet_url=http://127.0.0.1:$chosen
	before=$(calibrate) || exit 1
	began=$EPOCHREALTIME
	start fleet "$out/gpuscale" run --kubeconfig "$kubeconfig" --listen "127.0.0.1:$chosen" --logging-format json \
		--prometheus "$(sed -n 's/^listening on //p' "$work/fleet-prometheus.log")"
	wait_for 300 fleet_ready >&2 || { tail -n 5 "$work/fleet.log" >&2; die 'not every policy was decided'; }
	fleet_start=$(calc %.1f "$EPOCHREALTIME - $began")
	pid=$(pid_of fleet)
	say "start $fleet_start s, CPU $(calc %.1f "$(cpu_us "$pid") / 1e6") s, skipped $(fleet_metric gpuscale_ticks_skipped_total), peak $(status_mib "$pid" VmHWM) MiB"
	sleep $((2 * FLEET_INTERVAL_S)) # statuses are paced, so they are part of what is measured
	cpu=$(cpu_us "$pid") starts=$(fleet_starts)
	sleep "$FLEET_STEADY_S"
	cpu=$(($(cpu_us "$pid") - cpu))
	read -r ticks on_time < <(paste <(fleet_starts) <(echo "$starts") | awk '{ print $1 - $3, $2 - $4 }')
	[ "$ticks" -gt 0 ] || die 'no tick started'
	fleet_skipped=$(fleet_metric gpuscale_ticks_skipped_total)
	after=$(calibrate) || exit 1
	fleet_factor=$(mean "$before" "$after")
	fleet_cpu=$(calc %.2f "$cpu / $FLEET_STEADY_S / 10000")
	fleet_late=$(calc %.4f "100 - 100 * $on_time / ($ticks > 0 ? $ticks : 1)")
	fleet_rss=$(status_mib "$pid" VmRSS)
	fleet_note="$ticks ticks in $FLEET_STEADY_S s, $(calc %.1f "$cpu / ($ticks > 0 ? $ticks : 1)") us each; peak memory $(status_mib "$pid" VmHWM) MiB"
	fleet_page="/metrics has $(curl -sf -m 20 "$fleet_url/metrics" | wc -c) bytes"
	stop fleet
	stop fleet-prometheus
	stop fleet-server
}

# CPU is compared with the reference machine, as times are.
measure_fleet_20000() {
	measure_fleet
	row fleet_20000 "$(calc %.2f "$fleet_cpu / $fleet_factor")" "$fleet_note" "$fleet_cpu % on this machine, which took $fleet_factor times the reference's time" "$fleet_page"
}
measure_fleet_20000_rss_mib() { measure_fleet; row fleet_20000_rss_mib "$fleet_rss"; }
measure_fleet_20000_late() { measure_fleet; row fleet_20000_late "$fleet_late"; }
measure_fleet_20000_skipped() { measure_fleet; row fleet_20000_skipped "$fleet_skipped" 'since the start of the process'; }
measure_fleet_20000_start_s() { measure_fleet; factor=$fleet_factor row fleet_20000_start_s "$fleet_start"; }
