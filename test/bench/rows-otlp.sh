# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, out, work, bench: set by run-bench
# Rows of run-bench about OTLP: the memory that pushes add, to an endpoint that answers, one that is busy (503) and one that
# accepts connections and never answers.

readonly OTLP_WARM_UP_S=12 OTLP_SAMPLES=12 OTLP_ROUNDS=3

otlp_endpoint_up() { # sets otlp_port: the modes are paths
	is_running otlp && return
	cat >"$work/otlp.py" <<-'PY'
		import http.server, sys, time
		class Handler(http.server.BaseHTTPRequestHandler):
		    protocol_version = 'HTTP/1.1'
		    def do_POST(self):
		        if self.path.startswith('/hang'):
		            time.sleep(3600)
		        self.rfile.read(int(self.headers['Content-Length']))
		        self.send_response(503 if self.path.startswith('/busy') else 200)
		        self.send_header('Content-Length', '2')
		        self.end_headers()
		        self.wfile.write(b'{}')
		    def log_message(self, *arguments):
		        pass
		http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
	PY
	free_port otlp_port
	start otlp python3 "$work/otlp.py" "$otlp_port"
}
# highest_kib PID: the highest resident memory in some seconds after the warm-up.
highest_kib() {
	local i
	sleep "$OTLP_WARM_UP_S"
	for ((i = 0; i < OTLP_SAMPLES; i++)); do
		awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
		sleep 1
	done | sort -n | tail -n 1
}
# otlp_row ID START..: START NAME [FLAG..] starts the program. Two processes that do the same can differ by 0.1 MiB and more, so each
# mode is measured in several rounds, and the medians are compared.
otlp_row() {
	local id=$1 mode round kib counts added worst=-1000000 notes=()
	local -A samples=()
	shift
	otlp_endpoint_up
	for ((round = 0; round < OTLP_ROUNDS; round++)); do
		for mode in off answers busy hang; do
			if [ $mode = off ]; then
				"$@" off
			else
				"$@" "$mode" --otlp-endpoint "http://127.0.0.1:$otlp_port/$mode"
			fi
			samples[$mode]+="$(highest_kib "$(pid_of "$mode")")"$'\n'
			counts=$(curl -sf "http://127.0.0.1:$otlp_metrics_port/metrics" | grep -E '^gpuscale_exporter_otlp_[a-z_]*_total' | tr '\n' ' ')
			samples[$mode-counts]=$counts
			stop "$mode"
		done
	done
	for mode in answers busy hang; do
		kib=$(median <<<"${samples[$mode]%$'\n'}")
		added=$((kib - $(median <<<"${samples[off]%$'\n'}")))
		notes+=("endpoint: $mode: $added KiB more; ${samples[$mode]//$'\n'/ }against ${samples[off]//$'\n'/ }KiB; ${samples[$mode-counts]}")
		[ "$added" -le "$worst" ] || worst=$added
	done
	row "$id" "$worst" "${notes[@]}"
}
otlp_exporter() { # NAME FLAG..
	local name=$1 chosen
	shift
	free_port chosen
	otlp_metrics_port=$chosen
	start "$name" "$out/gpuscale-exporter" --backend mock --mock-script "$root/examples/mock/eight-gpus.yaml" \
		--listen "127.0.0.1:$chosen" --interval 1s ${1:+--otlp-interval 5s} "$@"
	wait_for 10 curl -sfo /dev/null "http://127.0.0.1:$chosen/-/ready" >&2 || die 'the exporter did not get ready'
}
measure_otlp_exporter_rss_kib() {
	need "$out/gpuscale-exporter"
	otlp_row otlp_exporter_rss_kib otlp_exporter
}
