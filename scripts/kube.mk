# SPDX-License-Identifier: Apache-2.0
# Builds the real Kubernetes programs before the tests that use them, because the first build takes minutes, which must
# not count as a test's. Tests then find the programs, or skip with the reason why they are missing.
# (Not `tee /dev/stderr`: where stderr is a file, that empties it.)
kube_built    = said=$$(scripts/kube/build $(1) 2>&1 >/dev/null | { while IFS= read -r line; do echo "$$line" >&2; last=$$line; done; echo "$$last"; }); \
                echo "Kubernetes $$(scripts/kube/build --version)"; \
                GPUSCALE_KUBE_BUILD="never: $$said"
# CRDs of other projects: seconds. Where they are unavailable, the reason is printed here, and the tests report what
# they omit.
with_kube     = scripts/kube/definitions >/dev/null || true; $(call kube_built,kube-apiserver kube-controller-manager kubectl etcd helm)
with_kube_all = $(call kube_built,kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl etcd helm)

##@ develop
kube: ## build the Kubernetes programs that e2e and e2e-cluster use; minutes, the first time
	@scripts/kube/prepare
.PHONY: kube

# Most of the end-to-end tests mostly wait, each on ports and in a folder of its own.
KUBE_JOBS ?= 2
