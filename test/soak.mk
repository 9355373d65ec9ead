# SPDX-License-Identifier: Apache-2.0
# The long form of what `make test` does with a tenth of the samples.
SOAK_SAMPLES ?= 10000000

soak: ## let 10 million samples through the exporter in virtual time: memory must stay flat (SOAK_SAMPLES=N)
	@+$(MAKE) --no-print-directory soak-now
soak-now: $(OUT)/test/test_exporter_soak
	@SOAK_SAMPLES=$(SOAK_SAMPLES) $(call run_tests,-t 1800 $^)
.PHONY: soak soak-now
