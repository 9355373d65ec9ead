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

# ---- one policy with scaleTargets ----

readonly TARGETS=${TARGETS:-5000} TARGETS_INTERVAL_S=5 TARGETS_STEADY_S=${TARGETS_STEADY_S:-60}

targets_series() { awk -v n="$TARGETS" -v v="$1" 'BEGIN { for (i = 0; i < n; i++) printf "bench_load{namespace=\"bench\",deployment=\"d%04d\"} %d\n", i, v }'; }
targets_policy() {
	printf '{"apiVersion":"gpuscale.dev/v1alpha1","kind":"GPUAutoscaler","metadata":{"name":"fleet","namespace":"bench"},"spec":{"scaleTargets":{"selector":{},"seriesOf":{"label":"deployment"}},"maxReplicas":16,"interval":"%ds","signals":[{"name":"load","query":"bench_load","series":"Sum","target":{"type":"Replicas"},"staleAfter":"60s"}]}}' \
		"$TARGETS_INTERVAL_S"
}
targets_scaled() { [ "$(fleet_metric gpuscale_scales_total)" -ge "$TARGETS" ]; }

measure_targets() { # once, several rows; sets targets_*
	[ -z "${targets_us-}" ] || return 0
	local kubeconfig=$work/targets.kubeconfig chosen='' pages='' prometheus='' pid ticks cpu before after server
	need "$out/gpuscale" "$out/fake-apiserver" "$bench/bench_kube"
	command -v prometheus >/dev/null || { say 'prometheus is not installed'; return 1; }
	start targets-server "$out/fake-apiserver" --no-pods --write-kubeconfig "$kubeconfig"
	wait_line targets-server '^listening on '
	server=$(sed -n 's/^listening on //p' "$work/targets-server.log")
	"$bench/bench_kube" "$kubeconfig" create "$TARGETS" >/dev/null || die 'cannot create the Deployments'
	curl -sSf -o /dev/null -H 'Content-Type: application/json' -d "$(targets_policy)" "$server/apis/gpuscale.dev/v1alpha1/namespaces/bench/gpuautoscalers" || die 'cannot create the policy'
	mkdir -p "$work/targets"
	targets_series 2 >"$work/targets/metrics"
	free_port pages
	free_port prometheus
	free_port chosen
	start targets-pages python3 -m http.server --bind 127.0.0.1 --directory "$work/targets" "$pages"
	printf 'scrape_configs: [{job_name: load, honor_labels: true, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: ["127.0.0.1:%s"]}]}]\n' "$pages" >"$work/targets.yml"
	start targets-prometheus prometheus --config.file="$work/targets.yml" --storage.tsdb.path="$work/targets-tsdb" --web.listen-address="127.0.0.1:$prometheus"
	wait_for 60 curl -sf -o /dev/null "http://127.0.0.1:$prometheus/-/ready" >&2 || die 'Prometheus does not start'
	sleep 5
	fleet_url=http://127.0.0.1:$chosen
	before=$(calibrate) || exit 1
	start targets "$out/gpuscale" run --kubeconfig "$kubeconfig" --listen "127.0.0.1:$chosen" --logging-format json --prometheus "http://127.0.0.1:$prometheus"
	wait_for 120 targets_scaled >&2 || { tail -n 5 "$work/targets.log" >&2; die 'not every target was scaled'; }
	pid=$(pid_of targets)
	sleep $((2 * TARGETS_INTERVAL_S))
	cpu=$(cpu_us "$pid") ticks=$(fleet_metric gpuscale_reconciles_total)
	sleep "$TARGETS_STEADY_S"
	cpu=$(($(cpu_us "$pid") - cpu)) ticks=$(($(fleet_metric gpuscale_reconciles_total) - ticks))
	[ "$ticks" -gt 0 ] || die 'no tick started'
	after=$(calibrate) || exit 1
	targets_factor=$(mean "$before" "$after")
	targets_us=$(calc %.2f "$cpu / $ticks / $TARGETS")
	targets_mib=$(status_mib "$pid" VmRSS)
	targets_note="$ticks ticks in $TARGETS_STEADY_S s, the status included; peak memory $(status_mib "$pid" VmHWM) MiB"
	stop targets
	stop targets-prometheus
	stop targets-pages
	stop targets-server
}
measure_fleet_5000_us() { measure_targets && factor=$targets_factor row fleet_5000_us "$targets_us" "$targets_note"; }
measure_fleet_5000_mib() { measure_targets && row fleet_5000_mib "$targets_mib"; }
