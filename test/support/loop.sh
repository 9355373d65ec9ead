# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2119,SC2120 # root, out and work come from lib.sh; arguments are optional
# loop.sh: the pieces of the closed loop as processes of a test: a Prometheus with a past, an API server, a controller.
# Source it after lib.sh. Everything listens on a free loopback port, logs to $work/NAME.log and is stopped at the end.
gpuscale=$out/gpuscale
prometheus_port='' controller_port='' # free_port fills them in

# need TOOL..: skips the whole script when one is not installed.
need() {
	local tool
	for tool; do command -v "$tool" >/dev/null || skip_all "$tool is not installed"; done
}
[ -x "$gpuscale" ] || bail_out "$gpuscale is not built"

# while_stopped NAME COMMAND..: what the command gives while that process is stopped. It is so at every try: test/support/jitter
# may have stopped it too, and let it go on.
while_stopped() { kill -STOP "$(pid_of "$1")" && "${@:2}"; }

now_ms() { local us=${EPOCHREALTIME/[^0-9]/}; echo "${us::-3}"; }

# eventually NAME SECONDS COMMAND..: passes when the command succeeds within that time.
eventually() {
	local name=$1 seconds=$2; shift 2
	if wait_for "$seconds" "$@"; then pass "$name"; else fail "$name" "never within $seconds s: $*"; fi
}

# ---- Prometheus ----

# past NAME VALUE FROM_S TO_S [LABELS]: one sample every 5 s from FROM_S to TO_S seconds ago, in OpenMetrics. However slow
# the machine is, the present must not run past what was written: -$AHEAD_S as TO_S reaches far enough into the future.
# But then Prometheus takes nothing older than the last sample, so no scrapes.
# shellcheck disable=SC2034 # used by those who source this
AHEAD_S=3600
past() {
	local name=$1 value=$2 from=$3 to=$4 labels=${5-} now=${EPOCHSECONDS} s
	printf '# TYPE %s gauge\n' "$name"
	for ((s = from; s >= to; s -= 5)); do printf '%s%s %s %d\n' "$name" "$labels" "$value" $((now - s)); done
}

# prometheus_config [LINES]: writes $work/prometheus.yml; the lines are scrape_configs.
prometheus_config() {
	printf 'global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: %s\n' "${1:-[]}" >"$work/prometheus.yml"
}

# prometheus_start [OPENMETRICS_FILE]: a real Prometheus that has that past. Sets prometheus_url, on the same port again
# when it was stopped before. prometheus_args: more arguments for it.
prometheus_args=()
prometheus_start() {
	local i
	if [ $# -gt 0 ]; then
		echo '# EOF' >>"$1"
		promtool tsdb create-blocks-from openmetrics -q "$1" "$work/tsdb" >"$work/backfill.log" 2>&1 ||
			bail_out "promtool cannot write blocks: $(cat "$work/backfill.log")"
	fi
	[ -f "$work/prometheus.yml" ] || prometheus_config
	for ((i = 0; i < 3; i++)); do
		[ -n "$prometheus_port" ] || free_port prometheus_port
		prometheus_url=http://127.0.0.1:$prometheus_port
		start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
			--web.listen-address="127.0.0.1:$prometheus_port" --web.enable-lifecycle --log.level=warn "${prometheus_args[@]}"
		wait_for 20 prometheus_is_settled && is_running prometheus && return
		stop prometheus
		prometheus_port=
	done
	show_log prometheus
	bail_out 'Prometheus does not start'
}
prometheus_is_ready() { curl -sf -m 2 "$prometheus_url/-/ready"; }
prometheus_is_settled() { ! is_running prometheus || prometheus_is_ready; }
# instant QUERY: the first value, "" when there is none.
instant() { curl -s -m 30 "$prometheus_url/api/v1/query" --data-urlencode "query=$1" | jq -r '.data.result[0].value[1] // ""'; }
has_value() { [ -n "$(instant "$1")" ]; }

# ---- the API server ----

# fake_start ARGUMENT..: the fake API server; sets api_url, writes $work/kubeconfig.
fake_start() {
	: >"$work/apiserver.log" # the output of one before it must not be taken for this one's
	start apiserver "$out/fake-apiserver" --write-kubeconfig "$work/kubeconfig" "$@"
	wait_for 10 grep -q '^listening on' "$work/apiserver.log" || { show_log apiserver; bail_out 'the fake API server does not start'; }
	api_url=$(sed -n 's/^listening on //p' "$work/apiserver.log" | tail -n 1)
}
# fake_fail 'next=N&status=S&retryAfter=S&delayMs=MS&match=TEXT'
fake_fail() { curl -sf -m 30 "$api_url/_fake/fail?$1" >/dev/null; }
fake_count() { curl -sf -m 30 "$api_url/_fake/requests" | jq -r ".$1"; }
# replicas NAME, version NAME: of the object in whatever namespace.
replicas() { curl -sf -m 30 "$api_url/_fake/objects" | jq -r ".[] | select(.name == \"$1\") | .replicas"; }
version() { curl -sf -m 30 "$api_url/_fake/objects" | jq -r ".[] | select(.name == \"$1\") | .resourceVersion"; }
has_replicas() { [ "$(replicas "$1")" = "$2" ]; }

# ---- policies ----

# put FILE: from stdin, whole at any moment. For what a controller is watching: it would read half of it now and then.
put() { cat >"$work/put.next" && mv "$work/put.next" "$1"; }

# policy NAME QUERY [SPEC_LINE..]: a policy for Deployment NAME in namespace "default" whose query gives the replicas
# themselves, at 0.2 s. A spec line replaces the default one that begins with the same key.
policy() {
	local name=$1 query=$2 line key; shift 2
	local -A spec=([scaleTargetRef]="{name: $name}" [minReplicas]=1 [maxReplicas]=20 [interval]=200ms
		[signals]="[{name: want, query: '$query', target: {type: Replicas}}]"
		[behavior]='{scaleDown: {stabilizationWindowSeconds: 0}}')
	for line; do spec[${line%%:*}]=${line#*: }; done
	printf 'apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: %s}\nspec:\n' "$name"
	for key in scaleTargetRef minReplicas maxReplicas interval signals behavior; do printf '  %s: %s\n' "$key" "${spec[$key]}"; done
	for key in "${!spec[@]}"; do
		case $key in scaleTargetRef | minReplicas | maxReplicas | interval | signals | behavior) ;; *) printf '  %s: %s\n' "$key" "${spec[$key]}" ;; esac
	done
}

# ---- the controller ----

# controller_start NAME ARGUMENT..: gpuscale run, sets controller_url. Prometheus and kubeconfig are those of $work.
controller_start() {
	local name=$1; shift
	free_port controller_port
	controller_url=http://127.0.0.1:$controller_port
	start "$name" "$gpuscale" run --prometheus "$prometheus_url" --kubeconfig "$work/kubeconfig" --listen "127.0.0.1:$controller_port" "$@"
	if ! wait_for 10 controller_is_settled "$name" || ! is_running "$name"; then
		show_log "$name"
		bail_out 'the controller does not serve'
	fi
}
controller_is_settled() { ! is_running "$1" || curl -sf -m 2 "$controller_url/livez"; }
decisions() { curl -s -m 30 "$controller_url/debug/decisions"; }
# decision NAME FILTER: a jq filter on the last decision about policy NAME.
decision() { decisions | jq -r ".items[] | select(.name == \"$1\") | $2"; }
# decided NAME ACTION REASON
decided() { [ "$(decision "$1" '"\(.action) \(.reason)"' 2>/dev/null)" = "$2 $3" ]; }
has_error() { decisions | jq -e --arg name "$1" --arg text "$2" '.errors[] | select(.name == $name) | .error | contains($text)'; }
metric() { curl -s -m 30 "$controller_url/metrics" | sed -n "s|^$1 ||p"; }
metric_is() { [ "$(metric "$1")" = "$2" ]; }
