# SPDX-License-Identifier: Apache-2.0
# The real Kubernetes programs, before the tests that use them: the first time this takes minutes, which is no test's time.
# KUBE_VERSION=1.20 or 1.34 takes that version alone. Tests then find the programs, or skip with the reason why there are none.
KUBE_VERSIONS ?= $(or $(KUBE_VERSION),1.20 1.34)
# (Not `tee /dev/stderr`: where stderr is a file, that empties it.)
kube_built  = said=$$(scripts/kube/build $(KUBE_VERSION) $(1) 2>&1 >/dev/null | { while IFS= read -r line; do echo "$$line" >&2; last=$$line; done; echo "$$last"; }); \
              echo "Kubernetes $$(scripts/kube/build --version $(KUBE_VERSION))"; \
              KUBE_VERSION=$(KUBE_VERSION) GPUSCALE_KUBE_BUILD="never: $$said"
kube_with   = helm $(if $(filter 1.20%,$(KUBE_VERSION)),,kubectl etcd)
# Definitions of other programs: seconds. Where they cannot be had the reason is shown here, and the tests say what they leave out.
kube_kinds  = $(if $(filter 1.20%,$(KUBE_VERSION)),,scripts/kube/definitions >/dev/null || true;)
with_kube     = $(kube_kinds) $(call kube_built,kube-apiserver kube-controller-manager $(kube_with))
with_kube_all = $(call kube_built,kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy $(kube_with))

kube: ## build the Kubernetes programs that e2e and e2e-cluster use; minutes, the first time
	@scripts/kube/prepare $(KUBE_VERSIONS)
.PHONY: kube

# A script whose header says `# Kubernetes: none` (there is none in it) or `# Kubernetes: any` (one version shows it all) is not run
# again: KUBE_AFTER names the version that it has run with. If that one could not be had, it runs now.
has_run  = $(if $(KUBE_AFTER),$(if $(shell GPUSCALE_KUBE_BUILD=never scripts/kube/build $(KUBE_AFTER) kube-apiserver 2>/dev/null),$(shell grep -lxE '\# Kubernetes: (none|any)' $(1))))
to_run   = $(filter-out $(call has_run,$(1)),$(1))
told_run = $(if $(call has_run,$(1)),echo "not again after $(KUBE_AFTER): $(call has_run,$(1))";)
# Most of them wait most of the time, each on ports and in a folder of its own.
KUBE_JOBS ?= 2
