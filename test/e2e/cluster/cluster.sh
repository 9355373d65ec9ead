# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # root, out and work come from lib.sh
# cluster.sh: the one-node Kubernetes of a test, and how to ask it. Source it after lib.sh.
#
# What the API server took is there at once; what a controller, the scheduler, the kubelet or kube-proxy makes of it comes in their own
# time, and until then `.status` is that of the past: wait_for and `becomes` for all of that, rolled_out for pods.
[ "$PATIENCE_S" -ge 180 ] || PATIENCE_S=180 # a whole cluster on two cores
cluster=$root/scripts/cluster dir=$work/cluster

# need_programs PROGRAM..: of this build
need_programs() {
	local program
	for program; do [ -x "$out/$program" ] || bail_out "$out/$program is missing: make builds it"; done
}
# cluster_up [--gpus N]: starts it, to be taken down at the end; skips the whole script where it cannot run.
cluster_up() {
	local lacks
	lacks=$("$cluster" check) || skip_all "this machine lacks: $(xargs <<<"$lacks")"
	on_exit "$cluster" down "$dir"
	"$cluster" up "$dir" --bare "$@" >"$work/up.out" 2>"$work/up.err"
	case $? in
	0) ;;
	77) skip_all "$(tail -n 1 "$work/up.err")" ;;
	*) bail_out "the cluster does not start: $(tail -n 20 "$work/up.err")" ;;
	esac
}
kube() { kubectl --kubeconfig "$dir/kubeconfig" --request-timeout=60s "$@"; }
get() { kube -n "$1" get "$2" -o "jsonpath=$3"; } # NAMESPACE KIND/NAME JSONPATH

# load_images PROGRAM..: as images of their version, made without a container engine
load_images() {
	local program version
	for program; do
		version=$("$out/$program" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
		check "an image of $program is made without a container engine" "$root/scripts/image" -o "$work/$program.tar" -n "$program:$version" "$out/$program"
		check "the image of $program loads" "$cluster" load "$dir" "$work/$program.tar"
	done
}

# rolled_out NAMESPACE KIND/NAME N: the controller of its pods has observed the present template; N pods of it are ready, and there is no other
# one, not even on its way out. The pods carry the name as their app.kubernetes.io/name.
rolled_out() {
	local generation observed updated
	IFS=/ read -r generation observed updated < <(get "$1" "$2" '{.metadata.generation}/{.status.observedGeneration}/{.status.updatedReplicas}{.status.updatedNumberScheduled}' && echo)
	[ -n "$generation" ] && [ "$generation/$updated" = "$observed/$3" ] && [ "$(kube -n "$1" get pods -l "app.kubernetes.io/name=${2#*/}" -o json | jq -r '
		.items | "\(length) \(map(select(.metadata.deletionTimestamp == null and any(.status.conditions[]?; .type == "Ready" and .status == "True"))) | length)"')" = "$3 $3" ]
}
# pod_ip NAMESPACE NAME: of a pod that serves, by its app.kubernetes.io/name
pod_ip() {
	kube -n "$1" get pods -l "app.kubernetes.io/name=$2" -o json | jq -r '[.items[] | select(.metadata.deletionTimestamp == null) | .status.podIP // empty] | first // empty'
}
# policy_is_seen NAMESPACE NAME: the controller has written the status of its present generation
policy_is_seen() {
	local generation observed
	IFS=/ read -r generation observed < <(get "$1" "gpuautoscaler/$2" '{.metadata.generation}/{.status.observedGeneration}' && echo)
	[ -n "$generation" ] && [ "$generation" = "$observed" ]
}
