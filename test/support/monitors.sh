# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # root comes from lib.sh
# monitors.sh: how the Prometheus operator scrapes with the monitors of manifests/components, for tests that write the
# configuration of Prometheus themselves. Source it after lib.sh.

# honors_labels MONITOR: prints the value of honor_labels that the operator writes for manifests/components/MONITOR
# (servicemonitor, podmonitor). Kustomize copies that file unchanged, and the chart renders the same (test/e2e/run-chart).
honors_labels() {
	local file=$root/manifests/components/$1/$1.yaml
	[ -f "$file" ] || bail_out "$file is missing"
	if grep -q '^    honorLabels: true$' "$file"; then echo true; else echo false; fi
}
# The labels that the operator gives the targets, as flow mappings of YAML; both are JSON, too.
# shellcheck disable=SC2034 # for callers
controller_target='{"namespace": "gpuscale-system", "pod": "gpuscale-7c9f5-x7k2p", "container": "gpuscale", "service": "gpuscale", "endpoint": "http"}'
# shellcheck disable=SC2034 # for callers
exporter_target='{"namespace": "gpuscale-exporter", "pod": "gpuscale-exporter-b8x2q", "container": "exporter", "endpoint": "metrics", "node": "node1"}'
