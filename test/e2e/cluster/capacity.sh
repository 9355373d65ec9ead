# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # root, out, work and dir come from lib.sh and cluster.sh; m is for the tests
# capacity.sh: a policy with spec.capacity on the one-node cluster, its signal, and a controller beside the cluster with the
# token of its own account. Source it after cluster.sh, when the cluster is up.
m=$root/manifests

want() { printf 'want => = %d\nother => = %d\n' "$1" "${2:-1}" >"$work/answers"; }
ask() { want "$@"; kill -HUP "$(pid_of prometheus)"; }
want 2
start prometheus "$out/fake-prometheus" --answers "$work/answers"
wait_for 60 grep -q '^listening on' "$work/prometheus.log" || bail_out 'the fake Prometheus does not start'
prometheus=$(sed -n 's/^listening on //p' "$work/prometheus.log")
kube apply -f "$m/base/namespaces.yaml" -f "$m/base/crd.yaml" -f "$m/base/controller-rbac.yaml" >/dev/null
kube create namespace serving >/dev/null
# workload NAME [SCHEDULING_GATE]: a Deployment whose replicas take a GPU each
workload() {
	kube apply -f - >/dev/null <<-YAML
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: $1, namespace: serving}
		spec:
		  replicas: 1
		  selector: {matchLabels: {app: $1}}
		  template:
		    metadata: {labels: {app: $1}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      automountServiceAccountToken: false
		      schedulingGates: [${2:+name: $2}]
		      containers:
		      - name: server
		        image: local/pause:1
		        resources: {limits: {nvidia.com/gpu: 1}}
	YAML
}
# policy CAPACITY [NAME QUERY SCALE_DOWN_WINDOW]: with it as spec.capacity
policy() {
	kube apply -f - >/dev/null <<-YAML
		apiVersion: gpuscale.dev/v1alpha1
		kind: GPUAutoscaler
		metadata: {name: ${2:-llama}, namespace: serving}
		spec:
		  scaleTargetRef: {name: ${2:-llama}}
		  maxReplicas: 8
		  interval: 1s
		  signals: [{name: want, query: ${3:-want}, target: {type: Replicas}}]
		  behavior:
		    scaleUp: {policies: [{type: Pods, value: 8, periodSeconds: 1}]}
		    scaleDown: {stabilizationWindowSeconds: ${4:-300}}
		  capacity: $1
	YAML
}
# ---- the controller, with the rights of its own account ----
kube config view --raw --minify >"$work/controller.kubeconfig"
kubectl --kubeconfig "$work/controller.kubeconfig" config set-credentials gpuscale \
	--token="$(kube -n gpuscale-system create token gpuscale --duration=2h)" >/dev/null
kubectl --kubeconfig "$work/controller.kubeconfig" config set-context --current --user=gpuscale >/dev/null
run() { start controller "$out/gpuscale" run --prometheus "$prometheus" --kubeconfig "$work/controller.kubeconfig" --listen ''; }
gpua() { get serving gpuautoscaler/llama "{$1}"; }
condition() { gpua ".status.conditions[?(@.type==\"CapacityLimited\")]$1"; }
replicas() { get serving deployment/llama '{.spec.replicas}'; }
settled_at() { [ "$(get serving deployment/llama '{.spec.replicas}/{.status.readyReplicas}')" = "$1/${2-$1}" ]; }
report() { diag "$(kube -n serving get pods 2>&1)" "$(gpua .status)" "$(tail -n 5 "$work/controller.log")"; }
# phase NAME COMMAND..: what comes next builds on it, so a failure ends the test
phase() {
	if wait_for 120 "${@:2}"; then pass "$1"; return; fi
	fail "$1"
	report
	bail_out 'the rest builds on this'
}
