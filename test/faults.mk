# SPDX-License-Identifier: Apache-2.0
# Faults at every place where the controller calls the API server: all of test/faults, some of which `make test` runs too.
faults: $(PROGRAMS) $(TEST_HELPERS) ## every call of the API server meets every kind of fault (minutes)
	@$(call run_tests,-j 1 -t 900 $(sort $(wildcard test/faults/run-*)))
.PHONY: faults
