# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # api_url comes from loop.sh
# objects.sh: objects of the fake API server, put there and looked at. Source it after loop.sh.

# api METHOD PATH [BODY]: one request; fails with the status of an error.
api() {
	local type=application/json
	[ "$1" = PATCH ] && type=application/merge-patch+json
	curl -sf -m 30 "${api_curl[@]}" -X "$1" -H "Content-Type: $type" ${3:+--data-binary "$3"} "$api_url$2"
}
api_curl=()
# fake_put JSON: as it is, whatever the rules say
fake_put() { api POST /_fake/put "$1" >/dev/null; }
# fake_do COMMAND: such as drop, compact, 'mute?on=1'
fake_do() { api GET "/_fake/$1" >/dev/null; }
# fake_by 'VERB RESOURCE': requests of it, ever
fake_by() { api GET /_fake/requests | jq -r --arg key "$1" '.by[$key] // 0'; }
# fake_break 'status=403' VERB RESOURCE [N]: the next N (all) of these requests go wrong
fake_break() { fake_fail "next=${4:-1000000}&$1&verb=$2&resource=$3"; }
fake_mend() { fake_fail next=0; }

gpuas=/apis/gpuscale.dev/v1alpha1/namespaces/default/gpuautoscalers
# object NAME QUERY [SPEC_MEMBERS]: a GPUAutoscaler for Deployment NAME whose query gives the replicas themselves.
object() {
	printf '{"apiVersion":"gpuscale.dev/v1alpha1","kind":"GPUAutoscaler","metadata":{"name":"%s","namespace":"default"},"spec":{' "$1"
	printf '"minReplicas":1,"maxReplicas":20,"interval":"200ms","behavior":{"scaleDown":{"stabilizationWindowSeconds":0}},'
	printf '"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"%s"},' "$1"
	printf '"signals":[{"name":"want","query":"%s","target":{"type":"Replicas"}}]%s}}' "$2" "${3:+,$3}"
}
# gpua NAME FILTER
gpua() { api GET "$gpuas/$1" | jq -r "$2"; }
gpua_is() { [ "$(gpua "$1" "$2")" = "$3" ]; }
condition() { gpua "$1" ".status.conditions[]? | select(.type == \"$2\") | \"\\(.status) \\(.reason)\""; }
condition_is() { [ "$(condition "$1" "$2")" = "$3" ]; }
condition_says() { [[ $(gpua "$1" ".status.conditions[]? | select(.type == \"$2\") | .message") = *"$3"* ]]; }
logged() { grep -q -- "$2" "$work/$1.log"; }
