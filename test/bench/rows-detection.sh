# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work: set by run-bench
# The rows of run-bench about the fast lane: from the onset of a fatal fault in a mock GPU to the arrival of its alert at a webhook,
# through the real exporter, Prometheus and Alertmanager with the scrape job, the rules and the routing that are shipped.

readonly LANE_EXPORTERS=5 LANE_GPUS=7 # each GPU has a fault of its own at a random time
lane='' # once measured: "mean= worst= n= samples=", and the mean of each fault

# lane_exporter N: starts it and appends "UUID onset" of each GPU. Times are counted from before the start of the process, so a
# detection seems a little slower than it is.
lane_exporter() {
	local k at lane_port series start
	local -a onset
	for ((k = 0; k < LANE_GPUS; k++)); do onset[k]=$(((20000 + RANDOM % 25000) / 100 * 100)); done
	{
		printf 'step: 100ms\nloop: false\ngpus:\n'
		for ((k = 0; k < LANE_GPUS; k++)); do
			series='' at=$((onset[k] / 100 - 1))
			case $k in
			4) series=", series: {DCGM_FI_DEV_GPU_TEMP: '60x$at 99'}" ;;
			5) series=", series: {DCGM_FI_DEV_GPU_TEMP: '60x$at 88'}" ;;
			6) series=", series: {DCGM_FI_DEV_FB_USED: '70000x$at 143000'}" ;;
			esac
			printf -- '- {uuid: GPU-%d-%d, model: NVIDIA H200%s}\n' "$1" "$k" "$series"
		done
		printf 'xids:\n- {at: %dms, gpu: 0, code: 48}\n- {at: %dms, gpu: 1, code: 79}\n' "${onset[0]}" "${onset[1]}"
		printf 'losses:\n- {at: %dms, gpu: 2}\necc:\n- {at: %dms, gpu: 3, kind: uncorrectable}\n' "${onset[2]}" "${onset[3]}"
	} >"$work/lane-$1.yaml"
	free_port lane_port
	start=$EPOCHREALTIME
	NODE_NAME=lane-$1 start "lane-$1" "$out/gpuscale-exporter" --backend mock --mock-script "$work/lane-$1.yaml" --listen "127.0.0.1:$lane_port"
	lane_targets+=("127.0.0.1:$lane_port")
	for ((k = 0; k < LANE_GPUS; k++)); do printf 'GPU-%d-%d %s\n' "$1" "$k" "$(calc %.3f "$start + ${onset[k]} / 1000")" >>"$work/onsets"; done
}
lane_servers() {
	local prometheus_port=$1 alertmanager_port webhook_port rest_port monitoring=$root/manifests/monitoring
	free_port alertmanager_port; free_port webhook_port; free_port rest_port
	start lane-webhook python3 "$root/test/fake/webhook.py" "$webhook_port" "$work/lane.json" stamp
	start lane-rest python3 "$root/test/fake/webhook.py" "$rest_port" "$work/rest.json" stamp # pager and chat
	sed -E "s|^(  - url: ).*|\1http://127.0.0.1:$webhook_port/|; s|smtp_auth_password_file: .*|smtp_auth_password: none|; s|smtp_smarthost: .*|smtp_smarthost: 127.0.0.1:9|
		s|slack_api_url_file: .*|slack_api_url: http://127.0.0.1:$rest_port/|; s|^global:|&\n  pagerduty_url: http://127.0.0.1:$rest_port/|
		s|routing_key_file: .*|routing_key: none|" "$monitoring/alertmanager/alertmanager.yaml" >"$work/lane-alertmanager.yml"
	start lane-alertmanager prometheus-alertmanager --config.file="$work/lane-alertmanager.yml" --storage.path="$work/lane-am" \
		--web.listen-address="127.0.0.1:$alertmanager_port" --cluster.listen-address=
	wait_for 60 curl -sfo /dev/null --noproxy '*' "http://127.0.0.1:$alertmanager_port/-/ready" >&2 || die 'Alertmanager did not get ready'
	local targets
	printf -v targets "'%s'," "${lane_targets[@]}"
	{
		printf 'global: {scrape_interval: 15s}\nrule_files: [%s]\n' "$monitoring/rules/gpu-fatal.yaml"
		printf "alerting: {alertmanagers: [{static_configs: [{targets: ['127.0.0.1:%s']}]}]}\n" "$alertmanager_port"
		sed "s|^  - targets: .*|  - targets: [${targets%,}]|" "$monitoring/fast-lane/scrape.yaml"
	} >"$work/lane-prometheus.yml"
	start lane-prometheus prometheus --config.file="$work/lane-prometheus.yml" --storage.tsdb.path="$work/lane-tsdb" \
		--web.listen-address="127.0.0.1:$prometheus_port" --log.level=error
}
lane_arrivals() { # UUID fault arrival
	jq -Rr 'capture("^(?<at>[0-9.]+) (?<json>.*)") | .at as $at | .json | fromjson | .alerts[] | select(.status == "firing" and .labels.alertname == "GpuFatal")
		| "\(.labels.UUID) \(.labels.fault) \($at)"' "$work/lane.json" 2>/dev/null
	# What is not fatal goes to chat, as text; GPU 4 is as hot, too, on its way to where it shuts itself down.
	jq -Rr 'capture("^(?<at>[0-9.]+) (?<json>.*)") | .at as $at | .json | fromjson | .attachments[]? | select(.title | test("FIRING GpuNearFatal"))
		| .text | capture("GPU (?<gpu>[56]) on lane-(?<lane>[0-9]+) (?<what>is as hot|has less)") | "GPU-\(.lane)-\(.gpu) \({"is as hot": "slowdown"}[.what] // "memory") \($at)"' "$work/rest.json" 2>/dev/null
}
lane_complete() { [ "$(lane_arrivals | awk '{ print $1 }' | sort -u | wc -l)" = $((LANE_GPUS * LANE_EXPORTERS)) ]; }

# False, and says so, where a server is missing.
lane_measured() { # ID
	local tool k prometheus_port samples
	[ -z "$lane" ] || return 0
	for tool in prometheus prometheus-alertmanager python3; do
		command -v $tool >/dev/null || { not_measured "$1" "$tool is missing (scripts/deps e2e)"; return 1; }
	done
	need "$out/gpuscale-exporter"
	local -a lane_targets=()
	: >"$work/onsets"
	for ((k = 0; k < LANE_EXPORTERS; k++)); do lane_exporter $k; done
	free_port prometheus_port
	lane_servers "$prometheus_port"
	wait_for 120 lane_complete >&2 || die "the fast lane reported $(lane_arrivals | awk '{ print $1 }' | sort -u | xargs)"
	samples=$(curl -sf --noproxy '*' --data-urlencode 'query=avg(scrape_samples_post_metric_relabeling{job="gpu-fatal"}) / '$LANE_GPUS \
		"http://127.0.0.1:$prometheus_port/api/v1/query" | jq -r '.data.result[0].value[1]')
	lane=$(awk -v samples="$samples" '
		NR == FNR { onset[$1] = $2; next }
		!($1 in seen) {
			seen[$1] = 1; s = $3 - onset[$1]; of[$2] += s; times[$2]++
			if ($2 ~ /slowdown|memory/) { near += s; m++; if (s > near_worst) near_worst = s } else { sum += s; n++; if (s > worst) worst = s }
		}
		END { printf "mean=%.2f worst=%.2f n=%d near=%.2f near_worst=%.2f m=%d samples=%.4g", sum / n, worst, n, near / m, near_worst, m, samples; for (f in of) printf " %s=%.2f", f, of[f] / times[f] }' \
		"$work/onsets" <(lane_arrivals | sort -k3,3g))
	for k in prometheus alertmanager webhook rest $(seq 0 $((LANE_EXPORTERS - 1))); do stop "lane-$k"; done
}
measure_mttd_s() {
	lane_measured mttd_s || return 0
	row mttd_s "$(field "$lane" mean)" \
		"$(field "$lane" n) faults at random times: XID $(field "$lane" xid) s, uncorrectable ECC $(field "$lane" ecc) s, lost $(field "$lane" lost) s, heat $(field "$lane" heat) s (two scrapes)" \
		"$(field "$lane" samples) samples a second per GPU"
}
measure_mttd_worst_s() {
	lane_measured mttd_worst_s || return 0
	row mttd_worst_s "$(field "$lane" worst)" "$(field "$lane" n) faults at random times"
}
measure_mttd_near_worst_s() {
	lane_measured mttd_near_worst_s || return 0
	row mttd_near_worst_s "$(field "$lane" near_worst)" \
		"$(field "$lane" m) faults at random times, $(field "$lane" near) s on average: slowdown heat $(field "$lane" slowdown) s, full memory $(field "$lane" memory) s"
}
