# SPDX-License-Identifier: Apache-2.0
# The real Kubernetes programs, before the tests that use them: the first time this takes minutes, which is no test's time.
e2e-now: kube-apiserver-program
e2e-cluster-now: kube-programs

kube-apiserver-program:
	@scripts/kube/build kube-apiserver >/dev/null || echo 'no kube-apiserver: tests that need it will be skipped' >&2
kube-programs:
	@scripts/kube/build kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy >/dev/null || \
	  echo 'no Kubernetes programs: tests that need them will be skipped' >&2
.PHONY: kube-apiserver-program kube-programs
