# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, work, dir, DEPLOYMENTS, prometheus_url: the script; SCALED_*: kube_world.sh; manager: peers.sh
# hpa_world.sh: the peers of run-reaction. A HorizontalPodAutoscaler for each Deployment of a real API server ($dir), a real
# controller manager, and prometheus-adapter, which sends one query per HPA and sync to a real Prometheus; or a ScaledObject
# for each, KEDA's operator and adapter, and the same controller manager. After kube_world.sh and test/support/peers.sh.
#
# The controller manager is tuned as its users tune it: a short sync period, 32 workers instead of 5, and a client limit of
# 2,000 requests a second instead of 20, so that neither is what a step waits for. Whatever else is open is decided in favor
# of the HPA: the manager runs no other controller and no leader election, its user is in system:masters, which the API server
# and the adapter authorize without a review, the metric's type needs no list of pods, and the adapter lists series once a
# minute (as in its own manifests).
readonly HPA_WORKERS=32 HPA_QPS=2000 ADAPTER_RELIST=1m

# hpa_programs: sets manager and adapter.
hpa_programs() {
	manager=$("$root/scripts/kube/build" kube-controller-manager) && adapter=$("$root/scripts/kube/build" prometheus-adapter)
}

# hpa_start SYNC_S: until every HPA has its first recommendation.
hpa_start() {
	local adapter_port='' began=$EPOCHREALTIME
	free_port adapter_port
	raw status "$DEPLOYMENTS" "$LOW" >/dev/null
	cat >"$work/adapter.yaml" <<-'END'
		externalRules:
		- seriesQuery: 'bench_load{target!=""}'
		  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
		  resources: {namespaced: false}
	END
	start adapter "$adapter" --config "$work/adapter.yaml" --prometheus-url "$prometheus_url" --metrics-relist-interval="$ADAPTER_RELIST" \
		--bind-address 127.0.0.1 --secure-port "$adapter_port" --cert-dir "$work/adapter" \
		--lister-kubeconfig "$dir/kubeconfig" --authentication-kubeconfig "$dir/kubeconfig" --authorization-kubeconfig "$dir/kubeconfig"
	external_metrics_from default "$adapter_port" >/dev/null || die 'the API server does not take the APIService'
	wait_for 180 adapter_serves >&2 || die "prometheus-adapter serves no metric: $(tail -n 3 "$work/adapter.log")"
	raw hpas "$DEPLOYMENTS" >/dev/null
	manager_start "$1"
	wait_for 300 hpas_active "$DEPLOYMENTS" >&2 || die "not every HPA is active: $(tail -n 3 "$work/manager.log")"
	start_s=$(calc %.1f "$EPOCHREALTIME - $began")
}
manager_start() { # SYNC_S
	hpa_manager_start "$dir" "$1" --concurrent-horizontal-pod-autoscaler-syncs="$HPA_WORKERS" --kube-api-qps="$HPA_QPS" --kube-api-burst="$HPA_QPS"
	SCALED_LOG=manager SCALED_MESSAGE='Successfully rescaled' SCALED_PER_S=1000
}
adapter_serves() {
	admin '/apis/external.metrics.k8s.io/v1beta1/namespaces/bench/bench_load?labelSelector=target%3Dd0000' | jq -e '.items | length == 1'
}
hpas_active() {
	admin /apis/autoscaling/v2/horizontalpodautoscalers |
		jq -e --argjson want "$1" '[.items[].status.conditions[]? | select(.type == "ScalingActive" and .status == "True")] | length == $want'
}

# keda_world_start SYNC_S: the same with KEDA, which polls with that period, too.
keda_world_start() {
	local began
	raw status "$DEPLOYMENTS" "$LOW" >/dev/null
	keda_install >"$work/keda-install.log" 2>&1 || die "KEDA's kinds are not installed: $(tail -n 1 "$work/keda-install.log")"
	scaled_objects "$DEPLOYMENTS" "$1" | kubectl apply --server-side -f - >"$work/keda-objects.log" 2>&1 ||
		die "the ScaledObjects are not accepted: $(tail -n 1 "$work/keda-objects.log")"
	began=$EPOCHREALTIME
	manager_start "$1"
	keda_start "$dir" >&2 || die "KEDA's adapter serves no metric: $(tail -n 3 "$work/adapter.log")"
	wait_for 600 hpas_active "$DEPLOYMENTS" >&2 || die "not every HPA is active: $(tail -n 3 "$work/operator.log")"
	start_s=$(calc %.1f "$EPOCHREALTIME - $began")
}
scaled_objects() { # N POLL_S: replicas = bench_load, with the behavior of bench_kube's HPAs
	jq -nc --argjson n "$1" --argjson poll_s "$2" --arg url "$prometheus_url" '
		def name: "d" + ("000" + tostring | .[-4:]);
		def fast: {policies: [{type: "Pods", value: 16, periodSeconds: 1}]};
		{apiVersion: "v1", kind: "List", items: [range($n) | name as $name | {
			apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", metadata: {name: $name, namespace: "bench"},
			spec: {scaleTargetRef: {name: $name}, pollingInterval: $poll_s, minReplicaCount: 1, maxReplicaCount: 16,
				advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: fast, scaleDown: ({stabilizationWindowSeconds: 0} + fast)}}},
				triggers: [{type: "prometheus", metadata: {serverAddress: $url, threshold: "1", query: "bench_load{target=\"\($name)\"}"}}]}}]}'
}
