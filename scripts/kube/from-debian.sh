# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, cache, version, log: set by build
# from-debian.sh: Kubernetes 1.20.2 from Debian's source package, with Debian's Go 1.19. A part of build.
readonly DEBIAN_RECIPE=reflect2-go1.18 # what was changed in the source

# The source package, from the mirror that apt itself is set up with, through lists of our own.
debian_fetch() {
	local mirror lists=$cache/apt
	# shellcheck disable=SC2016 # apt expands these
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk '$2 == "main" && $1 !~ /security/ && !n++ {print $1}')
	[ -n "$mirror" ] || die "apt knows no archive with a \"main\" component, so there is no source package to build from"
	mkdir -p "$lists/partial"
	printf 'deb-src %s bookworm main\n' "$mirror" >"$cache/src.list"
	[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] &&
		printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm main\n' "$mirror" >"$cache/src.list"
	local options=(-o "Dir::Etc::sourcelist=$cache/src.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
	say "fetching the source package kubernetes $version"
	: >"$log"
	again debian_download "${options[@]}" || die "apt-get source kubernetes failed: see $log"
	tar -C "$cache" -xf "$cache"/kubernetes_*.orig.tar.*
	[ -d "$cache/kubernetes-$version" ] || die "the source package is not of version $version: $(cd "$cache" && echo kubernetes_*.dsc)"
}

debian_download() { # OPTION..
	(cd "$cache" && apt-get -o Acquire::Retries=3 "$@" update && apt-get -o Acquire::Retries=3 "$@" source --download-only kubernetes) >>"$log" 2>&1
}

# Go 1.18 made reflect.mapiterinit take the iterator from its caller. The vendored reflect2 1.0.1 still expects one to
# be returned: memory is overwritten, and the API server panics in JSON decoding (seen with PATCH of a Deployment).
debian_patch() {
	local folder=$cache/kubernetes-$version/vendor/github.com/modern-go/reflect2
	sed -i -e 's/^func mapiterinit(.*$/func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer, it *hiter)/' \
		-e '/^type hiter struct {$/,/^}$/d' "$folder/unsafe_link.go"
	sed -i -e 's/mapiterinit(type2.rtype/newHiter(type2.rtype/' "$folder/unsafe_map.go"
	cat >>"$folder/unsafe_link.go" <<-'EOT'

		type hiter struct { // as large as the runtime's, with its pointers where the runtime has them
			key, value unsafe.Pointer
			pointers   [6]unsafe.Pointer
			words      [4]uintptr
		}

		func newHiter(rtype unsafe.Pointer, m unsafe.Pointer) *hiter {
			it := new(hiter)
			mapiterinit(rtype, m, it)
			return it
		}
	EOT
	if ! { grep -q 'newHiter(type2' "$folder/unsafe_map.go" && grep -q 'it \*hiter)' "$folder/unsafe_link.go"; }; then
		die "the source is not the one expected: $folder"
	fi
}

debian_remove() { # read-only module files make a plain rm fail
	chmod -R u+w "$cache/gopath" "$cache/gocache" 2>/dev/null || true
	rm -rf "$cache/kubernetes-$version" "$cache/gopath" "$cache/gocache" "${cache:?}/home" "$cache/apt" "$cache/src.list" \
		"$cache"/kubernetes_*
}

# All of them in one go, whatever is asked for: most packages are shared, and the code that is generated first is the same. Without C
# and debugging information, which is half of the work.
debian_build() {
	local name
	local -a names
	read -ra names <<<"$SERVERS"
	command -v apt-get >/dev/null || die "only a Debian system can build $version"
	need_disk "$cache" 5000
	need_packages golang-1.19-go rsync gcc libc6-dev make
	debian_remove
	trap debian_remove EXIT
	debian_fetch
	debian_patch
	mkdir -p "$cache/gopath/src/k8s.io" "$cache/home"
	ln -sfn "$cache/kubernetes-$version" "$cache/gopath/src/k8s.io/kubernetes"
	say "building ${names[*]} $version (log: $log)"
	(
		cd "$cache/gopath/src/k8s.io/kubernetes" || exit
		exec setsid env -u GOFLAGS -u GO111MODULE PATH="/usr/lib/go-1.19/bin:$PATH" HOME="$cache/home" GOPATH="$cache/gopath" \
			GOCACHE="$cache/gocache" CGO_ENABLED=0 KUBE_STATIC_OVERRIDES=kubelet KUBE_GIT_VERSION="v$version" KUBE_GIT_COMMIT=0 \
			KUBE_GIT_TREE_STATE=clean make GOGCFLAGS=all=-dwarf=false GOLDFLAGS='-s -w' WHAT="${names[*]/#/cmd/}"
	) >>"$log" 2>&1 &
	attend "${names[*]} $version" $!
	for name in "${names[@]}"; do
		keep "$cache/gopath/src/k8s.io/kubernetes/_output/local/bin/linux/$(dpkg --print-architecture)/$name" "$name"
	done
	debian_remove
	trap - EXIT
}
