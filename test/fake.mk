# SPDX-License-Identifier: Apache-2.0
# The fake API server: test/fake/apiserver*.c, as a program and for the unit tests that talk to it.
FAKE_APISERVER_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out %_main.c,$(wildcard test/fake/apiserver*.c)))

$(OUT)/fake-apiserver: $(OUT)/obj/test/fake/apiserver_main.o $(FAKE_APISERVER_OBJECTS) $(call archive_of,base)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Unit tests that have the fake in their own loop (k8s_harness.c; target_fixture.c on top of it).
FAKE_APISERVER_TESTS := $(addprefix $(OUT)/test/test_k8s_,client call scale scalers) $(addprefix $(OUT)/test/test_,policy_status policy_watch restore_replicas target_store target_hard_cases pod_store)
$(FAKE_APISERVER_TESTS): $(OUT)/test/%: $(OUT)/obj/test/unit/%.o $(OUT)/obj/test/fake/k8s_harness.o \
                         $(OUT)/obj/test/fake/target_fixture.o $(FAKE_APISERVER_OBJECTS) $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# The contract suite: test/contract/run-fake and run-real run it.
CONTRACT_TESTS := $(OUT)/test/test_contract $(OUT)/test/test_contract_objects $(OUT)/test/test_contract_watch
$(CONTRACT_TESTS): $(OUT)/test/%: $(OUT)/obj/test/contract/%.o $(OUT)/obj/test/contract/contract_world.o \
                   $(OUT)/obj/test/fake/k8s_harness.o $(FAKE_APISERVER_OBJECTS) $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

TEST_HELPERS += $(CONTRACT_TESTS)
TEST_HELPERS += $(OUT)/fake-apiserver

fake-apiserver: $(OUT)/fake-apiserver ## build the fake API server of the tests
.PHONY: fake-apiserver
