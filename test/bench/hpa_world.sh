# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, work, dir, DEPLOYMENTS, prometheus_url: the script; SCALED_*: kube_world.sh
# hpa_world.sh: the peer of run-reaction: a HorizontalPodAutoscaler for each Deployment of a real API server ($dir), a real
# controller manager, and prometheus-adapter, which sends one query per HPA and sync to a real Prometheus. After kube_world.sh.
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
	local adapter_port='' manager_port='' began=$EPOCHREALTIME
	free_port adapter_port
	free_port manager_port
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
	# There is no pod network: the Service is a name for this machine.
	kubectl apply -f - >/dev/null <<-END || die 'the API server does not take the APIService'
		apiVersion: v1
		kind: Service
		metadata: {name: prometheus-adapter, namespace: default}
		spec: {type: ExternalName, externalName: localhost}
		---
		apiVersion: apiregistration.k8s.io/v1
		kind: APIService
		metadata: {name: v1beta1.external.metrics.k8s.io}
		spec:
		  group: external.metrics.k8s.io
		  version: v1beta1
		  groupPriorityMinimum: 100
		  versionPriority: 100
		  insecureSkipTLSVerify: true
		  service: {name: prometheus-adapter, namespace: default, port: $adapter_port}
	END
	wait_for 180 adapter_serves >&2 || die "prometheus-adapter serves no metric: $(tail -n 3 "$work/adapter.log")"
	raw hpas "$DEPLOYMENTS" >/dev/null
	start manager "$manager" --kubeconfig "$dir/kubeconfig" --controllers=horizontal-pod-autoscaler-controller --leader-elect=false \
		--horizontal-pod-autoscaler-sync-period="$1s" --concurrent-horizontal-pod-autoscaler-syncs="$HPA_WORKERS" \
		--kube-api-qps="$HPA_QPS" --kube-api-burst="$HPA_QPS" --logging-format=json \
		--bind-address=127.0.0.1 --secure-port="$manager_port" --authentication-skip-lookup
	wait_for 300 hpas_active "$DEPLOYMENTS" >&2 || die "not every HPA is active: $(tail -n 3 "$work/manager.log")"
	SCALED_LOG=manager SCALED_MESSAGE='Successfully rescaled' SCALED_PER_S=1000
	say "start to all HPAs active: $(calc %.1f "$EPOCHREALTIME - $began") s"
}
adapter_serves() {
	admin '/apis/external.metrics.k8s.io/v1beta1/namespaces/bench/bench_load?labelSelector=target%3Dd0000' | jq -e '.items | length == 1'
}
hpas_active() {
	admin /apis/autoscaling/v2/horizontalpodautoscalers |
		jq -e --argjson want "$1" '[.items[].status.conditions[]? | select(.type == "ScalingActive" and .status == "True")] | length == $want'
}
