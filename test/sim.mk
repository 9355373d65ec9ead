# SPDX-License-Identifier: Apache-2.0
# The closed-loop simulator around `gpuscale step`.
SIM_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard test/sim/*.c))
$(OUT)/sim: $(SIM_OBJECTS) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
TEST_HELPERS += $(OUT)/sim

sim-table: $(OUT)/gpuscale $(OUT)/sim ## the table of docs/llm-demand.md: the shipped policy against its peers
	@test/sim/run-table --update
.PHONY: sim-table
