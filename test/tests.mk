# SPDX-License-Identifier: Apache-2.0
# tests.mk: builds and runs the tests. test/README.md explains the suites.
# No test lists what it links. A program links its own objects, the archive of the test helpers and the archives of the
# product, and the linker takes from the archives what the program uses. A new .c file needs no line here.

# ---- compiling and linking ----
# A test is compiled about as often as it runs, so its objects are not optimized, and gold links it where it is installed.
# The fakes and the laws keep the flags of the product: benchmarks measure the fakes, and the laws compute.
# (The sanitizers' variants keep their flags everywhere: they must see the warnings that only an optimizer finds.)
TEST_FLAGS_release := -O0 -g -fPIE
UNOPTIMIZED := unit support fuzz integration e2e
$(foreach f,$(UNOPTIMIZED),$(eval $$(OUT)/obj/test/$(f)/%.o: private FLAGS_release := $$(TEST_FLAGS_release)))
TEST_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold)
define link_test
$(call say,LD,$@)
$(Q)mkdir -p $(@D)
$(Q)$(CC) $(ALL_CFLAGS) $(filter-out -Wl$(comma)-z%,$(ALL_LDFLAGS)) $(TEST_LINKER) -o $@ $(filter %.o %.a,$^) $(1) $(LIBS) -lcmocka
endef

TEST_ARCHIVE := $(OUT)/test/libtest.a
$(TEST_ARCHIVE): $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out %_main.c,$(wildcard test/support/*.c test/fake/*.c))) test/support test/fake
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $(filter %.o,$^)
TEST_ARCHIVES := $(TEST_ARCHIVE) $(ARCHIVES)

# ---- test programs: one for each test_X.c, prop_X.c, fuzz_X.c and bench_X.c ----
UNIT_TESTS     := $(patsubst test/unit/%.c,$(OUT)/test/%,$(wildcard test/unit/test_*.c))
CONTRACT_TESTS := $(patsubst test/integration/contract/%.c,$(OUT)/test/%,$(wildcard test/integration/contract/test_*.c))
PROP_TESTS     := $(patsubst test/laws/%.c,$(OUT)/laws/%,$(wildcard test/laws/prop_*.c))
# Their ticks are short: `make prop` runs ten times as many.
SHORT_TICK_LAWS      := $(addprefix $(OUT)/laws/,prop_pool prop_remedy prop_remedy_twins)
FUZZERS        := $(patsubst test/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
BENCH_PROGRAMS := $(patsubst test/bench/%.c,$(OUT)/bench/%,$(wildcard test/bench/bench_*.c))
$(UNIT_TESTS): $(OUT)/test/%: $(OUT)/obj/test/unit/%.o $(TEST_ARCHIVES)
	$(link_test)
$(CONTRACT_TESTS): $(OUT)/test/%: $(OUT)/obj/test/integration/contract/%.o $(OUT)/obj/test/integration/contract/contract_world.o $(TEST_ARCHIVES)
	$(link_test)
LAWS_ARCHIVE := $(OUT)/laws/liblaws.a
$(LAWS_ARCHIVE): $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out test/laws/prop_%.c,$(wildcard test/laws/*.c))) test/laws
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $(filter %.o,$^)
$(PROP_TESTS): $(OUT)/laws/%: $(OUT)/obj/test/laws/%.o $(LAWS_ARCHIVE) $(TEST_ARCHIVES)
	$(link_test)
$(BENCH_PROGRAMS): $(OUT)/bench/%: $(OUT)/obj/test/bench/%.o $(TEST_ARCHIVES)
	$(link_test)
# A fuzz target has no main(): libFuzzer brings one, and without it replay.c, which feeds the corpus.
REPLAY := $(OUT)/obj/test/fuzz/replay.o $(OUT)/obj/test/fuzz/type_sweep.o
$(FUZZERS): $(OUT)/fuzz/%: $(OUT)/obj/test/fuzz/%.o $(if $(filter fuzz,$(VARIANT)),,$(REPLAY)) $(TEST_ARCHIVES)
	$(call link_test,$(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer))

# ---- helper programs that scripts start: the name, and the sources that hold its main() ----
define helper
TEST_HELPERS += $(OUT)/$(1)
$(OUT)/$(1): $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard $(2))) $(TEST_ARCHIVES)
	$$(link_test)
endef
TEST_HELPERS := $(CONTRACT_TESTS)
$(eval $(call helper,fake-apiserver,test/fake/apiserver_main.c))
$(eval $(call helper,fake-prometheus,test/fake/prometheus_main.c))
$(eval $(call helper,demo,test/support/demo/*.c))
$(eval $(call helper,demand-trace,test/laws/demand/*.c))
$(eval $(call helper,learnt-status,test/support/learnt_status_main.c))
$(eval $(call helper,policy-dump,test/e2e/admission/policy_dump.c))
$(eval $(call helper,ha-process,test/e2e/ha/ha_process.c))

# ---- libraries that programs under test load: drivers of GPUs that read a script, a wall clock that can be set ----
# The drivers are loaded into programs that bring the sanitizer's runtime along, so they are not linked with -z defs.
# libnvidia-ml exists complete, as old drivers have it, and with no function at all.
define fake_driver # TARGET, SONAME, SOURCES, VERSION_SCRIPT
TEST_HELPERS += $(1)
FAKE_DRIVERS += $(1)
$(1): $(3) $(4) test/fake/nvml/script.h exporter/nvml/nvml_api.h exporter/dcgm/dcgm_api.h exporter/families.h base/gpu_families.h
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(filter-out -fPIE,$$(ALL_CFLAGS)) -fPIC -shared -Wl,-soname,$(2) $(if $(4),-Wl$(comma)--version-script$(comma)$(4)) -o $$@ $(3)
endef
FAKE_NVML := $(wildcard test/fake/nvml/*.c)
$(eval $(call fake_driver,$(OUT)/fake-nvml/libnvidia-ml.so.1,libnvidia-ml.so.1,$(FAKE_NVML),))
$(eval $(call fake_driver,$(OUT)/fake-nvml-old/libnvidia-ml.so.1,libnvidia-ml.so.1,$(FAKE_NVML),test/fake/nvml/old.map))
$(eval $(call fake_driver,$(OUT)/fake-nvml-empty/libnvidia-ml.so.1,libnvidia-ml.so.1,$(FAKE_NVML),test/fake/nvml/empty.map))
$(eval $(call fake_driver,$(OUT)/fake-dcgm/libdcgm.so.4,libdcgm.so.4,test/fake/dcgm/fake_dcgm.c test/fake/nvml/script.c,))
$(UNIT_TESTS): | $(FAKE_DRIVERS)

# A recorded reply of a kubelet, which is also an input of a fuzz target.
$(OUT)/test/kubelet-1.36-claims: test/fuzz/corpus/exporter_pods.bundle
	$(Q)mkdir -p $(@D) && scripts/bundle show $< $(@F) >$@.new && mv $@.new $@
$(OUT)/test/test_exporter_pods: | $(OUT)/test/kubelet-1.36-claims

TEST_HELPERS += $(OUT)/set-clock.so
$(OUT)/set-clock.so: test/e2e/ha/set_clock.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -fPIC -shared -o $@ $< -ldl

# ---- running: programs and run-* scripts print TAP, test/run sums them up ----
# Scripts find the programs by OUT (test/support/lib.sh). Every target here accepts VARIANT=.
export OUT BUILD
TEST_PROGRAMS      = $(PROGRAMS) $(TEST_HELPERS)
TEST_FLAGS        ?=
run_tests          = test/run -o test/support/slowest $(TEST_FLAGS) $(1)
# Unit tests that `make quick` omits, because they wait for real time or compute for more than a second.
WAITING_TESTS     := $(addprefix $(OUT)/test/,$(shell grep -v '^\#' test/unit/waiting))
# Integration tests that take more CPU time than `make test` can afford. `make integration` and .ci/run run them.
SLOW_TESTS        := $(addprefix test/integration/run-,$(shell grep -v '^\#' test/integration/slow))
# The slowest of them: only `make nightly` (GPUSCALE_NIGHTLY) runs them.
NIGHTLY_TESTS     := $(addprefix test/integration/run-,$(shell grep -v '^\#' test/integration/nightly))
FIGURES_TEST      := test/laws/demand/run-figures
FAULT_TESTS       := test/integration/run-faults-per-call
INTEGRATION_TESTS := $(filter-out $(FAULT_TESTS),$(sort $(wildcard test/integration/run-*)))
GOLDEN_TESTS      := $(sort $(wildcard test/integration/golden/run-*))
POLICY_TESTS      := $(sort $(wildcard test/policy/run-*))
# Some take minutes for what other tests show, too: only `make nightly` (GPUSCALE_NIGHTLY) runs them.
NIGHTLY_E2E_TESTS := $(addprefix test/e2e/run-,$(shell grep -v '^\#' test/e2e/nightly))
E2E_TESTS         := $(filter-out $(if $(GPUSCALE_NIGHTLY),,$(NIGHTLY_E2E_TESTS)),$(sort $(wildcard test/e2e/run-*)))
NIGHTLY_CLUSTER_TESTS := $(addprefix test/e2e/cluster/run-,$(shell grep -v '^\#' test/e2e/cluster/nightly))
E2E_CLUSTER_TESTS := $(filter-out $(if $(GPUSCALE_NIGHTLY),,$(NIGHTLY_CLUSTER_TESTS)),$(sort $(wildcard test/e2e/cluster/run-*)))
BENCHES           := $(sort $(filter-out test/bench/run-fleet test/bench/run-kube test/bench/run-peers test/bench/run-scale-targets,$(wildcard test/bench/run-*)))

##@ test
quick: $(filter-out $(WAITING_TESTS),$(UNIT_TESTS)) $(TEST_PROGRAMS) ## seconds: unit tests that do not wait, policy tests, lint
	@scripts/lint $(OUT) >$(OUT)/lint.log 2>&1 & lint=$$!; $(call run_tests,$(filter-out $(WAITING_TESTS),$(UNIT_TESTS)) $(POLICY_TESTS)); status=$$?; \
	  wait $$lint || { status=1; cat $(OUT)/lint.log; }; exit $$status
test: ## a minute: unit, policy, law and the faster integration tests; installs what is missing first
	@scripts/deps --check build test >/dev/null || scripts/deps build test
	@+$(MAKE) --no-print-directory test-now
test-programs: $(UNIT_TESTS) $(PROP_TESTS) $(TEST_PROGRAMS) ## build what `make test` runs
test-now: test-programs
	@$(call run_tests,$(UNIT_TESTS) $(PROP_TESTS) $(POLICY_TESTS) $(GOLDEN_TESTS) $(filter-out $(SLOW_TESTS),$(INTEGRATION_TESTS)))
test-all-now: $(UNIT_TESTS) $(PROP_TESTS) $(FUZZERS) $(TEST_PROGRAMS)
	@$(call run_tests,$(UNIT_TESTS) $(PROP_TESTS) test/fuzz/run-replay $(POLICY_TESTS) $(GOLDEN_TESTS) $(INTEGRATION_TESTS))
test-slow: $(TEST_PROGRAMS) ## the integration tests that `make test` omits, and the figures of the docs (minutes)
	@$(call run_tests,-t 900 $(filter-out $(if $(GPUSCALE_NIGHTLY),,$(NIGHTLY_TESTS)),$(SLOW_TESTS)) $(FIGURES_TEST))
# An emulated processor (ARCH=) is too slow for the tests that wait for real time, and qemu-user is not the whole kernel.
NOT_EMULATED      := $(if $(SYSROOT),$(WAITING_TESTS) $(addprefix $(OUT)/test/,$(shell grep -v '^\#' test/compilers/not-emulated)))
unit: $(UNIT_TESTS) ## test/unit
	@$(call run_tests,$(if $(SYSROOT),-t 3600) $(filter-out $(NOT_EMULATED),$(UNIT_TESTS)))
policy: $(TEST_PROGRAMS) ## test/policy
	@$(call run_tests,$(POLICY_TESTS))
integration: $(TEST_PROGRAMS) ## test/integration: real programs, real Prometheus, fake API server
	@$(call run_tests,$(GOLDEN_TESTS) $(INTEGRATION_TESTS))
golden: $(TEST_PROGRAMS) ## test/integration/golden: compare outputs with files
	@$(call run_tests,$(GOLDEN_TESTS))
golden-update: $(TEST_PROGRAMS) ## rewrite these files; look at the diff before you commit it
	@GOLDEN_UPDATE=1 $(call run_tests,$(GOLDEN_TESTS))
	@git status --short test/integration/golden
faults: $(TEST_PROGRAMS) ## every call of the API server meets every kind of fault (minutes)
	@$(call run_tests,-j 1 -t 900 $(FAULT_TESTS))
laws prop: $(PROP_TESTS) ## test/laws: the engine's laws on random policies, and a broken engine for each (PROP_SEED=N repeats)
	@test/run -t 1800 $(filter-out $(SHORT_TICK_LAWS),$(PROP_TESTS)) test/laws/run-mutants
	@PROP_TICKS=$${PROP_TICKS:-1000000} test/run -t 1800 $(SHORT_TICK_LAWS)
replay: $(FUZZERS) ## test/fuzz: feed each fuzz target its corpus
	@$(call run_tests,test/fuzz/run-replay)
FUZZ_SECONDS ?= 30
fuzz: ## test/fuzz: run each fuzz target for FUZZ_SECONDS=30 (clang); findings in build/fuzz/findings
	@+$(MAKE) --no-print-directory VARIANT=fuzz fuzz-now
fuzz-now: $(FUZZERS)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(call run_tests,-t 86400 test/fuzz/run-campaign)
e2e: ## test/e2e: real kube-apiserver, etcd and Prometheus
	@scripts/deps --check build test e2e >/dev/null || scripts/deps build test e2e
	@+$(MAKE) --no-print-directory e2e-now
e2e-now: $(TEST_PROGRAMS)
	@$(with_kube) $(call run_tests,-j $(KUBE_JOBS) -t 900 $(E2E_TESTS))
e2e-cluster: ## test/e2e/cluster: a one-node Kubernetes (root); skips with a reason where it cannot run
	@scripts/deps --check build test e2e cluster >/dev/null || scripts/deps build test e2e cluster
	@+$(MAKE) --no-print-directory e2e-cluster-now
e2e-cluster-now: $(TEST_PROGRAMS)
	@$(with_kube_all) $(call run_tests,-j 1 -t 1800 $(E2E_CLUSTER_TESTS))
failover: ## kill the leader KILLS=100 times on a real API server: no PATCH is lost or repeated (10 min)
	@+$(MAKE) --no-print-directory failover-now
failover-now: $(OUT)/gpuscale
	@KILLS=$${KILLS:-100} $(call run_tests,-t 1800 test/e2e/run-failover)
SOAK_SAMPLES ?= 10000000
soak: ## pass SOAK_SAMPLES=10000000 samples through the exporter in virtual time: memory stays flat
	@+$(MAKE) --no-print-directory soak-now
soak-now: $(OUT)/test/test_exporter_soak
	@SOAK_SAMPLES=$(SOAK_SAMPLES) $(call run_tests,-t 1800 $^)
soak-tenants: ## a hostile tenant, broken queries, floods and a clock that is set, for SOAK_MINUTES=30
	@+$(MAKE) --no-print-directory soak-tenants-now
soak-tenants-now: $(TEST_PROGRAMS)
	@$(call run_tests,-t $$(($${SOAK_MINUTES:-30} * 60 + 1200)) test/e2e/soak/run-hostile-tenant)
compilers: ## test/compilers: clang 19, gcc 14 and arm64 without warnings; arm64's unit tests under qemu-user (root, half an hour)
	@scripts/deps --check build test compilers >/dev/null || scripts/deps build test compilers
	@test/run -j 1 -t 5400 test/compilers/run-compilers
nightly: ## everything, for hours; prints each step
	@.ci/nightly

##@ check
asan: ## run unit, policy, law and integration tests and the fuzz corpora under AddressSanitizer and UBSan
	@+$(MAKE) --no-print-directory VARIANT=asan test-all-now
ubsan: ## run the same under UBSan alone
	@+$(MAKE) --no-print-directory VARIANT=ubsan test-all-now
tsan: ## run the unit tests of what has threads (exporter, HTTP, saved state) under ThreadSanitizer
	@+$(MAKE) --no-print-directory VARIANT=tsan tsan-now
THREADED_TESTS = $(filter $(OUT)/test/test_exporter_% $(OUT)/test/test_http_% $(OUT)/test/test_k8s_exec $(OUT)/test/test_state_dir,$(UNIT_TESTS))
tsan-now: $(THREADED_TESTS) $(TEST_PROGRAMS)
	@$(call run_tests,$(THREADED_TESTS))
valgrind: ## run the unit tests under valgrind
	@+$(MAKE) --no-print-directory VARIANT=debug TEST_FLAGS="-t 1800 -w 'valgrind -q --leak-check=full --error-exitcode=99'" valgrind-now
valgrind-now: $(UNIT_TESTS)
	@$(call run_tests,-j $(shell nproc) $(UNIT_TESTS))
coverage: ## line coverage of the same, as a table and as HTML in build/coverage/report
	@[ ! -d build/coverage ] || find build/coverage -name '*.gcda' -delete # what an earlier run counted
	@+$(MAKE) --no-print-directory VARIANT=coverage coverage-now
coverage-now: test-all-now
	@mkdir -p $(OUT)/report
	@gcovr --root . --object-directory $(OUT)/obj --exclude 'test/.*' --html-details $(OUT)/report/index.html --print-summary

##@ develop
demo: ## run the closed loop on this machine; needs no cluster and no GPU (KUBE=fake|real|context)
	@scripts/deps --check build test >/dev/null || scripts/deps build test
	@+$(MAKE) --no-print-directory demo-now
demo-now: $(TEST_PROGRAMS)
	@scripts/demo
figures: $(OUT)/gpuscale $(OUT)/demand-trace ## rewrite every simulated figure of the docs (minutes); TRACES=DIR adds a trace
	@test/laws/demand/run-figures --update
evaluation: $(TEST_PROGRAMS) $(BENCH_PROGRAMS) ## measure each claim of docs/evaluation.md and write it there, and into build/evaluation (ten minutes)
	@scripts/deps --check build test e2e >/dev/null || scripts/deps build test e2e
	@$(with_kube) test/evaluation/run-evaluation
pictures: $(TEST_PROGRAMS) ## draw every picture of the docs anew (needs Chromium; four minutes)
	@scripts/pictures
bench: $(TEST_PROGRAMS) $(BENCH_PROGRAMS) ## measure; prints the table of budgets, writes build/bench.json
	@set -e; for b in $(BENCHES); do $$b; done
bench-programs: $(PROGRAMS) $(OUT)/fake-apiserver $(OUT)/fake-prometheus $(BENCH_PROGRAMS) ## build what the benchmarks need, measure nothing
bench-fleet: bench-programs ## measure 1,000 Deployments on 200 simulated nodes; writes build/bench-fleet.json
	@scripts/kube/build kube-apiserver etcd kubectl kwok >/dev/null || echo 'Kubernetes or kwok is unavailable' >&2
	@test/bench/run-fleet
PEER_PROGRAMS = $(if $(filter 1,$(PEERS)),kube-controller-manager prometheus-adapter)
bench-reaction: bench-programs ## measure a metric step of 500 targets to their PATCHes (PEERS=1: the HPA's, too); writes build/bench-reaction.json
	@scripts/kube/build kube-apiserver etcd kubectl $(PEER_PROGRAMS) >/dev/null || echo 'Kubernetes is unavailable' >&2
	@test/bench/run-reaction
bench-kube: bench-programs ## measure 500 and 5,000 policies, and fleets of as many targets, on a real API server (PEERS=1: bench-reaction PEERS=1, too); writes build/bench-kube.json
	@scripts/kube/build kube-apiserver etcd kubectl $(PEER_PROGRAMS) >/dev/null || echo 'Kubernetes is unavailable' >&2
	@test/bench/run-kube
	@test/bench/run-scale-targets
	@$(if $(filter 1,$(PEERS)),test/bench/run-reaction)
REAL_PEERS = kube-apiserver etcd kubectl kube-controller-manager prometheus-adapter keda-operator keda-adapter
peers: ## build the HPA controller, prometheus-adapter and KEDA, for the next two targets; many minutes, the first time
	@scripts/kube/build $(REAL_PEERS) >/dev/null && scripts/kube/definitions keda >/dev/null
bench-peers: bench-programs peers ## measure gpuscale, the HPA and KEDA on TARGETS=200 targets; writes build/bench-peers.md
	@test/bench/run-peers $${TARGETS:-200}
compare-keda: $(TEST_PROGRAMS) peers ## compare decisions with those of KEDA, OBJECTS=200, DURATION_S=1800; writes build/compare-keda
	@test/peers/run-compare $${OBJECTS:-200} $${DURATION_S:-1800}
fake-apiserver: $(OUT)/fake-apiserver ## build the fake API server of the tests
fake-nvml: $(FAKE_DRIVERS) ## build the scripted GPU drivers of the tests

.PHONY: quick test test-programs test-now test-all-now test-slow unit policy integration golden golden-update faults laws prop replay fuzz fuzz-now e2e e2e-now \
        e2e-cluster e2e-cluster-now failover failover-now soak soak-now soak-tenants soak-tenants-now compilers nightly asan ubsan tsan tsan-now \
        valgrind valgrind-now coverage coverage-now demo demo-now figures evaluation pictures bench bench-programs bench-fleet bench-kube bench-peers bench-reaction compare-keda peers fake-apiserver fake-nvml
