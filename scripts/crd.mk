# SPDX-License-Identifier: Apache-2.0
##@ develop
crd: $(OUT)/gpuscale ## write manifests/base/crd.yaml from the policy table
	@scripts/crd --update
.PHONY: crd
