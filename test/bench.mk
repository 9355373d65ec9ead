# SPDX-License-Identifier: Apache-2.0
# Programs of `make bench` (test/bench/run-bench): test/bench/bench_X.c is one program, the rest is shared by them.
BENCH_PROGRAMS := $(patsubst test/bench/%.c,$(OUT)/bench/%,$(wildcard test/bench/bench_*.c))
BENCH_SHARED   := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out test/bench/bench_%,$(wildcard test/bench/*.c)))

$(OUT)/bench/bench_%: $(OUT)/obj/test/bench/bench_%.o $(BENCH_SHARED) $(OUT)/obj/test/support/engine.o $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

bench-programs: $(PROGRAMS) $(TEST_HELPERS) $(BENCH_PROGRAMS) ## build what the benchmarks need, measure nothing
.PHONY: bench-programs
