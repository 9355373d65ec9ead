# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench that need a world: bench_source -> Prometheus (real) -> gpuscale run -> an API server. Steady state
# is measured against the fake API server of the tests, the step against a real kube-apiserver where one is at hand.

readonly POLICIES=500
readonly STEADY_WARM_UP_S=15 STEADY_S=20 # at one tick a second
readonly OVERVIEWS=20
readonly STEPS=5 STEP_TRIES=10 STARTS=7

# ---- the world ----

prometheus_up() { # sets source_url, prometheus_url
	is_running prometheus && return
	command -v prometheus >/dev/null || return 1
	local chosen
	need "$bench/bench_source"
	start source "$bench/bench_source" "$POLICIES"
	wait_line source '^listening on '
	source_url=$(sed -n 's/^listening on //p' "$work/source.log")
	free_port chosen
	printf 'global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: bench\n  static_configs: [{targets: ["%s"]}]\n' \
		"${source_url#http://}" >"$work/prometheus.yaml"
	start prometheus prometheus --config.file "$work/prometheus.yaml" --storage.tsdb.path "$work/tsdb" \
		--web.listen-address "127.0.0.1:$chosen" --log.level warn
	prometheus_url=http://127.0.0.1:$chosen
	wait_for 30 has_series >&2 || { tail "$work/prometheus.log" >&2; die 'Prometheus has no series'; }
}
has_series() {
	[ "$(curl -sf --data-urlencode 'query=count(bench_load)' "$prometheus_url/api/v1/query" |
		jq -r '.data.result[0].value[1]')" = "$POLICIES" ]
}

fake_up() { # sets fake_kubeconfig
	is_running fake && return
	local i objects=()
	need "$out/fake-apiserver"
	for ((i = 0; i < POLICIES; i++)); do objects+=(--object "bench/Deployment/$(printf 'd%04d' "$i")=2"); done
	fake_kubeconfig=$work/fake.kubeconfig
	start fake "$out/fake-apiserver" "${objects[@]}" --write-kubeconfig "$fake_kubeconfig"
	wait_line fake '^listening on '
}

# policies DIR COUNT: one file per policy on stdin with %s for the name of its target
write_policies() {
	local dir=$1 count=$2 text name i
	text=$(cat)
	mkdir -p "$dir"
	for ((i = 0; i < count; i++)); do
		name=$(printf 'd%04d' "$i")
		printf '%s\n' "${text//@NAME@/$name}" >"$dir/$name.yaml"
	done
}
steady_policies() { write_policies "$@" <<-'EOF'
	apiVersion: gpuscale.dev/v1alpha1
	kind: GPUAutoscaler
	metadata: {name: "@NAME@", namespace: bench}
	spec:
	  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "@NAME@"}
	  minReplicas: 1
	  maxReplicas: 16
	  interval: 1s
	  signals:
	  - name: load
	    query: bench_load{target="@NAME@"}
	    target: {type: Value, value: "1"}
	    window: {duration: 30s, aggregate: Avg, minSamples: 4}
	    staleAfter: 30s
	EOF
}
step_policies() { write_policies "$@" <<-'EOF'
	apiVersion: gpuscale.dev/v1alpha1
	kind: GPUAutoscaler
	metadata: {name: "@NAME@", namespace: bench}
	spec:
	  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "@NAME@"}
	  minReplicas: 1
	  maxReplicas: 16
	  interval: 1s
	  signals:
	  - name: load
	    query: bench_load{target="@NAME@"}
	    target: {type: Replicas}
	    staleAfter: 30s
	  behavior:
	    scaleUp: {policies: [{type: Pods, value: 16, periodSeconds: 1}]}
	    scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 16, periodSeconds: 1}]}
	EOF
}

set_load() { curl -sf "$source_url/set?value=$1" >/dev/null || die 'the source does not answer'; }

controller_up() { # NAME POLICIES-DIR KUBECONFIG; sets NAME_url
	local chosen
	need "$out/gpuscale"
	free_port chosen
	start "$1" "$out/gpuscale" run --policies "$2" --kubeconfig "$3" --prometheus "$prometheus_url" \
		--listen "127.0.0.1:$chosen" --logging-format json
	declare -g "$1_url=http://127.0.0.1:$chosen"
	wait_line "$1" 'Starting' 30
}
# Sum of the samples of METRIC whose line matches REGEX, as the controller at URL reports.
metric() { curl -sf "$1/metrics" | awk -v name="$2" -v want="${3:-.}" '$0 ~ "^" name "[{ ]" && $0 ~ want { s += $NF } END { printf "%.9g", s }'; }

# ---- steady state: measured once, three rows ----

measure_steady() { # sets steady_*; 1 and steady_missing when it cannot be had
	[ -z "${steady_ticks-}" ] || return 0
	prometheus_up || { steady_missing='prometheus is not installed'; return 1; }
	fake_up
	local cpu requests ticks skipped pid began taken i before after
	set_load 1
	steady_policies "$work/steady" "$POLICIES"
	controller_up steady "$work/steady" "$fake_kubeconfig"
	pid=$(pid_of steady)
	sleep "$STEADY_WARM_UP_S"
	before=$(calibrate) || exit 1
	# shellcheck disable=SC2154 # set by controller_up
	{
		skipped=$(metric "$steady_url" gpuscale_ticks_skipped_total)
		requests=$(metric "$steady_url" gpuscale_api_requests_total)
		ticks=$(metric "$steady_url" gpuscale_reconciles_total)
		cpu=$(cpu_us "$pid")
		sleep "$STEADY_S"
		cpu=$(($(cpu_us "$pid") - cpu))
		steady_ticks=$(($(metric "$steady_url" gpuscale_reconciles_total) - ticks))
		steady_requests=$(($(metric "$steady_url" gpuscale_api_requests_total) - requests))
		steady_skipped=$(($(metric "$steady_url" gpuscale_ticks_skipped_total) - skipped))
		steady_errors=$(metric "$steady_url" gpuscale_reconciles_total 'result="error"')
	}
	[ "$steady_ticks" -gt 0 ] || die "no tick in $STEADY_S s: $(tail -n 3 "$work/steady.log")"
	steady_cpu=$(calc %.1f "$cpu / $steady_ticks")
	steady_rss=$(status_mib "$pid" VmRSS)
	steady_note="$steady_ticks policy ticks in $STEADY_S s, $steady_skipped skipped, $steady_errors with errors"
	# The ticks that went on meanwhile are taken off, at the rate just measured.
	began=${EPOCHREALTIME/[^0-9]/} taken=$(cpu_us "$pid")
	for ((i = 0; i < OVERVIEWS; i++)); do curl -sf -o "$work/overview" "$steady_url/api/v1/overview?history=true" || die 'no overview'; done
	taken=$(($(cpu_us "$pid") - taken)) began=$((${EPOCHREALTIME/[^0-9]/} - began))
	steady_overview=$(calc %.1f "($taken - $cpu * $began / ($STEADY_S * 1e6)) / $OVERVIEWS / 1000")
	steady_overview_bytes=$(wc -c <"$work/overview")
	after=$(calibrate) || exit 1
	steady_factor=$(mean "$before" "$after")
	steady_memory="own (anonymous) memory $(status_mib "$pid" RssAnon), mapped files $(status_mib "$pid" RssFile) MiB, peak $(status_mib "$pid" VmHWM) MiB"
	stop steady
}

measure_cpu_per_policy_us() {
	measure_steady || { not_measured cpu_per_policy_us "$steady_missing"; return; }
	factor=$steady_factor row cpu_per_policy_us "$steady_cpu" "$steady_note" \
		"with $(calc %.1f "$steady_requests / $steady_ticks") API requests per tick beside the query"
}
measure_rss_500_mib() {
	measure_steady || { not_measured rss_500_mib "$steady_missing"; return; }
	row rss_500_mib "$steady_rss" "$steady_memory"
}
measure_api_requests_steady() {
	measure_steady || { not_measured api_requests_steady "$steady_missing"; return; }
	row api_requests_steady "$(calc %.3g "$steady_requests / $steady_ticks")" \
		"$steady_requests requests in $steady_ticks policy ticks"
}

measure_overview_500_ms() {
	measure_steady || { not_measured overview_500_ms "$steady_missing"; return; }
	factor=$steady_factor row overview_500_ms "$steady_overview" "$steady_overview_bytes bytes, of $OVERVIEWS"
}

# ---- one step of the metric ----

step_server_up() { # sets step_kubeconfig, step_server
	step_kubeconfig=$work/kube/kubeconfig
	if GPUSCALE_KUBE_BUILD=never "$root/scripts/kube/apiserver" up "$work/kube" >"$work/kube.log" 2>&1; then
		on_exit "$root/scripts/kube/apiserver" down "$work/kube"
		"$bench/bench_kube" "$step_kubeconfig" create "$POLICIES" >/dev/null || die 'cannot create the Deployments'
		step_server="real kube-apiserver $("$root/scripts/kube/build" --version) on etcd, HTTP/2 over TLS"
		return
	fi
	fake_up
	step_kubeconfig=$fake_kubeconfig
	step_server="the tests' fake API server, HTTP/1.1 (no kube-apiserver: $(tail -n 1 "$work/kube.log"))"
}

raw_patches() { # REPLICAS -> seconds
	local result
	result=$("$bench/bench_kube" "$step_kubeconfig" scale "$POLICIES" "$1") || die 'raw PATCHes failed'
	field "$result" seconds
}

scaled_so_far() { grep -c '"msg":"Scaled target"' "$work/step.log"; }
scaled_at_least() { [ "$(scaled_so_far)" -ge "$1" ]; }

# Seconds from the last tick that saw the step to the last PATCH acknowledged: ticks are spread over the interval.
one_step() { # REPLICAS
	local before last tick
	before=$(scaled_so_far)
	set_load "$1"
	wait_for 30 scaled_at_least $((before + POLICIES)) >&2 || { tail -n 3 "$work/step.log" >&2; die 'the step never ended'; }
	last=$(grep '"msg":"Scaled target"' "$work/step.log" | tail -n "$POLICIES" | jq -s 'map(.ts) | max')
	# The decisions carry the time of their tick.
	# shellcheck disable=SC2154 # set by controller_up
	tick=$(curl -sf "$step_url/debug/decisions" | jq -r --argjson want "$1" \
		'[.items[] | select(.desiredReplicas == $want and .action != "None") | .time] | max // empty')
	[ -n "$tick" ] || return 0
	calc %.3f "$last - $(date -d "$tick" +%s.%3N)"
}

measure_step_500_ratio() {
	local tries=0 raw=() step=() seconds
	prometheus_up || { not_measured step_500_ratio 'prometheus is not installed'; return; }
	need "$bench/bench_kube"
	step_server_up
	set_load 2
	raw_patches 2 >/dev/null
	step_policies "$work/step" "$POLICIES"
	controller_up step "$work/step" "$step_kubeconfig"
	sleep 4
	while [ ${#step[@]} -lt "$STEPS" ] && [ $((tries++)) -lt "$STEP_TRIES" ]; do
		seconds=$(one_step 3) || exit 1
		[ -z "$seconds" ] || step+=("$seconds")
		# The yardstick, on a server that is otherwise idle: back to 2, while the controller sees nothing of it.
		sleep 1
		kill -STOP "$(pid_of step)"
		seconds=$(raw_patches 2) || exit 1
		raw+=("$seconds")
		set_load 2
		sleep 2
		kill -CONT "$(pid_of step)"
		sleep 4 # the controller agrees to the change: a change against its decisions would be a fight
	done
	local memory; memory=$(status_mib "$(pid_of step)" VmRSS)
	stop step
	[ ${#step[@]} -gt 0 ] || { not_measured step_500_ratio "in $tries tries no decision about the step was left"; return; }
	local step_s raw_s
	# The fastest of each: whatever else runs on the machine only adds, and it does not add to both alike.
	step_s=$(printf '%s\n' "${step[@]}" | sort -g | head -n 1)
	raw_s=$(printf '%s\n' "${raw[@]}" | sort -g | head -n 1)
	row step_500_ratio "$(calc %.2f "$step_s / $raw_s")" \
		"$step_s s against $raw_s s (the fastest; steps ${step[*]}, raw ${raw[*]})" "server: $step_server; controller's memory afterwards $memory MiB"
}

# ---- start ----

measure_start_ms() {
	local i began stamp all=()
	prometheus_up || { not_measured start_ms 'prometheus is not installed'; return; }
	fake_up
	set_load 1
	steady_policies "$work/one" 1
	for ((i = 0; i < STARTS; i++)); do
		rm -f "$work/one.log"
		began=$EPOCHREALTIME
		start one "$out/gpuscale" run --policies "$work/one" --kubeconfig "$fake_kubeconfig" \
			--prometheus "$prometheus_url" --listen '' --logging-format json
		wait_line one '"msg":"(Decided|Scaled)'
		stamp=$(grep -m1 -E '"msg":"(Decided|Scaled)' "$work/one.log" | jq .ts)
		stop one
		all+=("$(calc %.0f "($stamp - ${began/,/.}) * 1000")")
	done
	row start_ms "$(printf '%s\n' "${all[@]}" | median)" \
		"from fork to the log line of the first decision, its windows refilled; ${all[*]} ms"
}
