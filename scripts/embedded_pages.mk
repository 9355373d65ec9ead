# SPDX-License-Identifier: Apache-2.0
# Pages and policies are assembled into the program (.incbin), which the compiler's dependency files do not list.
STATUS_PAGE := $(OUT)/obj/controller/serve/status_page.html.gz
$(STATUS_PAGE): controller/serve/status_page.html
	$(Q)mkdir -p $(@D) && gzip -9nc $< >$@
$(OUT)/obj/controller/serve/status_page.o: private ALL_CPPFLAGS += -DSTATUS_PAGE_GZ='"$(STATUS_PAGE)"'
$(OUT)/obj/controller/serve/status_page.o: $(STATUS_PAGE)
$(OUT)/obj/cli/replay/backtest_page.o: cli/replay/backtest_page.html
$(OUT)/obj/cli/gpu/cmd_advise.o: cli/gpu/advise_page.html
$(OUT)/obj/cli/gpu/advise_engine.o: $(wildcard policies/library/*.yaml)
