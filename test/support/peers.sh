# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, work: lib.sh
# peers.sh: real peers of gpuscale on the API server in folder DIR (scripts/kube/apiserver, started with
# aggregation_prepare): the HPA controller of kube-controller-manager, and KEDA's operator and metrics adapter. After lib.sh.
#
# There is no pod network, so the APIService of the adapter points to this machine through a Service of type
# ExternalName. All processes listen on loopback, except the metrics page of KEDA's adapter, which has no flag for its address.

# peers_programs: sets manager, keda_operator, keda_adapter and keda_crds. Fails, with the reason on stderr, when one is
# not built.
peers_programs() {
	manager=$("$root/scripts/kube/build" kube-controller-manager) &&
		keda_operator=$("$root/scripts/kube/build" keda-operator) &&
		keda_adapter=$("$root/scripts/kube/build" keda-adapter) && keda_crds=$("$root/scripts/kube/definitions" keda)
}

# hpa_manager_start DIR SYNC_S FLAG..: the controller manager with the HPA controller alone, as process manager.
hpa_manager_start() {
	local dir=$1 sync_s=$2 manager_port=''; shift 2
	free_port manager_port
	start manager "$manager" --kubeconfig "$dir/kubeconfig" --controllers=horizontal-pod-autoscaler-controller \
		--leader-elect=false --horizontal-pod-autoscaler-sync-period="${sync_s}s" --logging-format=json \
		--bind-address=127.0.0.1 --secure-port="$manager_port" --authentication-skip-lookup "$@"
}

# external_metrics_from NAMESPACE PORT: the API server forwards requests about external metrics to that port.
external_metrics_from() {
	kubectl apply -f - <<-END
		apiVersion: v1
		kind: Service
		metadata: {name: metrics, namespace: $1}
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
		  service: {name: metrics, namespace: $1, port: $2}
	END
}

# keda_certificates FOLDER: what KEDA's operator creates with --enable-cert-rotation, for both processes.
keda_certificates() {
	mkdir -p "$1" &&
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1/ca.key" -out "$1/ca.crt" \
			-subj /CN=keda-ca -days 2 &&
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1/tls.key" -out "$1/tls.csr" \
			-subj /CN=keda &&
		openssl x509 -req -in "$1/tls.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -days 2 -out "$1/tls.crt" \
			-extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
}

# keda_install: KEDA's kinds and its namespace; kubectl is an admin's.
keda_install() {
	kubectl get namespace keda >/dev/null 2>&1 || kubectl create namespace keda
	# Server-side: the definitions are larger than the annotation of a client-side apply.
	kubectl apply --server-side -f "$keda_crds" &&
		wait_for 60 kubectl wait --for condition=established --timeout 20s crd/scaledobjects.keda.sh \
			crd/cloudeventsources.eventing.keda.sh
}

# keda_start DIR FLAG..: operator and adapter, as processes operator and adapter, with more flags for the operator. Its
# client may send 2,000 requests a second instead of 20, as its users with many objects set it, so that no step waits for
# it.
keda_start() {
	local dir=$1 name grpc_port='' adapter_port='' page_port='' probe_port='' adapter_page_port=''; shift
	local -a environment=(KUBECONFIG="$dir/kubeconfig" WATCH_NAMESPACE=
		POD_NAMESPACE=keda KEDA_CLUSTER_OBJECT_NAMESPACE=keda)
	for name in grpc_port adapter_port page_port probe_port adapter_page_port; do free_port $name; done
	keda_certificates "$work/keda" >"$work/keda-openssl.log" 2>&1 || return 1
	start operator env "${environment[@]}" "$keda_operator" --cert-dir "$work/keda" \
		--metrics-service-bind-address "127.0.0.1:$grpc_port" \
		--metrics-bind-address "127.0.0.1:$page_port" --health-probe-bind-address "127.0.0.1:$probe_port" \
		--kube-api-qps 2000 --kube-api-burst 2000 --zap-log-level=info "$@"
	start adapter env "${environment[@]}" "$keda_adapter" --cert-dir "$work/keda" \
		--metrics-service-address "localhost:$grpc_port" \
		--tls-cert-file "$work/keda/tls.crt" --tls-private-key-file "$work/keda/tls.key" \
		--bind-address 127.0.0.1 --secure-port "$adapter_port" --port "$adapter_page_port" \
		--kube-api-qps 2000 --kube-api-burst 2000 --zap-log-level=error \
		--lister-kubeconfig "$dir/kubeconfig" --authentication-kubeconfig "$dir/kubeconfig" \
		--authorization-kubeconfig "$dir/kubeconfig"
	external_metrics_from keda "$adapter_port" >>"$work/keda-install.log" 2>&1 || return 1
	wait_for 180 external_metrics_are_served
}
external_metrics_are_served() { kubectl get --raw /apis/external.metrics.k8s.io/v1beta1; }
