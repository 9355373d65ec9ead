# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench about what a tenant can do to the event loop of the controller: the fake API server of the tests, a
# scripted Prometheus, and probes one after the other. While one waits, so does everything else in the loop.

readonly HOSTILE_NODES=1000 HOSTILE_PODS=300 HOSTILE_POLICIES=30
readonly HOSTILE_TERMS=62 HOSTILE_VALUES=15 # with its keys, a rule of 992 texts; NODE_RULE_TEXTS_MAX are read
readonly HOSTILE_HUGE=10                    # further pods whose affinity fills the 1.5 MiB that etcd accepts
readonly HOSTILE_S=20 HOSTILE_CHANGES=100

# Each line is an object: nodes whose labels are as many as those of a GPU node.
hostile_nodes() {
	awk -v n=$HOSTILE_NODES 'BEGIN {
		for (i = 0; i < n; i++) {
			printf "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"kubernetes.io/hostname\":\"node-%d\",\"zone\":\"z%d\"", i, i, i % 3
			for (k = 0; k < 40; k++) printf ",\"feature.node.kubernetes.io/cpu-cpuid.FEATURE%d\":\"true\"", k
			print "}},\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"allocatable\":{\"cpu\":\"96\",\"memory\":\"512Gi\",\"pods\":\"110\",\"nvidia.com/gpu\":\"8\"}}}"
		}
	}'
}
# hostile_pods FROM COUNT SALT TERMS VALUES: no value is a label of a node, so that each is compared with each node
hostile_pods() {
	awk -v from="$1" -v n="$2" -v salt="$3" -v terms="$4" -v values="$5" 'BEGIN {
		for (i = from; i < from + n; i++) {
			printf "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"hostile\",\"name\":\"h%d\",\"labels\":{\"app\":\"h\"}},\"spec\":{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[", i
			for (t = 0; t < terms; t++) {
				printf "%s{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[", t ? "," : ""
				for (v = 0; v < values; v++) printf "%s\"node-%s-%d-%d-%d\"", v ? "," : "", salt, i, t, v
				printf "]}]}"
			}
			print "]}}},\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\",\"nvidia.com/gpu\":\"1\"}}}]},\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\"}]}}"
		}
	}'
}
hostile_targets() {
	awk -v n=$HOSTILE_POLICIES 'BEGIN {
		for (i = 0; i < n; i++)
			printf "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"bench\",\"name\":\"d%04d\",\"generation\":1},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"app\":\"d%04d\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"d%04d\"}},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}}},\"status\":{\"replicas\":2,\"readyReplicas\":2,\"observedGeneration\":1}}\n", i, i, i
	}'
}
# Sends each line of stdin to the fake API server.
hostile_put() {
	local dir=$work/put
	rm -rf "$dir"
	mkdir "$dir"
	split -l 1 -a 4 - "$dir/o"
	for f in "$dir"/o*; do
		printf 'url = "%s/_fake/put"\ndata-binary = "@%s"\noutput = /dev/null\nfail\nsilent\nnext\n' "$hostile_api" "$f"
	done | sed '$d' >"$dir/config"
	curl -K "$dir/config" || die 'the fake API server refuses an object'
}
hostile_policies() { write_policies "$@" <<-'YAML'
	apiVersion: gpuscale.dev/v1alpha1
	kind: GPUAutoscaler
	metadata: {name: "@NAME@", namespace: bench}
	spec:
	  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "@NAME@"}
	  minReplicas: 1
	  maxReplicas: 16
	  interval: 1s
	  capacity: {mode: Fixed}
	  signals:
	  - name: load
	    query: load
	    target: {type: Replicas}
	YAML
}
# Probes until FILE exists; prints the longest in ms and how many there were.
hostile_probe() { # URL FILE
	while [ ! -e "$2" ]; do
		curl -s -o /dev/null -w '%{time_total} %{http_code}\n' --max-time 60 "$1/livez"
	done | awk '$2 != 200 { failed++ } { n++; if ($1 > most) most = $1 } END { printf "ms=%.1f probes=%d failed=%d\n", most * 1000, n, failed }'
}

measure_capacity_hostile_ms() {
	local result i late
	need "$out/fake-apiserver" "$out/fake-prometheus" "$out/gpuscale"
	printf 'load => = 2\n' >"$work/answers"
	start scripted "$out/fake-prometheus" --answers "$work/answers"
	wait_line scripted '^listening on '
	start hostile_api "$out/fake-apiserver" --no-pods --write-kubeconfig "$work/hostile.kubeconfig"
	wait_line hostile_api '^listening on '
	hostile_api=$(sed -n 's/^listening on //p' "$work/hostile_api.log")
	hostile_targets | hostile_put
	hostile_nodes | hostile_put
	hostile_pods 0 $HOSTILE_PODS first $HOSTILE_TERMS $HOSTILE_VALUES | hostile_put
	hostile_pods $HOSTILE_PODS $HOSTILE_HUGE first 2000 30 | hostile_put
	hostile_policies "$work/hostile" $HOSTILE_POLICIES
	prometheus_url=$(sed -n 's/^listening on //p' "$work/scripted.log") controller_up hostile "$work/hostile" "$work/hostile.kubeconfig"
	# From the start on: the lists, the first plan, and then pods whose rules change all the time.
	hostile_probe "$hostile_url" "$work/hostile.end" >"$work/hostile.probes" &
	local prober=$!
	sleep 5
	hostile_pods 0 $HOSTILE_CHANGES second $HOSTILE_TERMS $HOSTILE_VALUES | hostile_put
	sleep "$HOSTILE_S"
	touch "$work/hostile.end"
	wait "$prober"
	result=$(<"$work/hostile.probes")
	late=$(curl -sf "$hostile_url/metrics" | awk '/^gpuscale_tick_delay_seconds_bucket/ { if ($2 > last) { last = $2; le = $1 } } END { sub(/.*le="/, "", le); sub(/".*/, "", le); print le }')
	i=$(metric "$hostile_url" gpuscale_reconciles_total)
	[ "$i" -gt 0 ] || die 'no tick'
	row capacity_hostile_ms "$(field "$result" ms)" \
		"$(field "$result" probes) probes, $(field "$result" failed) failed; $i ticks, each started at most $late s after it was due" \
		"$HOSTILE_NODES nodes, $HOSTILE_PODS pods with rules of $((HOSTILE_TERMS * (HOSTILE_VALUES + 1))) texts, $HOSTILE_HUGE of 1.5 MiB, $HOSTILE_POLICIES policies"
	stop hostile
	stop hostile_api
	stop scripted
}
