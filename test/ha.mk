# SPDX-License-Identifier: Apache-2.0
# A process that owns shards and writes all the time, for test/e2e/run-ha.
HA_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard test/ha/*.c))
$(OUT)/ha-process: $(HA_OBJECTS) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
TEST_HELPERS += $(OUT)/ha-process
