# SPDX-License-Identifier: Apache-2.0
# Property laws: test/prop/prop_X.c is one cmocka program that walks random policies and traces; prop.c is what they share.
#   PROP_SEED=N repeats a run (each program prints its seed), PROP_TICKS=N sets its length, PROP_LAW=NAME runs one law.
# run-mutants then breaks the engine on purpose, one line of test/prop/mutants at a time: its law must notice.
PROP_TESTS  := $(patsubst test/prop/%.c,$(OUT)/prop/%,$(wildcard test/prop/prop_*.c))
PROP_SHARED := $(OUT)/obj/test/prop/prop.o
$(OUT)/prop/prop_%: $(OUT)/obj/test/prop/prop_%.o $(PROP_SHARED) $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

prop: $(PROP_TESTS) ## check laws of the engine on random policies and traces (PROP_SEED=N repeats a run), and that each can fail
	@test/run -t 1800 $(PROP_TESTS) test/prop/run-mutants
.PHONY: prop
