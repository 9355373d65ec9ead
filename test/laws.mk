# SPDX-License-Identifier: Apache-2.0
# The fuzz target of the engine judges by the laws of the property tests.
$(OUT)/fuzz/fuzz_decide: $(OUT)/obj/test/support/laws.o $(OUT)/obj/test/support/any_policy.o
# Their objects come after the archives: once more what they use of them.
$(OUT)/fuzz/fuzz_decide: private LIBS := $(OUT)/lib/libpolicies.a $(LIBS)
