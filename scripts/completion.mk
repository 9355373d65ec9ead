# SPDX-License-Identifier: Apache-2.0
# Completion scripts for bash, zsh, fish and kubectl go where each looks for them.
SHAREDIR = $(DESTDIR)$(PREFIX)/share
install: install-completion
install-completion: $(OUT)/gpuscale
	install -d $(SHAREDIR)/bash-completion/completions $(SHAREDIR)/zsh/site-functions $(SHAREDIR)/fish/vendor_completions.d
	$(OUT)/gpuscale completion bash >$(SHAREDIR)/bash-completion/completions/gpuscale
	ln -sf gpuscale $(SHAREDIR)/bash-completion/completions/kubectl-gpuscale
	$(OUT)/gpuscale completion zsh >$(SHAREDIR)/zsh/site-functions/_gpuscale
	$(OUT)/gpuscale completion fish >$(SHAREDIR)/fish/vendor_completions.d/gpuscale.fish
	install -D -m 755 scripts/kubectl_complete-gpuscale $(BINDIR)/kubectl_complete-gpuscale
uninstall: uninstall-completion
uninstall-completion:
	rm -f $(SHAREDIR)/bash-completion/completions/gpuscale $(SHAREDIR)/bash-completion/completions/kubectl-gpuscale $(SHAREDIR)/zsh/site-functions/_gpuscale \
	  $(SHAREDIR)/fish/vendor_completions.d/gpuscale.fish $(BINDIR)/kubectl_complete-gpuscale
.PHONY: install-completion uninstall-completion
