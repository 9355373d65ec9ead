# SPDX-License-Identifier: Apache-2.0
# test/e2e/run-crd compares what policy files mean with what the API server makes of them.
$(OUT)/policy-dump: $(OUT)/obj/test/admission/policy_dump.o $(CONTROLLER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
TEST_HELPERS += $(OUT)/policy-dump
