# SPDX-License-Identifier: Apache-2.0
# What belongs to packages and images: bills of materials, the exporter's systemd unit (not enabled by installing it).
UNITDIR ?= $(PREFIX)/lib/systemd/system
UNITS   := $(wildcard manifests/systemd/*.service)
sbom: image ## bills of materials of the images (SPDX 2.3 JSON), from package data
	@set -e; for p in $(PROGRAMS); do n=$$(basename $$p); scripts/sbom $(BUILD)/image/$$n.rootfs $$n $(VERSION) >$(BUILD)/image/$$n.spdx.json; \
	  echo "$(BUILD)/image/$$n.spdx.json: $$(jq '.packages | length' $(BUILD)/image/$$n.spdx.json) packages"; done
install: install-units
install-units:
	install -d $(DESTDIR)$(UNITDIR)
	set -e; for u in $(UNITS); do sed 's|/usr/local/bin/|$(PREFIX)/bin/|' $$u >$(DESTDIR)$(UNITDIR)/$$(basename $$u); chmod 644 $(DESTDIR)$(UNITDIR)/$$(basename $$u); done
uninstall: uninstall-units
uninstall-units:
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(notdir $(UNITS)))
.PHONY: sbom install-units uninstall-units
