# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # work, out, root come from lib.sh
# remediation.sh: a cluster of GPU nodes whose health a scripted Prometheus reports. Source it after loop.sh and objects.sh.
#
# $work/health has one line per series: METRIC NODE UUID VALUE [XID] [NAMESPACE/POD]; report() makes it what Prometheus answers.

# healthy N..: every named node has one GPU, GPU-NODE, that works.
healthy() { local n; for n; do printf 'gpuscale_gpu_up %s GPU-%s 1\n' "$n" "$n"; done; }
# xid NODE CODE COUNT AT_S
xid() { printf 'gpuscale_gpu_xid_errors_total %s GPU-%s %s %s\ngpuscale_gpu_xid_last_timestamp_seconds %s GPU-%s %s %s\n' "$1" "$1" "$3" "$2" "$1" "$1" "$4" "$2"; }
# holds NODE NAMESPACE/POD: the pod uses the GPU
holds() { printf 'gpuscale_gpu_pod_share %s GPU-%s 1 - %s\n' "$1" "$1" "$2"; }
# vector REGEX: the series of the health file whose metric matches, as an answer
vector() {
	awk -v want="^($1)\$" '$1 ~ want' "$work/health" | jq -Rc -n '{status: "success", data: {resultType: "vector", result: [inputs | split(" ") | {
		metric: ({__name__: .[0], job: "exporter", instance: "\(.[1]):9400", Hostname: .[1], UUID: .[2]} + (if (.[4] // "-") != "-" then {xid: .[4]} else {} end) +
			(if .[5] then {exported_namespace: (.[5] | split("/")[0]), exported_pod: (.[5] | split("/")[1])} else {} end)),
		value: [0, .[3]]}]}}'
}
# report: the health file, from now on
report() {
	{
		printf 'gpuscale_gpu_up => status 200 %s\n' "$(vector gpuscale_gpu_up)"
		printf '{__name__=~"gpuscale_gpu_xid => status 200 %s\n' "$(vector 'gpuscale_gpu_xid_.*')"
		printf 'gpuscale_gpu_pod_share => status 200 %s\n' "$(vector gpuscale_gpu_pod_share)"
		printf 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL => status 200 %s\n' "$(vector DCGM_FI_DEV_ECC_DBE_VOL_TOTAL)"
	} | put "$work/answers"
	[ -z "$(pid_of prometheus)" ] || kill -HUP "$(pid_of prometheus)"
}
# health_is: standard input is the health from now on
health_is() { cat >"$work/health"; report; }
scripted_prometheus_start() {
	start prometheus "$out/fake-prometheus" --answers "$work/answers"
	wait_for 10 grep -q '^listening on' "$work/prometheus.log" || bail_out 'the scripted Prometheus does not start'
	prometheus_url=$(sed -n 's/^listening on //p' "$work/prometheus.log")
}
# gpu_node NAME [MEMBERS OF METADATA]
gpu_node() { fake_put "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"$1\"${2-}},\"spec\":{\"taints\":[{\"key\":\"other\",\"value\":\"kept\",\"effect\":\"PreferNoSchedule\"}]},\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"1\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"; }
# gpu_pod NAME NODE [MEMBERS OF METADATA]: in namespace ml
gpu_pod() { fake_put "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ml\",\"name\":\"$1\"${3-}},\"spec\":{\"nodeName\":\"$2\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}"; }
# agent_start NAME ARGUMENT..: gpuscale remediate, sets agent_url
agent_start() {
	local name=$1 listen_port; shift
	free_port listen_port
	# shellcheck disable=SC2034 # for the tests
	agent_url=http://127.0.0.1:$listen_port
	[[ " $* " == *' --sources '* ]] || set -- --prometheus "$prometheus_url" "$@"
	[[ " $* " == *' --series-matcher '* ]] || set -- --series-matcher 'job="exporter"' "$@"
	start "$name" "$gpuscale" remediate --kubeconfig "$work/kubeconfig" --listen "127.0.0.1:$listen_port" --interval 1s "$@"
}
agent_metric() { curl -sf -m 30 "$agent_url/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
node() { api GET "/api/v1/nodes/$1"; }
# tainted: the nodes with the taint, sorted
tainted() { api GET /api/v1/nodes | jq -r '[.items[] | select([.spec.taints[]? | .key] | index("gpuscale.dev/failing-gpu")) | .metadata.name] | sort | join(" ")'; }
are_tainted() { [ "$(tainted)" = "$1" ]; }
record_of() { node "$1" | jq -r '.metadata.annotations["gpuscale.dev/remediation"] // ""'; }
pods_of_ml() { api GET /api/v1/namespaces/ml/pods | jq -r '[.items[].metadata.name] | sort | join(" ")'; }
have_pods() { [ "$(pods_of_ml)" = "$1" ]; }
# ticked N: the agent has done N more ticks since the last call with the same agent
ticks() { agent_metric gpuscale_remediation_ticks_total; }
after_ticks() { local from; from=$(ticks); wait_for 60 ticks_reach $((from + $1)); }
ticks_reach() { [ "$(ticks)" -ge "$1" ]; }
events_of() { api GET '/api/v1/namespaces/default/events' | jq -r --arg node "$1" '[.items[] | select(.involvedObject.name == $node) | .reason] | sort | unique | join(" ")'; }
# device_slice NODE: dynamic resource allocation serves GPU-NODE as device gpu-0
device_slice() { fake_put "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"$1-gpus\"},\"spec\":{\"driver\":\"gpu.nvidia.com\",\"nodeName\":\"$1\",\"pool\":{\"name\":\"$1\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu-0\",\"attributes\":{\"uuid\":{\"string\":\"GPU-$1\"},\"type\":{\"string\":\"gpu\"}}}]}}"; }
# device_rule NAME GPU NODE LABELS
device_rule() { fake_put "{\"apiVersion\":\"resource.k8s.io/v1beta2\",\"kind\":\"DeviceTaintRule\",\"metadata\":{\"name\":\"$1\",\"labels\":$4,\"annotations\":{\"gpuscale.dev/gpu\":\"$2\",\"gpuscale.dev/node\":\"$3\"}},\"spec\":{\"taint\":{\"key\":\"x\",\"effect\":\"NoSchedule\"}}}"; }
