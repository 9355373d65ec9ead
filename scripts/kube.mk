# SPDX-License-Identifier: Apache-2.0
# The real Kubernetes programs, before the tests that use them: the first time this takes minutes, which is no test's time.
# KUBE_VERSION=1.20 or 1.34 takes that version alone. Tests then find the programs, or skip with the reason why there are none.
KUBE_VERSIONS ?= $(or $(KUBE_VERSION),1.20 1.34)
kube_built  = said=$$(scripts/kube/build $(KUBE_VERSION) $(1) 2>&1 >/dev/null | tee /dev/stderr | tail -n 1); \
              echo "Kubernetes $$(scripts/kube/build --version $(KUBE_VERSION))"; \
              KUBE_VERSION=$(KUBE_VERSION) GPUSCALE_KUBE_BUILD="never: $$said"
kube_with   = $(if $(filter 1.20%,$(KUBE_VERSION)),,kubectl etcd helm)
# Definitions of other programs: seconds. Where they cannot be had the reason is shown here, and the tests say what they leave out.
kube_kinds  = $(if $(filter 1.20%,$(KUBE_VERSION)),,scripts/kube/definitions >/dev/null || true;)
with_kube     = $(kube_kinds) $(call kube_built,kube-apiserver $(kube_with))
with_kube_all = $(call kube_built,kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy $(kube_with))
