# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # root, work and the like come from lib.sh and loop.sh; some variables are for the caller
# world.sh: a real kube-apiserver with workloads, the controller's own account and rights, and pods. After lib.sh, loop.sh.
api_tool=$root/scripts/kube/apiserver
api_dir=$work/api

# world_start: boots the API server; applies manifests/base' namespaces and RBAC; makes namespace serving with Deployment
# llama, StatefulSet vllm and a custom resource Widget gadget. $work/kubeconfig is the controller's: the token of its
# service account, in $work/token.
world_start() {
	local output status
	output=$("$api_tool" up "$api_dir" 2>&1)
	status=$?
	[ "$status" != 77 ] || skip_all "kube-apiserver: ${output##*$'\n'}"
	[ "$status" = 0 ] || { diag "$output"; bail_out 'kube-apiserver does not start'; }
	on_exit "$api_tool" down "$api_dir"
	api=https://127.0.0.1:$(cat "$api_dir/apiserver.port")
	export KUBECONFIG=$api_dir/kubeconfig
	{
		kubectl apply -f "$root/manifests/base/namespaces.yaml" -f "$root/manifests/base/controller-rbac.yaml" &&
			kubectl create namespace serving &&
			workloads | kubectl apply -f - &&
			wait_for 120 kubectl wait --for condition=established --timeout 20s crd/widgets.example.dev &&
			wait_for 20 widget_is_served &&
			wait_for 60 widget_is_made &&
			wait_for 60 may gpuscale-system:gpuscale list pods --all-namespaces &&
			wait_for 60 may gpuscale-system:gpuscale update leases.coordination.k8s.io --namespace gpuscale-system &&
			new_token
	} >"$work/setup.log" 2>&1 || { show_log setup; bail_out 'the API server cannot be filled'; }
	"$api_tool" kubeconfig "$api_dir" "$work/token" >"$work/kubeconfig"
}
# new_token: a fresh token of the controller's account into its file, as the kubelet does it: by rename.
new_token() {
	"$api_tool" token "$api_dir" gpuscale-system gpuscale >"$work/token.new" && mv "$work/token.new" "$work/token"
}
widget_is_served() { grep -q widgets/scale <(admin /apis/example.dev/v1); }
widget_is_made() { widget | kubectl apply -f -; }
# may NAMESPACE:ACCOUNT VERB RESOURCE [ARGUMENT..]: does the API server let that account? It hears of new roles a moment after
# it has stored them.
may() { kubectl auth can-i "$2" "$3" "${@:4}" --as "system:serviceaccount:$1" --quiet; }

# admin PATH [CURL_ARGUMENT..]: a request with all rights.
admin() {
	local path=$1; shift
	curl -sS -m 30 --cacert "$api_dir/ca.crt" -H 'Authorization: Bearer admin-token' "$@" "$api$path"
}
apps=/apis/apps/v1/namespaces/serving
declare -A path_of=([llama]=$apps/deployments/llama [vllm]=$apps/statefulsets/vllm
	[gadget]=/apis/example.dev/v1/namespaces/serving/widgets/gadget)
# replicas NAME: spec.replicas of llama, vllm or gadget.
replicas() { admin "${path_of[$1]}" | jq -r .spec.replicas; }
has_replicas() { [ "$(replicas "$1")" = "$2" ]; }
set_replicas() { admin "${path_of[$1]}" -X PATCH -H 'Content-Type: application/merge-patch+json' -d "{\"spec\":{\"replicas\":$2}}" >/dev/null; }
# versions: every resourceVersion there is in namespace serving, and what it belongs to.
versions() {
	kubectl -n serving get deployments,statefulsets,widgets,pods,configmaps,secrets,events -o json |
		jq -c '[.items[] | [.kind, .metadata.name, .metadata.resourceVersion]]'
}

workloads() {
	local kind name
	for kind in Deployment StatefulSet; do
		name=llama
		[ $kind = Deployment ] || name=vllm
		cat <<-END
			apiVersion: apps/v1
			kind: $kind
			metadata: {name: $name, namespace: serving}
			spec:
			  replicas: 1
			  selector: {matchLabels: {app: $name}}
			  $([ $kind = Deployment ] || echo "serviceName: $name")
			  template:
			    metadata: {labels: {app: $name}}
			    spec: {containers: [{name: main, image: none}]}
			---
		END
	done
	cat <<-END
		apiVersion: apiextensions.k8s.io/v1
		kind: CustomResourceDefinition
		metadata: {name: widgets.example.dev}
		spec:
		  group: example.dev
		  scope: Namespaced
		  names: {plural: widgets, singular: widget, kind: Widget}
		  versions:
		  - name: v1
		    served: true
		    storage: true
		    schema:
		      openAPIV3Schema:
		        type: object
		        properties:
		          spec: {type: object, properties: {replicas: {type: integer}}}
		          status: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}
		    subresources:
		      status: {}
		      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
	END
}
widget() { printf 'apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: gadget, namespace: serving}\nspec: {replicas: 1}\n'; }

# ---- pods ----
# There is no controller manager here: this makes the pods of each object in path_of follow spec.replicas, ready at once,
# and keeps the status of their owners. Run by start_pods.
follow_with_pods() {
	local name path want have json='Content-Type: application/merge-patch+json' pods=/api/v1/namespaces/serving/pods
	while sleep 0.1; do
		for name in "${!path_of[@]}"; do
			path=${path_of[$name]}
			want=$(replicas "$name") || continue
			have=$(admin "$pods?labelSelector=app=$name" | jq '.items | length') || continue
			[[ $want =~ ^[0-9]+$ && $have =~ ^[0-9]+$ && $want != "$have" ]] || continue
			while [ "$have" -lt "$want" ]; do
				admin "$pods" -o /dev/null -H 'Content-Type: application/json' -d '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"'"$name-$have"'","labels":{"app":"'"$name"'"}},
					"spec":{"nodeName":"node","containers":[{"name":"main","image":"none","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}'
				admin "$pods/$name-$have/status" -o /dev/null -X PATCH -H "$json" -d '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
				have=$((have + 1))
			done
			while [ "$have" -gt "$want" ]; do
				have=$((have - 1))
				admin "$pods/$name-$have?gracePeriodSeconds=0" -o /dev/null -X DELETE
			done
			admin "$path/status" -o /dev/null -X PATCH -H "$json" -d '{"status":{"replicas":'"$have"',"readyReplicas":'"$have"',"selector":"app='"$name"'"}}'
		done
	done
}
start_pods() { start pods follow_with_pods; }
has_pods() { [ "$(admin "/api/v1/namespaces/serving/pods?labelSelector=app=$1" | jq '.items | length')" = "$2" ]; }
