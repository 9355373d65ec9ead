# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # root, work and version come from the caller, who reads foreign_missing
# foreign.sh: the kinds of other programs that manifests/ has objects of, in a real API server. After lib.sh.

# foreign_install: gives the API server of $KUBECONFIG, whose version is in $version, the definitions of the Prometheus operator and
# of cert-manager. Sets foreign_missing to why not, or to nothing.
foreign_missing=
foreign_install() {
	local said
	local -a folders
	case $version in v1.20.*) foreign_missing='the run on 1.34 judges these'; return ;; esac
	if ! said=$("$root/scripts/kube/definitions" 2>"$work/definitions.err"); then
		foreign_missing=$(tail -n 1 "$work/definitions.err")
		return
	fi
	mapfile -t folders <<<"$said"
	{
		# create, not apply: they are larger than the annotation that apply would make
		kubectl --request-timeout=60s create "${folders[@]/#/--filename=}" && wait_for 120 kubectl wait --for condition=established --timeout=60s crd --all &&
			wait_for 120 foreign_are_served
	} >"$work/definitions.log" 2>&1 || { show_log definitions; bail_out 'the definitions of other programs cannot be installed'; }
}
# Every kind of them, not only the group: that is there with the first.
foreign_are_served() {
	local wanted served
	wanted=$(kubectl get crd -o json | jq -r '.items[] | "\(.spec.names.plural).\(.spec.group)"' | sort) && served=$(kubectl api-resources -o name | sort) &&
		[[ $wanted == *cert-manager.io* && $wanted == *monitoring.coreos.com* ]] && [ -z "$(comm -23 <(echo "$wanted") <(echo "$served"))" ]
}
