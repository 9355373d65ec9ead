# SPDX-License-Identifier: Apache-2.0
# gpuscale. `make help` lists the targets. A new .c file needs no line here: folders are globbed.
#   VARIANT=release|debug|asan|ubsan|tsan|fuzz|coverage   one tree each under build/
#   V=1 shows commands; CC CFLAGS CPPFLAGS LDFLAGS DESTDIR PREFIX are honoured; WERROR=1 makes warnings errors.
#   make uses every core unless told otherwise (-jN). Extra rules: test/*.mk and scripts/*.mk, which may add to
#   TEST_HELPERS (programs that test scripts need).

VERSION := 0.1.0
VARIANT ?= release
BUILD   ?= build
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
.SECONDARY:

PKG_CONFIG ?= pkg-config
PACKAGES   := libcurl libcjson yaml-0.1 openssl libevent libevent_openssl libevent_pthreads zlib
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
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
SANITIZE_COMMON := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
FLAGS_release  := -O2 -g $(HARDEN)
FLAGS_debug    := -O0 -g3
FLAGS_asan     := $(SANITIZE_COMMON) -fsanitize=address,undefined
FLAGS_ubsan    := $(SANITIZE_COMMON) -fsanitize=undefined
FLAGS_tsan     := $(SANITIZE_COMMON) -fsanitize=thread
FLAGS_fuzz     := $(SANITIZE_COMMON) -fsanitize=fuzzer-no-link,address,undefined
FLAGS_coverage := -O0 -g --coverage
LINK_release   := -pie -Wl,-z,relro,-z,now -Wl,--as-needed
ALL_CFLAGS  = -std=c17 $(WARN) $(FLAGS_$(VARIANT)) $(CFLAGS)
ALL_CPPFLAGS = -I. -D_GNU_SOURCE -DGPUSCALE_VERSION='"$(VERSION)"' $(DEP_CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = $(filter -fsanitize% --coverage,$(subst fuzzer-no-link$(comma),,$(FLAGS_$(VARIANT)))) $(LINK_$(VARIANT)) $(LDFLAGS)
comma := ,
LIBS        = $(DEP_LIBS) -lm -ldl -lpthread

# ---- what is built: a folder is a static library, a main.c is a program ----
LIBRARIES   := cli scenario policylint controller exporter k8s promql policies base
sources_of   = $(filter-out $(1)/main.c,$(wildcard $(1)/*.c))
archive_of   = $(OUT)/lib/lib$(1).a
ARCHIVES    := $(foreach l,$(LIBRARIES),$(call archive_of,$(l)))
CONTROLLER_LIBS := $(foreach l,cli scenario policylint controller k8s promql policies base,$(call archive_of,$(l)))
EXPORTER_LIBS   := $(foreach l,exporter base,$(call archive_of,$(l)))
PROGRAMS    := $(if $(wildcard cli/main.c),$(OUT)/gpuscale) $(if $(wildcard exporter/main.c),$(OUT)/gpuscale-exporter)

# The folder itself is a prerequisite: its time changes when a file goes, and the archive must lose it too.
define archive_rule
$(call archive_of,$(1)): $(patsubst %.c,$(OUT)/obj/%.o,$(call sources_of,$(1))) $(wildcard $(1))
	$$(call say,AR,$$@)
	$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach l,$(LIBRARIES),$(eval $(call archive_rule,$(l))))

# Objects wait for the libraries to be there, and are compiled again when compiler or flags change (not for -Werror).
$(OUT)/.libraries:
	@scripts/deps --check build >/dev/null || { printf 'missing packages:\n%s\n`make deps` installs them\n' "$$(scripts/deps --check build)" >&2; exit 1; }
	@mkdir -p $(@D) && touch $@
$(OUT)/.flags: export FLAGS_NOW = $(CC) $(ALL_CPPFLAGS) $(filter-out -Werror,$(ALL_CFLAGS)) $(ALL_LDFLAGS)
$(OUT)/.flags: FORCE
	@mkdir -p $(@D); printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@
FORCE:

$(OUT)/obj/%.o: %.c $(OUT)/.flags | $(OUT)/.libraries
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(shell test -d $(OUT)/obj && find $(OUT)/obj -name '*.d')

$(OUT)/gpuscale: $(OUT)/obj/cli/main.o $(CONTROLLER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(OUT)/gpuscale-exporter: $(OUT)/obj/exporter/main.o $(EXPORTER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

all: $(PROGRAMS) ## build gpuscale and gpuscale-exporter
	@for p in $(PROGRAMS); do printf '%s %s: %s (%s KiB)\n' "$$(basename $$p)" '$(VERSION)' "$$p" "$$(du -k $$p | cut -f1)"; done

# ---- tests: test/unit/test_X.c is one cmocka program, test/fake/X.c (no test_ prefix) a helper program ----
TEST_SUPPORT := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard test/support/*.c))
UNIT_TESTS   := $(patsubst test/unit/%.c,$(OUT)/test/%,$(wildcard test/unit/test_*.c))
$(OUT)/test/test_%: $(OUT)/obj/test/unit/test_%.o $(TEST_SUPPORT) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# ---- fuzzing: test/fuzz/fuzz_X.c defines LLVMFuzzerTestOneInput; corpus in test/fuzz/corpus/X ----
FUZZERS      := $(patsubst test/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
$(OUT)/fuzz/fuzz_%: $(OUT)/obj/test/fuzz/fuzz_%.o $(if $(filter fuzz,$(VARIANT)),,$(OUT)/obj/test/fuzz/replay.o $(OUT)/obj/test/fuzz/type_sweep.o) $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) $(LIBS)

TEST_HELPERS :=
-include test/*.mk scripts/*.mk

# ---- running tests: unit programs and run-* scripts print TAP, test/run sums them up ----
# Scripts find the programs by OUT (test/lib.sh). Every target here can be given with VARIANT=.
export OUT BUILD
POLICY_TESTS      := $(sort $(wildcard test/policy/run-*))
GOLDEN_TESTS      := $(sort $(wildcard test/golden/run-*))
INTEGRATION_TESTS := $(sort $(wildcard test/integration/run-*))
E2E_TESTS         := $(sort $(wildcard test/e2e/run-*))
E2E_CLUSTER_TESTS := $(sort $(wildcard test/e2e-cluster/run-*))
BENCHES           := $(sort $(filter-out test/bench/run-fleet test/bench/run-kube,$(wildcard test/bench/run-*)))
REPLAY_TESTS      := $(if $(FUZZERS),test/fuzz/run-replay)
TEST_PROGRAMS      = $(PROGRAMS) $(TEST_HELPERS)
TEST_FLAGS        ?=
run_tests          = test/run -o test/slowest $(TEST_FLAGS) $(1)

test: ## build and run unit, property, policy, golden and integration tests; installs what is missing first
	@scripts/deps --check build test >/dev/null || scripts/deps build test
	@+$(MAKE) --no-print-directory test-now
test-now: $(UNIT_TESTS) $(PROP_TESTS) $(FUZZERS) $(TEST_PROGRAMS)
	@$(call run_tests,$(UNIT_TESTS) $(PROP_TESTS) $(REPLAY_TESTS) $(POLICY_TESTS) $(GOLDEN_TESTS) $(INTEGRATION_TESTS))
unit: $(UNIT_TESTS) $(FUZZERS) ## run unit tests and fuzz corpora
	@$(call run_tests,$(UNIT_TESTS) $(REPLAY_TESTS))
policy: $(TEST_PROGRAMS) ## run policy scenarios
	@$(call run_tests,$(POLICY_TESTS))
golden: $(TEST_PROGRAMS) ## compare outputs with the golden files
	@$(call run_tests,$(GOLDEN_TESTS))
golden-update: $(TEST_PROGRAMS) ## rewrite the golden files; look at the diff before you commit it
	@GOLDEN_UPDATE=1 $(call run_tests,$(GOLDEN_TESTS))
	@git status --short test/golden
integration: $(TEST_PROGRAMS) ## run integration tests (real Prometheus, fake API server)
	@$(call run_tests,$(INTEGRATION_TESTS))
e2e: ## run end-to-end tests on real kube-apiserver, etcd and Prometheus, of Kubernetes 1.20 and 1.34 (KUBE_VERSION=1.34: that one)
	@scripts/deps --check build test e2e >/dev/null || scripts/deps build test e2e
	@+set -e; after=$(KUBE_AFTER); for v in $(KUBE_VERSIONS); do $(MAKE) --no-print-directory KUBE_VERSION=$$v KUBE_AFTER=$$after e2e-now; after=$$v; done
e2e-now: $(TEST_PROGRAMS) $(CONTRACT_TESTS)
	@$(call told_run,$(E2E_TESTS)) $(with_kube) $(call run_tests,-j $(KUBE_JOBS) -t 900 $(call to_run,$(E2E_TESTS)))
e2e-cluster: ## the same on a one-node Kubernetes (root); skips, saying so, where it cannot run
	@scripts/deps --check build test e2e cluster >/dev/null || scripts/deps build test e2e cluster
	@+set -e; after=$(KUBE_AFTER); for v in $(KUBE_VERSIONS); do $(MAKE) --no-print-directory KUBE_VERSION=$$v KUBE_AFTER=$$after e2e-cluster-now; after=$$v; done
e2e-cluster-now: $(TEST_PROGRAMS)
	@$(call told_run,$(E2E_CLUSTER_TESTS)) $(with_kube_all) $(call run_tests,-j 1 -t 1800 $(call to_run,$(E2E_CLUSTER_TESTS)))

asan: ## run the tests of `make test` under AddressSanitizer and UBSan
	@+$(MAKE) --no-print-directory VARIANT=asan test-now
ubsan: ## run the tests of `make test` under UBSan alone
	@+$(MAKE) --no-print-directory VARIANT=ubsan test-now
tsan: ## run the exporter's and the HTTP tests, which have threads, under ThreadSanitizer
	@+$(MAKE) --no-print-directory VARIANT=tsan tsan-now
THREADED_TESTS = $(filter $(OUT)/test/test_exporter_% $(OUT)/test/test_http_% $(OUT)/test/test_k8s_exec,$(UNIT_TESTS))
tsan-now: $(THREADED_TESTS) $(TEST_PROGRAMS)
	@$(call run_tests,$(THREADED_TESTS))
valgrind: ## run the unit tests under valgrind
	@+$(MAKE) --no-print-directory VARIANT=debug TEST_FLAGS="-t 600 -w 'valgrind -q --leak-check=full --error-exitcode=99'" valgrind-now
valgrind-now: $(UNIT_TESTS)
	@$(call run_tests,-j 1 $(UNIT_TESTS))
coverage: ## line coverage of `make test`, as a table and as HTML in build/coverage/report
	@+$(MAKE) --no-print-directory VARIANT=coverage coverage-now
coverage-now: test-now
	@mkdir -p $(OUT)/report
	@gcovr --root . --object-directory $(OUT)/obj --exclude 'test/.*' --html-details $(OUT)/report/index.html --print-summary
FUZZ_SECONDS ?= 30
fuzz: ## run every fuzzer for FUZZ_SECONDS=30 (clang); findings in build/fuzz/findings
	@+$(MAKE) --no-print-directory VARIANT=fuzz fuzz-now
fuzz-now: $(FUZZERS)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(call run_tests,-t 86400 $(if $(FUZZERS),test/fuzz/run-campaign))
bench: $(TEST_PROGRAMS) $(BENCH_PROGRAMS) ## measure; prints the table of budgets, writes build/bench.json
	@set -e; for b in $(or $(BENCHES),none); do case $$b in none) echo 'no benchmarks yet' >&2; exit 1;; *) $$b;; esac; done
demo: ## the closed loop on this machine, no cluster and no GPU needed (KUBE=fake|real|context)
	@scripts/deps --check build test >/dev/null || scripts/deps build test
	@+$(MAKE) --no-print-directory demo-now
demo-now: $(TEST_PROGRAMS)
	@scripts/demo

check: format-check lint purity ## every static check that takes less than a minute
lint: $(ARCHIVES) ## ban list, licence lines, headers, shellcheck, cppcheck, yamllint
	@scripts/lint $(OUT)
tidy: ## clang-tidy over all C files (minutes)
	@scripts/tidy
deps: ## install the packages that build, tests and demo need (GROUPS='lint e2e cluster' for the others)
	@scripts/deps build test $(GROUPS)
purity: $(call archive_of,policies) ## prove the decision core pure: no I/O, no clock, no allocation
	$(Q)scripts/check-purity $(OUT)/obj/policies

format: ## clang-format all C files in place
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 -i
format-check: ## fail when a C file is not formatted
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r clang-format-14 --dry-run -Werror


# ---- installing and packing ----
STRIP ?= strip
BINDIR = $(DESTDIR)$(PREFIX)/bin
DOCDIR = $(DESTDIR)$(PREFIX)/share/doc/gpuscale
install: all ## install to DESTDIR/PREFIX (/usr/local), stripped, with kubectl-gpuscale
	install -d $(BINDIR) $(DOCDIR)
	set -e; for p in $(PROGRAMS); do install -m 755 $$p $(BINDIR)/; $(STRIP) $(BINDIR)/$$(basename $$p); done
	ln -sf gpuscale $(BINDIR)/kubectl-gpuscale
	install -m 644 LICENSE $(wildcard README.md) CHANGELOG.md $(DOCDIR)/
uninstall: ## remove what install put there
	rm -f $(BINDIR)/gpuscale $(BINDIR)/gpuscale-exporter $(BINDIR)/kubectl-gpuscale
	rm -rf $(DOCDIR)
dist: ## source archive of the last commit
	@mkdir -p $(BUILD)
	git archive --prefix=gpuscale-$(VERSION)/ HEAD | gzip -n9 >$(BUILD)/gpuscale-$(VERSION).tar.gz
	@ls -l $(BUILD)/gpuscale-$(VERSION).tar.gz

clean: ## remove this variant's build output
	rm -rf $(OUT)
distclean: ## remove everything that was built
	rm -rf $(BUILD)

help: ## list the targets
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | sort -u | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: all test test-now unit policy golden golden-update integration e2e e2e-now e2e-cluster e2e-cluster-now asan ubsan tsan tsan-now \
        valgrind valgrind-now coverage coverage-now fuzz fuzz-now bench demo demo-now check lint tidy deps purity format \
        format-check install uninstall dist clean distclean help FORCE
