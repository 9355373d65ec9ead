# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # root and work come from the caller, who reads operators_missing
# operators.sh: installs the kinds of other programs (operators) whose objects manifests/ contains, in a real API server. After lib.sh.

# operators_install: gives the API server of $KUBECONFIG the definitions of the Prometheus operator and
# of cert-manager. Sets operators_missing to why not, or to nothing.
operators_missing=
operators_install() {
	local output
	local -a folders
	if ! output=$("$root/scripts/kube/definitions" 2>"$work/definitions.err"); then
		operators_missing=$(tail -n 1 "$work/definitions.err")
		return
	fi
	mapfile -t folders <<<"$output"
	{
		# create, not apply: they are larger than the annotation that apply would make
		kubectl --request-timeout=60s create "${folders[@]/#/--filename=}" && wait_for 120 kubectl wait --for condition=established --timeout=60s crd --all &&
			wait_for 120 operators_are_served
	} >"$work/definitions.log" 2>&1 || { show_log definitions; bail_out 'the definitions of other programs cannot be installed'; }
}
# Every kind of them, not only the group: that is there with the first.
operators_are_served() {
	local wanted served
	wanted=$(kubectl get crd -o json | jq -r '.items[] | "\(.spec.names.plural).\(.spec.group)"' | sort) && served=$(kubectl api-resources -o name | sort) &&
		[[ $wanted == *cert-manager.io* && $wanted == *monitoring.coreos.com* ]] && [ -z "$(comm -23 <(echo "$wanted") <(echo "$served"))" ]
}
