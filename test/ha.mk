# SPDX-License-Identifier: Apache-2.0
# For test/e2e/run-ha: a process that owns shards and writes all the time, and a wall clock that can be set.
$(OUT)/ha-process: $(OUT)/obj/test/ha/ha_process.o $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(OUT)/set-clock.so: test/ha/set_clock.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -fPIC -shared -o $@ $< -ldl
TEST_HELPERS += $(OUT)/ha-process $(OUT)/set-clock.so

$(OUT)/test/test_k8s_lease $(OUT)/test/test_k8s_lease_release: \
                            $(OUT)/test/%: $(OUT)/obj/test/unit/%.o $(OUT)/obj/test/fake/k8s_harness.o $(OUT)/obj/test/fake/lease_holder.o \
                            $(FAKE_APISERVER_OBJECTS) $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

failover: ## kill the leader a hundred times (KILLS=N) on a real API server: no PATCH lost, none done twice (10 min)
	@+$(MAKE) --no-print-directory failover-now
failover-now: $(OUT)/gpuscale
	@KILLS=$${KILLS:-100} $(call run_tests,-t 1800 test/e2e/run-failover)
.PHONY: failover failover-now
