# SPDX-License-Identifier: Apache-2.0
# Pages are assembled into the program (.incbin), which the compiler's dependency files do not list.
$(OUT)/obj/controller/serve/status_page.o: controller/serve/status_page.html
$(OUT)/obj/cli/backtest_page.o: cli/backtest_page.html

##@ develop
backtest-picture: $(OUT)/gpuscale ## write docs/images/backtest.png, the picture of a backtest (needs Chromium)
	@scripts/backtest-picture
.PHONY: backtest-picture
