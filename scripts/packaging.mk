# SPDX-License-Identifier: Apache-2.0
# What belongs to packages and images: bills of materials, the exporter's systemd unit (not enabled by installing it).
UNITDIR ?= $(PREFIX)/lib/systemd/system
UNITS   := $(wildcard manifests/systemd/*.service)
# The controller's image has a libcurl of its own (scripts/image-curl), the system's where that cannot be made. IMAGE_CURL=own: or fail;
# IMAGE_CURL=debian: the system's.
IMAGE_CURL ?= auto
# An image for another architecture has Debian's libcurl: it is not built for it.
image_curl  = curl=$$(scripts/image-curl $(if $(SYSROOT),debian,$(IMAGE_CURL)))
##@ package
image: all ## container images as tars, made without a container engine (root filesystems beside them); IMAGE_CURL=own|auto|debian, ARCH=arm64
	@set -e; $(image_curl); for p in $(PROGRAMS); do n=$$(basename $$p); scripts/image -o $(BUILD)/image/$$n.tar -n $$n:$(VERSION) $(if $(SYSROOT),-s $(SYSROOT)) $${curl:+-l "$$curl"} $$p; done
sbom: image ## bills of materials of the images (SPDX 2.3 JSON), from package data
	@set -e; $(image_curl); for p in $(PROGRAMS); do n=$$(basename $$p); scripts/sbom $${curl:+-l "$$curl"} $(BUILD)/image/$$n.rootfs $$n $(VERSION) >$(BUILD)/image/$$n.spdx.json; \
	  echo "$(BUILD)/image/$$n.spdx.json: $$(jq '.packages | length' $(BUILD)/image/$$n.spdx.json) packages"; done
# The HTTP client and two of its users on the libcurl of the images.
IMAGE_UNIT_TESTS = $(filter $(OUT)/test/test_http_client% $(OUT)/test/test_http_stream $(OUT)/test/test_k8s_client $(OUT)/test/test_promql_real,$(UNIT_TESTS))
image-test: image $(IMAGE_UNIT_TESTS) $(TEST_HELPERS) ## make the images and test them and their libcurl; what has no small libcurl is skipped, saying so
	@set -e; $(image_curl); export IMAGE_CURL_FOLDER="$$curl" IMAGE_CURL_MISSING='it cannot be made here (above)'; \
	  [ -z "$$curl" ] || test/run -w "env LD_LIBRARY_PATH=$$curl" $(TEST_FLAGS) $(IMAGE_UNIT_TESTS); $(call run_tests,test/integration/run-image)
# Where the files of a release are published, for the krew manifest.
RELEASE_URL ?= https://gpuscale.dev/releases/v$(VERSION)
release: sbom ## everything that is published of a version: source, packages, images (amd64, arm64), chart, sums; docs/release.md
	@scripts/deps --check build image release >/dev/null || scripts/deps build image release
	@$(MAKE) --no-print-directory ARCH=arm64 image
	@rm -rf $(BUILD)/dist; scripts/release -o $(BUILD)/dist -b $(BUILD) -v $(VERSION) -u $(RELEASE_URL)
install: install-units
install-units:
	install -d $(DESTDIR)$(UNITDIR)
	set -e; for u in $(UNITS); do sed 's|/usr/local/bin/|$(PREFIX)/bin/|' $$u >$(DESTDIR)$(UNITDIR)/$$(basename $$u); chmod 644 $(DESTDIR)$(UNITDIR)/$$(basename $$u); done
uninstall: uninstall-units
uninstall-units:
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(notdir $(UNITS)))
.PHONY: image sbom image-test release install-units uninstall-units
