# SPDX-License-Identifier: Apache-2.0
# gpuscale. `make help` lists the targets. A new .c file needs no line here: folders are globbed.
#   VARIANT=release|debug|asan|ubsan|tsan|fuzz|coverage   one tree each under build/
#   V=1 shows commands; CC CFLAGS CPPFLAGS LDFLAGS DESTDIR PREFIX WERROR are honoured.

VERSION := 0.1.0
VARIANT ?= release
BUILD   ?= build
OUT     := $(BUILD)/$(VARIANT)
PREFIX  ?= /usr/local
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' '$(1)' '$(2)')
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.SECONDARY:

PKG_CONFIG ?= pkg-config
PACKAGES   := libcurl libcjson yaml-0.1 openssl libevent libevent_openssl libevent_pthreads zlib
ifeq ($(filter help clean distclean deps check-deps,$(MAKECMDGOALS)),)
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
DEP_LIBS   := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)
endif

CC ?= cc
ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(VARIANT)),clang-14,gcc)
endif
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wformat=2 -Wvla -Wundef -Wcast-qual -Wwrite-strings -Wno-unused-parameter -Wno-format-truncation $(if $(WERROR),-Werror)
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
SANITIZE_COMMON := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
FLAGS_release  := -O2 -g $(HARDEN)
FLAGS_debug    := -O0 -g3
FLAGS_asan     := $(SANITIZE_COMMON) -fsanitize=address,undefined
FLAGS_ubsan    := $(SANITIZE_COMMON) -fsanitize=undefined
FLAGS_tsan     := $(SANITIZE_COMMON) -fsanitize=thread
FLAGS_fuzz     := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
FLAGS_coverage := -O0 -g --coverage
LINK_release   := -pie -Wl,-z,relro,-z,now -Wl,--as-needed
ALL_CFLAGS  = -std=c17 $(WARN) $(FLAGS_$(VARIANT)) $(CFLAGS)
ALL_CPPFLAGS = -I. -D_GNU_SOURCE -DGPUSCALE_VERSION='"$(VERSION)"' $(DEP_CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = $(filter -fsanitize% --coverage,$(subst fuzzer-no-link$(comma),,$(FLAGS_$(VARIANT)))) $(LINK_$(VARIANT)) $(LDFLAGS)
comma := ,
LIBS        = $(DEP_LIBS) -lm -ldl -lpthread

# ---- what is built: a folder is a static library, a main.c is a program ----
LIBRARIES   := controller exporter k8s promql policies base
sources_of   = $(filter-out $(1)/main.c,$(wildcard $(1)/*.c))
archive_of   = $(OUT)/lib/lib$(1).a
ARCHIVES    := $(foreach l,$(LIBRARIES),$(call archive_of,$(l)))
CONTROLLER_LIBS := $(foreach l,controller k8s promql policies base,$(call archive_of,$(l)))
EXPORTER_LIBS   := $(foreach l,exporter base,$(call archive_of,$(l)))
PROGRAMS    := $(if $(wildcard controller/main.c),$(OUT)/gpuscale) $(if $(wildcard exporter/main.c),$(OUT)/gpuscale-exporter)

define archive_rule
$(call archive_of,$(1)): $(patsubst %.c,$(OUT)/obj/%.o,$(call sources_of,$(1)))
	$$(call say,AR,$$@)
	$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach l,$(LIBRARIES),$(eval $(call archive_rule,$(l))))

$(OUT)/obj/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(shell test -d $(OUT)/obj && find $(OUT)/obj -name '*.d')

$(OUT)/gpuscale: $(OUT)/obj/controller/main.o $(CONTROLLER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(OUT)/gpuscale-exporter: $(OUT)/obj/exporter/main.o $(EXPORTER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

all: $(PROGRAMS) ## build gpuscale and gpuscale-exporter

# ---- tests: test/unit/test_X.c is one cmocka program, test/fake/X.c (no test_ prefix) a helper program ----
TEST_SUPPORT := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard test/support/*.c))
UNIT_TESTS   := $(patsubst test/unit/%.c,$(OUT)/test/%,$(wildcard test/unit/test_*.c))
$(OUT)/test/test_%: $(OUT)/obj/test/unit/test_%.o $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# ---- fuzzing: test/fuzz/fuzz_X.c defines LLVMFuzzerTestOneInput; corpus in test/fuzz/corpus/X ----
FUZZERS      := $(patsubst test/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_ENGINE   = $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer,$(OUT)/obj/test/fuzz/replay.o)
$(OUT)/fuzz/fuzz_%: $(OUT)/obj/test/fuzz/fuzz_%.o $(if $(filter fuzz,$(VARIANT)),,$(OUT)/obj/test/fuzz/replay.o) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) $(LIBS)

-include test/*.mk scripts/*.mk

purity: $(call archive_of,policies) ## prove the decision core pure: no I/O, no clock, no allocation
	$(Q)scripts/check-purity $(OUT)/obj/policies

format: ## clang-format all C files in place
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 -i
format-check: ## fail when a C file is not formatted
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 --dry-run -Werror

clean: ## remove this variant's build output
	rm -rf $(OUT)
distclean: ## remove everything that was built
	rm -rf $(BUILD)

help: ## list the targets
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | sort -u | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: all purity format format-check clean distclean help
