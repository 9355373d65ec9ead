# SPDX-License-Identifier: Apache-2.0
# The fake API server: test/fake/apiserver*.c, as a program and for the unit tests that talk to it.
FAKE_APISERVER_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out %_main.c,$(wildcard test/fake/apiserver*.c)))

$(OUT)/fake-apiserver: $(OUT)/obj/test/fake/apiserver_main.o $(FAKE_APISERVER_OBJECTS) $(call archive_of,base)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(OUT)/test/test_k8s_client $(OUT)/test/test_k8s_scale: $(FAKE_APISERVER_OBJECTS)

TEST_HELPERS += $(OUT)/fake-apiserver

fake-apiserver: $(OUT)/fake-apiserver ## build the fake API server of the tests
.PHONY: fake-apiserver
