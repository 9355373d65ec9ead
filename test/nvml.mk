# SPDX-License-Identifier: Apache-2.0
# A scripted NVML for the exporter's tests: a whole one, one as old drivers have it, and one that is none.
FAKE_NVML_SOURCES := $(wildcard test/fake/nvml/*.c)
FAKE_NVML_DIRS := $(OUT)/fake-nvml $(OUT)/fake-nvml-old $(OUT)/fake-nvml-empty
FAKE_NVML      := $(FAKE_NVML_DIRS:%=%/libnvidia-ml.so.1)
TEST_HELPERS   += $(FAKE_NVML)

# The library is loaded into a program that brings the sanitizer's runtime along: no -z defs here.
define fake_nvml_rule
$(1)/libnvidia-ml.so.1: $(FAKE_NVML_SOURCES) test/fake/nvml/script.h exporter/nvml_api.h $(2)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(filter-out -fPIE,$$(ALL_CFLAGS)) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 \
		$(if $(2),-Wl$(comma)--version-script$(comma)$(2)) -o $$@ $(FAKE_NVML_SOURCES)
endef
$(eval $(call fake_nvml_rule,$(OUT)/fake-nvml,))
$(eval $(call fake_nvml_rule,$(OUT)/fake-nvml-old,test/fake/nvml/old.map))
$(eval $(call fake_nvml_rule,$(OUT)/fake-nvml-empty,test/fake/nvml/empty.map))

# The same for DCGM, which shares the script's reader.
FAKE_DCGM := $(OUT)/fake-dcgm/libdcgm.so.4
FAKE_DCGM_SOURCES := test/fake/dcgm/fake_dcgm.c test/fake/nvml/script.c
TEST_HELPERS += $(FAKE_DCGM)
$(FAKE_DCGM): $(FAKE_DCGM_SOURCES) test/fake/nvml/script.h exporter/dcgm_api.h exporter/families.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(filter-out -fPIE,$(ALL_CFLAGS)) -fPIC -shared -Wl,-soname,libdcgm.so.4 -o $@ $(FAKE_DCGM_SOURCES)
$(OUT)/test/test_exporter_dcgm: | $(FAKE_DCGM) $(FAKE_NVML)

$(OUT)/test/test_exporter_nvml $(OUT)/test/test_exporter_nvml_devices $(OUT)/test/test_exporter_gpm $(OUT)/test/test_exporter_amdgpu $(OUT)/test/test_exporter_sampler: | $(FAKE_NVML)

fake-nvml: $(FAKE_NVML) ## build the scripted NVML of the exporter's tests
.PHONY: fake-nvml
