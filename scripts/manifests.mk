# SPDX-License-Identifier: Apache-2.0
##@ package
manifests: ## render all that can be installed into build/manifests, and check it without a cluster
	@scripts/deps --check build test e2e >/dev/null || scripts/deps build test e2e
	@+$(MAKE) --no-print-directory manifests-now
manifests-now: $(OUT)/gpuscale
	@scripts/manifests $(BUILD)/manifests
.PHONY: manifests manifests-now
