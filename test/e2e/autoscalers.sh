# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # work comes from lib.sh
# autoscalers.sh: the kinds of other autoscalers, of which only names and paths matter here: their CRDs accept anything, and no
# controller acts on their objects. After world.sh.

# KIND GROUP VERSION PLURAL, a line each, and a spec that scales Deployment llama.
autoscaler_kinds="ScaledObject keda.sh v1alpha1 scaledobjects {scaleTargetRef: {name: llama}}
PodAutoscaler autoscaling.aibrix.ai v1alpha1 podautoscalers {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}
DatadogPodAutoscaler datadoghq.com v1alpha2 datadogpodautoscalers {targetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}
WatermarkPodAutoscaler datadoghq.com v1alpha1 watermarkpodautoscalers {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}
AutoscalingPolicy workload.serving.volcano.sh v1alpha1 autoscalingpolicies {homogeneousTarget: {target: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}}}
AutoscalingPolicyBinding workload.serving.volcano.sh v1alpha1 autoscalingpolicybindings {homogeneousTarget: {target: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}}}"

# autoscalers_install: applies their CRDs, and waits until they are served.
autoscalers_install() {
	local kind group version plural spec
	while read -r kind group version plural spec; do
		cat <<-YAML
			apiVersion: apiextensions.k8s.io/v1
			kind: CustomResourceDefinition
			metadata: {name: $plural.$group}
			spec:
			  group: $group
			  scope: Namespaced
			  names: {plural: $plural, singular: ${kind,,}, kind: $kind}
			  versions:
			  - name: $version
			    served: true
			    storage: true
			    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
			---
		YAML
	done <<<"$autoscaler_kinds" | kubectl apply -f - >>"$work/kubectl.log" 2>&1
	wait_for 60 autoscalers_are_served
}
autoscalers_are_served() {
	local kind group version plural spec
	while read -r kind group version plural spec; do
		grep -q "\"$plural\"" <(admin "/apis/$group/$version") || return 1
	done <<<"$autoscaler_kinds"
}
# autoscaler KIND NAME: prints an object of the kind in namespace serving.
autoscaler() {
	local kind group version plural spec
	while read -r kind group version plural spec; do
		[ "$kind" = "$1" ] || continue
		printf 'apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s, namespace: serving}\nspec: %s\n' "$group" "$version" "$kind" "$2" "$spec"
	done <<<"$autoscaler_kinds"
}
