# SPDX-License-Identifier: Apache-2.0
# The driver of `make demo`.
DEMO_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard test/demo/*.c))
$(OUT)/demo: $(DEMO_OBJECTS) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
TEST_HELPERS += $(OUT)/demo
