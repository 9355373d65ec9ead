# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2119,SC2120 # root, out and work come from lib.sh; some variables are for the caller
# world.sh: a real API server with an audit log, sixty ConfigMaps that stand for policies, and processes that write about them
# (ha-process). Source it after lib.sh.
need_tools() { local tool; for tool; do command -v "$tool" >/dev/null || skip_all "$tool is not installed"; done; }
need_tools etcd kubectl jq curl awk
kube=$root/scripts/kube/apiserver api_dir=$work/api audit=$work/audit.log process=$out/ha-process
[ -x "$process" ] || bail_out "$process is not built"
on_exit "$kube" down "$api_dir"
said=$(APISERVER_FLAGS="--audit-policy-file=$root/test/e2e/ha/audit-policy.yaml --audit-log-path=$audit --audit-log-mode=blocking" "$kube" up "$api_dir" 2>&1)
case $? in 0) ;; 77) skip_all "kube-apiserver: ${said##*$'\n'}" ;; *) diag "$said"; bail_out 'kube-apiserver does not start' ;; esac
export KUBECONFIG=$api_dir/kubeconfig
for ((i = 0; i < 60; i++)); do printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy-%d}\n---\n' "$i"; done | kubectl apply -f - >"$work/setup.log" 2>&1 ||
	{ show_log setup; bail_out 'cannot make the ConfigMaps'; }

# Where a holder that is held up may lose its lease, it is short: the proof is the judge's. Where the lease must stay with its
# holder until the test takes it away, it is long.
# A write has half of what lies between the two times.
short=(--lease-duration 8s --renew-deadline 4s --retry-period 300ms) # a test that waits for one to expire sleeps 10 s
long=(--lease-duration 20s --renew-deadline 14s --retry-period 300ms)
timing=("${short[@]}")
# begin ID ARGUMENT..: one process.
begin() { local id=$1; shift; start "$id" "$process" --identity "$id" "${timing[@]}" "$@"; }
holder() { kubectl get lease "gpuscale-$1" -o jsonpath='{.spec.holderIdentity}' 2>/dev/null; }
holds() { [ "$(holder "$1")" = "$2" ]; }
# knows ID HOLDER: the process is up, and knows who holds shard 0.
knows() { [ "$(grep '^shard 0 is held by' "$work/$1.log" | tail -n 1)" = "shard 0 is held by \"$2\"" ]; }
# events FILTER: of what the audit log has until now; a line that is only just being written is left out.
events() { head -n "$(wc -l <"$audit")" "$audit" | jq -r "select(.responseStatus.code < 300) | $1"; }
# count ID: the writes of one process so far.
count() { grep -c "\"writer\":\"$1\"" "$audit"; }
writes() { local before; before=$(count "$1"); sleep 0.5; [ "$(count "$1")" -gt "$before" ]; }
reset() { kubectl delete leases --all >/dev/null; }
now_ms() { local us=${EPOCHREALTIME/[^0-9]/}; echo "${us::-3}"; }
has_writes() { [ "$(grep '"writer":' "$audit" | grep -c '"code":200')" -ge "$1" ]; }
given_up() { # of each process that ever was, as test/e2e/ha/judge wants it
	local log id
	for log in "$work"/*.log; do
		id=${log##*/} id=${id%.log}
		[ "$id" = audit ] || sed -n "s/^gave up on /$id /p" "$log"
	done
}
judged() { # NAME WRITES_AT_LEAST
	local verdict
	wait_for 60 has_writes "$2"
	given_up >"$work/given-up"
	if verdict=$("$root/test/e2e/ha/judge" "$audit" "$2" "$work/given-up"); then pass "$1"; diag "$verdict"; else fail "$1" "$verdict"; fi
}

