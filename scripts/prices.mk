# SPDX-License-Identifier: Apache-2.0
# The shipped prices are assembled into the program (.incbin), which the compiler's dependency files do not list.
$(OUT)/obj/policies/price/price_book.o: policies/price/prices.yaml
