# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # dir, cluster, kube and get: of the test
# report.sh: what is seen from the node when something in the cluster does not answer, as TAP comments. After lib.sh.

# last LINES: of what comes in, all of which is read.
last() { tail -n "$1"; }
# as_aggregator URL: what the aggregation layer would ask, and the answer in a line
as_aggregator() {
	echo "GET $1: $(curl -ksS --noproxy '*' -m 30 --cert "$dir/front-proxy.crt" --key "$dir/front-proxy.key" -H 'X-Remote-User: system:kube-aggregator' \
		-H 'X-Remote-Group: system:masters' -w ' (status %{http_code})' "$1" 2>&1 | tr '\n' ' ' | tail -c 300)"
}
# report_service NAMESPACE NAME PATH: why a Service does not answer: what the API server says, who stands behind it, what kube-proxy made
# of it, and what its address and each pod answer to the aggregation layer's question.
report_service() {
	local address port endpoint
	address=$(get "$1" "service/$2" '{.spec.clusterIP}') port=$(get "$1" "service/$2" '{.spec.ports[0].port}')
	diag "--- Service $1/$2 at $address:$port" \
		"$(kube get apiservices -o json | jq -c '.items[] | select(.spec.service) | [.metadata.name, .spec.service, .status.conditions]')" \
		"$(kube -n "$1" get endpoints,endpointslices,pods -o wide 2>&1)" "$(as_aggregator "https://$address:$port$3")"
	while read -r endpoint; do diag "$(as_aggregator "https://$endpoint$3")"; done < <(kube -n "$1" get endpoints "$2" -o json |
		jq -r '.subsets[]? | .ports[0].port as $port | .addresses[]? | "\(.ip):\($port)"')
	diag "--- node" "$(ip route get "$address" 2>&1)" "$(iptables -t nat -S 2>&1 | grep -E "$address|$2" | last 30)" "$(iptables -t nat -S 2>&1 | wc -l) lines in nat" \
		"$(conntrack -L -d "$address" 2>&1 | last 8)" "$("$cluster" status "$dir" 2>&1 | grep -E ' (up|down)')" "--- kube-proxy" "$(last 15 <"$dir/proxy.log")" \
		"--- API server" "$(grep -E "external.metrics|$address" "$dir/apiserver.log" | last 10)" "--- pods" "$(kube -n "$1" logs "deployment/$2" --tail=10 2>&1)"
}
