# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, out, work: lib.sh; bench, dir, DEPLOYMENTS, INTERVAL_S: the script
# kube_world.sh: what run-kube, run-fleet and run-reaction share: a controller at work on the policies of a real API server ($dir), with
# the rights of the manifests, counted by that server; Prometheus is scripted. After measure.sh.

admin() { curl -sf -m 60 --cacert "$dir/ca.crt" -H 'Authorization: Bearer admin-token' "$api$1"; }
raw() { "$bench/bench_kube" "$dir/kubeconfig" "$@" || die "bench_kube $*"; }

# world_ready: the server is up in $dir. Makes the Deployments. Sets api, KUBECONFIG.
world_ready() {
	api=https://127.0.0.1:$(cat "$dir/apiserver.port")
	export KUBECONFIG=$dir/kubeconfig
	raw create "$DEPLOYMENTS" >/dev/null
}

# world_rights: the account, its rights, the CRD. The API server counts the account as a flow of its own.
world_rights() {
	{
		kubectl apply -f "$root/manifests/base/namespaces.yaml" -f "$root/manifests/base/controller-rbac.yaml" -f "$root/manifests/base/crd.yaml" &&
			wait_for 120 kubectl wait --for condition=established --timeout 30s crd/gpuautoscalers.gpuscale.dev &&
			"$root/scripts/kube/apiserver" token "$dir" gpuscale-system gpuscale 36000 >"$work/token" &&
			"$root/scripts/kube/apiserver" kubeconfig "$dir" "$work/token" >"$work/kubeconfig" &&
			kubectl apply -f - <<-'END'
				apiVersion: flowcontrol.apiserver.k8s.io/v1
				kind: FlowSchema
				metadata: {name: gpuscale}
				spec:
				  priorityLevelConfiguration: {name: workload-high}
				  matchingPrecedence: 500
				  distinguisherMethod: {type: ByUser}
				  rules:
				  - subjects: [{kind: ServiceAccount, serviceAccount: {name: gpuscale, namespace: gpuscale-system}}]
				    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*']}]
				    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
			END
	} >"$work/setup.log" 2>&1 || { tail -n 3 "$work/setup.log" >&2; die 'the API server cannot be set up'; }
	wait_for 30 admin /apis/gpuscale.dev/v1alpha1/gpuautoscalers >&2 || die 'gpuautoscalers are not served'
}
world_policies() { # the same, and a policy for each Deployment
	world_rights
	raw policies "$DEPLOYMENTS" "$INTERVAL_S" >/dev/null
}

load_is() { # VALUE: at once
	echo "bench_load => each $1" >"$work/answers"
	! is_running prometheus || kill -HUP "$(pid_of prometheus)"
}

# controller_up: scripted Prometheus and controller; until every policy was decided. Sets url, start_s.
controller_up() {
	local began listen_port=''
	start prometheus "$out/fake-prometheus" --answers "$work/answers"
	wait_line prometheus '^listening on '
	free_port listen_port
	url=http://127.0.0.1:$listen_port
	began=$EPOCHREALTIME
	start controller "$out/gpuscale" run --kubeconfig "$work/kubeconfig" --listen "127.0.0.1:$listen_port" --logging-format json \
		--prometheus "$(sed -n 's/^listening on //p' "$work/prometheus.log")"
	wait_for 180 all_decided >&2 || { tail -n 5 "$work/controller.log" >&2; die 'not every policy was decided'; }
	start_s=$(calc %.2f "$EPOCHREALTIME - $began")
}
all_decided() { curl -sf -m 5 -o /dev/null "$url/readyz"; }

# metric NAME: the sum of its samples.
metric() { curl -sf -m 5 "$url/metrics" | awk -v name="$1" '$0 ~ "^" name "[{ ]" { s += $NF } END { printf "%.9g", s }'; }
# by_verb: what the controller asked of the API server so far, by its own count.
by_verb() {
	curl -sf -m 5 "$url/metrics" | sed -n 's/^gpuscale_api_requests_total{\(.*\)} /\1 /p' |
		awk '{ v = $1; sub(/.*verb="/, "", v); sub(/".*/, "", v); n[v] += $NF } END { for (v in n) printf "%s %d\n", v, n[v] }' | sort | paste -sd, | sed 's/,/, /g'
}
# served: the same, all verbs, by the API server's count.
served() { admin /metrics | awk '/^apiserver_flowcontrol_dispatched_requests_total\{.*flow_schema="gpuscale"/ { s += $NF } END { printf "%d", s }'; }

# all_said: no status waits to be written.
all_said() { [ "$(metric gpuscale_status_writes_waiting)" = 0 ]; }

# at_rest PREFIX WARM_UP_S SECONDS: the three rows of a controller that has nothing to do.
at_rest() {
	local prefix=$1 seconds=$3 pid requests ticks cpu own
	wait_for $((600 + DEPLOYMENTS / 20)) all_said >&2 || die 'the first statuses were not written'
	sleep "$2"
	pid=$(pid_of controller)
	requests=$(served) ticks=$(metric gpuscale_reconciles_total) own=$(metric gpuscale_api_requests_total) cpu=$(cpu_us "$pid")
	sleep "$seconds"
	cpu=$(($(cpu_us "$pid") - cpu)) ticks=$(($(metric gpuscale_reconciles_total) - ticks))
	requests=$(($(served) - requests)) own=$(($(metric gpuscale_api_requests_total) - own))
	[ "$ticks" -gt 0 ] || die "no tick in $seconds s"
	row "${prefix}_cpu_per_policy_us" "$(calc %.1f "$cpu / $ticks")" "$ticks policy ticks in $seconds s, $(calc %.2f "$cpu / $seconds / 10000") % of a core"
	row "${prefix}_rss_mib" "$(status_mib "$pid" VmRSS)" "own (anonymous) memory $(status_mib "$pid" RssAnon) MiB, peak $(status_mib "$pid" VmHWM) MiB"
	row "${prefix}_requests_steady" "$(calc %.3g "$requests / $ticks")" "$requests requests in $ticks policy ticks by the API server's count, $own by the controller's own"
	say "the controller's requests so far: $(by_verb)"
}

# What is logged when a PATCH is acknowledged: $work/LOG.log, the message, and the unit of its time stamps.
SCALED_LOG=controller SCALED_MESSAGE='Scaled target' SCALED_PER_S=1
scaled_lines() { grep "\"msg\":\"$SCALED_MESSAGE\"" "$work/$SCALED_LOG.log"; }
scaled() { scaled_lines | wc -l; }
scaled_all() { [ "$(scaled)" -ge "$1" ]; }
# step REPLICAS: one step of the metric. Sets step_began, and step_patches: seconds to each acknowledged PATCH, sorted.
step() {
	local before; before=$(scaled)
	step_began=$EPOCHREALTIME
	load_is "$1"
	wait_for $((180 + DEPLOYMENTS / 20)) scaled_all $((before + DEPLOYMENTS)) >&2 || { tail -n 3 "$work/$SCALED_LOG.log" >&2; die 'the step never ended'; }
	step_patches=$(scaled_lines | tail -n "$DEPLOYMENTS" | jq --argjson began "$step_began" --argjson per_s "$SCALED_PER_S" '(.ts / $per_s - $began) * 1000 | round / 1000' | sort -g)
}
# percentile P: of sorted numbers.
percentile() { awk -v p="$1" '{ v[NR] = $1 } END { i = int((NR * p + 99) / 100); print v[i < 1 ? 1 : i] }'; }

# costs_of_writes N A B: what a PATCH of /scale, a status of a policy and an Event cost the API server: us of CPU each, the
# median of three rounds of N, less what it takes at rest. A and B are files with bodies of a status, sent in turn. Each kind
# has a watch, as the controller's. Needs that nothing else writes. Sets cost_scale, cost_status, cost_event, and
# etcd_scale, etcd_status, etcd_event.
costs_of_writes() {
	local n=$1 bodies=("$2" "$3") round kind before after began rest=(0 0) server etcd
	local -A costs_by_kind=()
	start watch-policies curl -sN -o /dev/null --cacert "$dir/ca.crt" -H 'Authorization: Bearer admin-token' \
		"$api/apis/gpuscale.dev/v1alpha1/gpuautoscalers?watch=true&allowWatchBookmarks=true"
	start watch-targets curl -sN -o /dev/null --cacert "$dir/ca.crt" -H 'Authorization: Bearer admin-token' \
		"$api/apis/apps/v1/namespaces/bench/deployments?watch=true&allowWatchBookmarks=true"
	for round in 0 1 2 3; do # the first one warms up
		for kind in rest scale status event; do
			sleep 2
			before=$(cpu_of_server) began=$EPOCHREALTIME
			case $kind in
			rest) sleep 5 ;;
			scale) raw scale "$n" $((6 + round % 2)) >/dev/null ;;
			status) raw policy-status "$n" "${bodies[round % 2]}" >/dev/null ;;
			event) raw events "$n" >/dev/null ;;
			esac
			sleep 1
			after=$(cpu_of_server)
			server=$(calc %.0f "${after% *} - ${before% *}") etcd=$(calc %.0f "${after#* } - ${before#* }")
			if [ $kind = rest ]; then # us in a second
				rest=("$(calc %.0f "$server / ($EPOCHREALTIME - $began)")" "$(calc %.0f "$etcd / ($EPOCHREALTIME - $began)")")
			elif [ $round != 0 ]; then
				began=$(calc %.3f "$EPOCHREALTIME - $began")
				costs_by_kind[$kind]+=$(calc %.0f "($server - ${rest[0]} * $began) / $n")$'\n'
				costs_by_kind[etcd_$kind]+=$(calc %.0f "($etcd - ${rest[1]} * $began) / $n")$'\n'
			fi
		done
	done
	stop watch-policies
	stop watch-targets
	for kind in scale status event; do
		printf -v "cost_$kind" %s "$(printf %s "${costs_by_kind[$kind]}" | median)"
		printf -v "etcd_$kind" %s "$(printf %s "${costs_by_kind[etcd_$kind]}" | median)"
		say "$kind: $(xargs <<<"${costs_by_kind[$kind]}") us of the API server, $(xargs <<<"${costs_by_kind[etcd_$kind]}") us of etcd"
	done
}
cpu_of_server() { echo "$(cpu_us "$(cat "$dir/apiserver.pid")") $(cpu_us "$(cat "$dir/etcd.pid")")"; }
