# SPDX-License-Identifier: Apache-2.0
# Programs of `make bench` (test/bench/run-bench): test/bench/bench_X.c is one program, the rest is shared by them.
BENCH_PROGRAMS := $(patsubst test/bench/%.c,$(OUT)/bench/%,$(wildcard test/bench/bench_*.c))
BENCH_SHARED   := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out test/bench/bench_%,$(wildcard test/bench/*.c)))

$(OUT)/bench/bench_%: $(OUT)/obj/test/bench/bench_%.o $(BENCH_SHARED) $(OUT)/obj/test/support/engine.o $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Helpers by name: what other files add to TEST_HELPERS is not known here yet.
bench-programs: $(PROGRAMS) $(OUT)/fake-apiserver $(OUT)/fake-prometheus $(BENCH_PROGRAMS) ## build what the benchmarks need, measure nothing
.PHONY: bench-programs

bench-fleet: bench-programs ## 1,000 Deployments on 200 simulated nodes, scaled by one controller; writes build/bench-fleet.json
	@scripts/kube/build 1.34 kube-apiserver etcd kwok >/dev/null || echo 'no Kubernetes 1.34 or no kwok' >&2
	@test/bench/run-fleet
bench-kube: bench-programs ## 500 and 5,000 policies on a real API server; writes build/bench-kube.json
	@scripts/kube/build 1.34 kube-apiserver etcd >/dev/null || echo 'no Kubernetes 1.34' >&2
	@test/bench/run-kube
.PHONY: bench-fleet bench-kube
