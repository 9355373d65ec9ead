# SPDX-License-Identifier: Apache-2.0
# Manual pages: docs/man/*.1 and *.5. `make install` depends on install-man, `make uninstall` on uninstall-man.
##@ develop
MANDIR    = $(DESTDIR)$(PREFIX)/share/man
MAN_PAGES := $(wildcard docs/man/*.[1-8])

man: $(OUT)/gpuscale ## write the manual pages from the tables of commands, flags and fields
	@scripts/man-page --update
install: install-man
install-man:
	set -e; for p in $(MAN_PAGES); do s=$(MANDIR)/man$${p##*.}; install -d $$s; install -m 644 $$p $$s/; done
uninstall: uninstall-man
uninstall-man:
	rm -f $(foreach p,$(MAN_PAGES),$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))
.PHONY: man install-man uninstall-man
