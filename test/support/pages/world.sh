# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # root, out and work come from lib.sh, prometheus_port from loop.sh
# world.sh: where the commands of pages run: a fresh clone, the programs in PATH, and a Prometheus with a few hours of metrics.
# After lib.sh and loop.sh.
pages_dir=$root/test/support/pages

# clone_start: clones the repository into $work/clone, with what is not committed yet, and puts the programs into PATH.
clone_start() {
	local file
	git clone -q "$root" "$work/clone" || bail_out 'git cannot clone'
	while IFS= read -r -d '' file; do
		if [ -e "$root/$file" ]; then (cd "$root" && cp -P --parents "$file" "$work/clone"); else rm -f "$work/clone/$file"; fi
	done < <(cd "$root" && git diff -z --name-only HEAD && git ls-files -zo --exclude-standard)
	git -C "$work/clone" add -A
	git -C "$work/clone" -c user.name=test -c user.email=test@localhost commit -q --allow-empty -m 'what is not committed yet'
	mkdir "$work/bin" "$work/home"
	ln -s "$out/gpuscale" "$out/gpuscale-exporter" "$work/bin/"
	ln -s "$out/gpuscale" "$work/bin/kubectl-gpuscale"
	export PATH=$work/bin:$PATH HOME=$work/home
}
# metrics_start ADDRESS HOURS: serves the metrics of test/support/pages/metrics.py and starts a Prometheus that scrapes them and
# has HOURS of them; both listen on the address.
metrics_start() {
	local metrics_port=
	free_port metrics_port
	start metrics python3 "$pages_dir/metrics.py" serve "$1" "$metrics_port"
	wait_for 20 curl -sf -m 2 -o /dev/null "http://$1:$metrics_port/metrics" || bail_out 'the metrics are not served'
	prometheus_config "[{job_name: world, scrape_interval: 2s, honor_labels: true, static_configs: [{targets: ['$1:$metrics_port']}]}]"
	python3 "$pages_dir/metrics.py" history "$2" 30 >"$work/history.om"
	prometheus_start "$work/history.om"
	wait_for 60 has_rates || bail_out 'Prometheus does not scrape'
}
has_rates() { [ "$(instant 'count_over_time(vllm:num_requests_waiting{pod="llm-0"}[15s]) > 3')" ]; }
# replacement FROM TO: what a page says, and what it is here.
replacement() { printf '%s\t%s\n' "$1" "$2" >>"$work/replacements"; }
# run_blocks laptop|cluster PAGE..: runs the blocks of the pages; their results are results of this script.
run_blocks() {
	local status
	(cd "$root" && TAP_FIRST=$TAP_COUNT python3 "$pages_dir/blocks.py" run "$1" "$work/clone" "$work" "$work/replacements" "${@:2}") >"$work/blocks.tap" 2>"$work/blocks.err"
	status=$?
	cat "$work/blocks.tap"
	TAP_COUNT=$((TAP_COUNT + $(grep -cE '^(not )?ok ' "$work/blocks.tap"))) TAP_FAILED=$((TAP_FAILED + $(grep -c '^not ok ' "$work/blocks.tap")))
	is 'every page was read' "$status$(<"$work/blocks.err")" 0
}
