# SPDX-License-Identifier: Apache-2.0
# The scripted Prometheus of the golden tests.
$(OUT)/fake-prometheus: $(OUT)/obj/test/fake/prometheus_main.o $(call archive_of,promql) $(call archive_of,base)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
TEST_HELPERS += $(OUT)/fake-prometheus
