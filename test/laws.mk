# SPDX-License-Identifier: Apache-2.0
# The laws of the engine (test/support/laws.h) are part of its fuzz target, too.
$(OUT)/fuzz/fuzz_decide: $(OUT)/obj/test/support/laws.o
