# SPDX-License-Identifier: Apache-2.0
# The status page is assembled into the program (.incbin), which no compiler tells as a dependency.
$(OUT)/obj/controller/status_page.o: controller/status_page.html
