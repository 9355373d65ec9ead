# SPDX-License-Identifier: Apache-2.0
# gpuscale. `make help` lists the targets. A new .c file needs no line here: folders are globbed.
#   VARIANT=release|debug|asan|ubsan|tsan|fuzz|coverage   one tree each under build/
#   ARCH=arm64                                         on another machine: a cross compiler and Debian's libraries; tests run
#                                                      under qemu-user. Everything goes to build/arm64
#   V=1 shows commands; CC CFLAGS CPPFLAGS LDFLAGS DESTDIR PREFIX are honoured; WERROR=1 makes warnings errors.
#   make uses every core by default (-jN changes that). More rules: test/tests.mk and scripts/*.mk.

VERSION := 0.2.0
VARIANT ?= release
BUILD   ?= build
ifeq ($(ARCH),arm64)
override BUILD := $(patsubst %/arm64,%,$(BUILD))/arm64
SYSROOT := $(shell scripts/debian-root arm64)
$(if $(SYSROOT),,$(error ARCH=arm64 needs scripts/debian-root arm64 (above)))
CC      := aarch64-linux-gnu-gcc --sysroot=$(SYSROOT)
PKG_CONFIG := env PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/aarch64-linux-gnu/pkgconfig pkg-config
TEST_FLAGS ?= -j $(shell nproc) -w 'qemu-aarch64-static -L $(SYSROOT)'
export STRIP := aarch64-linux-gnu-strip
endif
OUT     := $(BUILD)/$(VARIANT)
PREFIX  ?= /usr/local
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' '$(1)' '$(2)')
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
# Several goals are made one after the other, as they are named: most are a make of their own, on the same files.
ifneq ($(word 2,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
endif
.DEFAULT_GOAL := all
comma := ,
.SECONDARY:

PKG_CONFIG ?= pkg-config
PACKAGES   := libcurl libcjson yaml-0.1 openssl libevent libevent_openssl libevent_pthreads libnghttp2 zlib
ifeq ($(filter help clean distclean deps,$(MAKECMDGOALS)),)
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
DEP_LIBS   := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)
endif

CC ?= cc
ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(VARIANT)),$(firstword $(shell command -v clang-14 clang) clang),gcc)
endif
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wformat=2 -Wvla -Wundef -Wcast-qual -Wwrite-strings -Wno-unused-parameter $(if $(findstring clang,$(CC)),-Wno-missing-field-initializers,-Wno-format-truncation) $(if $(WERROR),-Werror)
# Flags that only some compilers and machines support: x86's control-flow enforcement (CET), arm64's pointer
# authentication.
MACHINE   := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
supported  = $(shell $(CC) -Werror $(1) -x c -c -o /dev/null /dev/null 2>/dev/null && printf '%s' '$(1)')
CFI_x86_64  := -fcf-protection=full
CFI_aarch64 := -mbranch-protection=standard
ifeq ($(VARIANT),release)
HARDEN_MACHINE := $(call supported,-fstack-clash-protection) $(call supported,$(CFI_$(MACHINE)))
# Debian's start files have no CET note, and the linker drops the note of the program when one object lacks it. The
# start files only call and return, so a shadow stack is safe with them; indirect-branch tracking needs start files
# built for it.
LINK_MACHINE    = $(if $(findstring -fcf-protection,$(HARDEN_MACHINE)),-Wl$(comma)-z$(comma)shstk)
endif
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE $(HARDEN_MACHINE)
SANITIZE_COMMON := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
# A debugger unwinds by .debug_frame; the tables for C++ exceptions in the stripped program have no reader.
# Equal sources give equal programs, wherever they are built.
FLAGS_release  := -O2 -g -ffile-prefix-map=$(CURDIR)=. -fno-asynchronous-unwind-tables $(HARDEN)
FLAGS_debug    := -O0 -g3
FLAGS_asan     := $(SANITIZE_COMMON) -fsanitize=address,undefined
FLAGS_ubsan    := $(SANITIZE_COMMON) -fsanitize=undefined
FLAGS_tsan     := $(SANITIZE_COMMON) -fsanitize=thread
FLAGS_fuzz     := $(SANITIZE_COMMON) -fsanitize=fuzzer-no-link,address,undefined
FLAGS_coverage := -O0 -g --coverage -fprofile-update=atomic
LINK_release   := -pie -Wl,-z,relro,-z,now,-z,noexecstack $(LINK_MACHINE) -Wl,--as-needed
ALL_CFLAGS  = -std=c17 $(WARN) $(FLAGS_$(VARIANT)) $(CFLAGS)
ALL_CPPFLAGS = -I. -D_GNU_SOURCE -DGPUSCALE_VERSION='"$(VERSION)"' $(DEP_CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = $(filter -fsanitize% --coverage,$(subst fuzzer-no-link$(comma),,$(FLAGS_$(VARIANT)))) $(LINK_$(VARIANT)) $(LDFLAGS)
LIBS        = $(DEP_LIBS) -lm -ldl -lpthread

# ---- what is built: a folder is a static library, a main.c is a program ----
LIBRARIES   := cli controller exporter insight remedy replay runtime k8s policies promql base
sources_of   = $(filter-out cli/main.c exporter/cmd/exporter_main.c,$(wildcard $(1)/*.c $(1)/*/*.c))
archive_of   = $(OUT)/lib/lib$(1).a
ARCHIVES    := $(foreach l,$(LIBRARIES),$(call archive_of,$(l)))
CONTROLLER_LIBS := $(foreach l,$(filter-out exporter,$(LIBRARIES)),$(call archive_of,$(l)))
EXPORTER_LIBS   := $(foreach l,exporter base,$(call archive_of,$(l)))
PROGRAMS    := $(if $(wildcard cli/main.c),$(OUT)/gpuscale) $(if $(wildcard exporter/cmd/exporter_main.c),$(OUT)/gpuscale-exporter)

# The folder itself is a prerequisite: its time changes when a file goes, and the archive must lose it too.
define archive_rule
$(call archive_of,$(1)): $(patsubst %.c,$(OUT)/obj/%.o,$(call sources_of,$(1))) $(wildcard $(1)/ $(1)/*/)
	$$(call say,AR,$$@)
	$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach l,$(LIBRARIES),$(eval $(call archive_rule,$(l))))

# Objects wait for the libraries to be there, and are compiled again when compiler or flags change (not for -Werror).
$(OUT)/.libraries:
	@scripts/deps --check build >/dev/null || { printf 'missing packages:\n%s\n`make deps` installs them\n' "$$(scripts/deps --check build)" >&2; exit 1; }
	@mkdir -p $(@D) && touch $@
$(OUT)/.flags: export FLAGS_NOW = $(CC) $(ALL_CPPFLAGS) $(filter-out -Werror -ffile-prefix-map=%,$(ALL_CFLAGS)) $(ALL_LDFLAGS)
$(OUT)/.flags: FORCE
	@mkdir -p $(@D); printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@
FORCE:

# A decision does not depend on the machine: where the hardware has a fused a * b + c, some compilers use it, and it
# rounds once instead of twice.
$(OUT)/obj/policies/engine/%.o $(OUT)/obj/policies/pool/%.o $(OUT)/obj/policies/spread/%.o: private ALL_CFLAGS += -ffp-contract=off
# The 72 rules of an objective are loops over arrays, for which -O2 does not use vectors. No number in them is NaN or
# infinite, and none depends on the sign of zero. Results stay the same.
ifeq ($(VARIANT),release)
$(foreach f,choice load queue,$(OUT)/obj/policies/engine/objective_$(f).o): private ALL_CFLAGS += -O3 -fno-trapping-math -fno-math-errno -ffinite-math-only -fno-signed-zeros
$(foreach f,combine decide signal window,$(OUT)/obj/policies/engine/$(f).o): private ALL_CFLAGS += -O3 # run for every signal
endif

# The controller is compiled for size, but for what runs for every tick, signal, sample or object.
FAST := $(addprefix base/,arena buf exposition hash_table json/json_scan json/json_span json/json_write json/watch_scan num text) \
        $(addprefix runtime/query/,query_answer query_hub early_query) controller/policy/early_check \
        $(addprefix controller/tick/,reconcile reconcile_tick ticks write_turns) $(addprefix k8s/cache/,pod_decode watch) \
        $(addprefix policies/engine/,behavior combine decide decide_state decision forecast formula guards idle_stage limits \
          objective objective_choice objective_load objective_queue panic_stage plausible proposal \
          quantile signal source startup window) \
        policies/pool/pool_allocate policies/spread/spread $(addprefix promql/,fair_queue freshness lexer promql_answer similar)
$(foreach f,$(FAST),$(if $(wildcard $f.c),,$(error Makefile: FAST names $f.c, which does not exist)))
COMPACT := $(filter-out $(FAST:%=$(OUT)/obj/%.o),$(foreach l,$(filter-out exporter,$(LIBRARIES)),$(patsubst %.c,$(OUT)/obj/%.o,$(call sources_of,$(l))))) \
           $(OUT)/obj/cli/main.o
ifeq ($(VARIANT),release)
$(COMPACT): private ALL_CFLAGS += -Os
endif

$(OUT)/obj/%.o: %.c $(OUT)/.flags | $(OUT)/.libraries
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(shell test -d $(OUT)/obj && find $(OUT)/obj -name '*.d')

# Relative relocations in the packed form save 7 % of the file, where the linker has them for the machine; the C library
# must be glibc 2.36 or later. The exporter, which also runs on the hosts of older distributions, does without.
ifeq ($(VARIANT),release)
PACK := -Wl,-z,pack-relative-relocs
$(OUT)/gpuscale: private LINK_release += $(shell echo | $(CC) -shared -nostdlib -Wl,--fatal-warnings $(PACK) -x c -o /dev/null - 2>/dev/null && echo $(PACK))
endif
$(OUT)/gpuscale: $(OUT)/obj/cli/main.o $(CONTROLLER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(OUT)/gpuscale-exporter: $(OUT)/obj/exporter/cmd/exporter_main.o $(EXPORTER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

##@ build
all: $(PROGRAMS) ## build gpuscale and gpuscale-exporter
	@for p in $(PROGRAMS); do printf '%s %s: %s (%s KiB)\n' "$$(basename $$p)" '$(VERSION)' "$$p" "$$(du -k $$p | cut -f1)"; done

# ---- tests, and what belongs to one page, package or format ----
include test/tests.mk $(wildcard scripts/*.mk)

##@ check
check: format-check lint purity ## every static check that takes less than a minute
lint: $(ARCHIVES) $(OUT)/obj/cli/main.o $(OUT)/obj/exporter/cmd/exporter_main.o ## ban list, licence lines, headers, shellcheck, cppcheck, yamllint
	@scripts/lint $(OUT)
tidy: ## clang-tidy over all C files (minutes)
	@scripts/tidy
purity: $(foreach l,policies remedy base controller,$(call archive_of,$l)) ## prove the decision core, the allocator of pools, the planner of remediation and the schedules of writes pure
	$(Q)scripts/check-purity $(OUT)/obj/policies/engine $(OUT)/obj/policies/pool $(OUT)/obj/policies/spread
	$(Q)scripts/check-purity $(OUT)/obj/remedy/plan $(OUT)/obj/base/health_table.o
	$(Q)scripts/check-purity $(OUT)/obj/controller/status/status_schedule.o $(OUT)/obj/controller/tick/write_turns.o

format: ## clang-format all C files in place
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 -i
format-check: ## fail when a C file is not formatted
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 --dry-run -Werror

# ---- installing and packing ----
STRIP ?= strip
BINDIR = $(DESTDIR)$(PREFIX)/bin
DOCDIR = $(DESTDIR)$(PREFIX)/share/doc/gpuscale
RULESDIR = $(DESTDIR)$(PREFIX)/share/gpuscale/rules
# Links in a page lead to files that are not installed.
UNLINKED = s/!\[[^]]*\]\([^)]*\)\n?//g; s/\[([^]]*)\]\(([^):\#]*)(\#[^)]*)?\)/\1/g
##@ package
install: all ## install to DESTDIR/PREFIX (/usr/local), stripped, with kubectl-gpuscale
	install -d $(BINDIR) $(DOCDIR) $(RULESDIR)
	set -e; for p in $(PROGRAMS); do install -m 755 $$p $(BINDIR)/; $(STRIP) $(BINDIR)/$$(basename $$p); done
	ln -sf gpuscale $(BINDIR)/kubectl-gpuscale
	install -m 644 LICENSE $(DOCDIR)/
	set -e; for f in $(wildcard README.md) CHANGELOG.md; do sed -zE '$(UNLINKED)' $$f >$(DOCDIR)/$$f; done
	install -m 644 manifests/monitoring/rules/*.yaml $(RULESDIR)/
uninstall: ## remove what install put there
	rm -f $(BINDIR)/gpuscale $(BINDIR)/gpuscale-exporter $(BINDIR)/kubectl-gpuscale
	rm -rf $(DOCDIR) $(DESTDIR)$(PREFIX)/share/gpuscale
dist: ## source archive of the last commit
	@mkdir -p $(BUILD)
	git archive --prefix=gpuscale-$(VERSION)/ HEAD | gzip -n9 >$(BUILD)/gpuscale-$(VERSION).tar.gz
	@ls -l $(BUILD)/gpuscale-$(VERSION).tar.gz

##@ build
deps: ## install the packages that build, tests and demo need (GROUPS='lint e2e cluster' for the others)
	@scripts/deps build test $(GROUPS)
clean: ## remove this variant's build output
	rm -rf $(OUT)
distclean: ## remove everything that was built
	rm -rf $(BUILD)

##@ develop
file-map: ## a line for every file, from the comment at its top
	@scripts/file-map
# A line `##@ GROUP` puts the targets after it, up to the end of its file, into that group.
help: ## list the targets
	@awk -F ':.*## ' 'FNR == 1 { group = "develop" } /^##@ / { group = substr($$0, 5) } \
	  /^[a-z0-9 _-]+:.*## / { lines[group] = lines[group] sprintf("  %-16s %s\n", $$1, $$2) } \
	  END { n = split("build test check package develop", groups, " "); for (i = 1; i <= n; i++) printf "%s", (i == 1 ? "" : "\n") groups[i] ":\n" lines[groups[i]] }' $(filter-out %.d,$(MAKEFILE_LIST))

.PHONY: all check lint tidy deps purity format format-check install uninstall dist clean distclean file-map help FORCE
