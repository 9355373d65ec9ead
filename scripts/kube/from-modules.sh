# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # root, cache, version, log and the functions: of build
# from-modules.sh: programs through the Go module proxy, the one that Go itself is set up with. A part of build.
# Each build has a go.mod of its own that requires the program's module: its `replace` lines would count in no other
# module, so those of Kubernetes, which point into its staging folder, become the published module of the same release.
readonly MODULES_RECIPE=modules-1
readonly GO_MIN=24 GO_TOOLCHAIN=go1.25.8 # Go 1.24 is what Kubernetes 1.34 asks for
readonly PROXY_LIMIT_S=300

go_minor() { # GO: 25 for a Go 1.25, nothing when it is none
	GOTOOLCHAIN=local GOFLAGS='' "$1" version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p'
}
# go_run SECONDS ARGUMENT..: go with folders of its own, so that all of it can be removed.
go_run() {
	local limit=$1; shift
	timeout "$limit" env -u GOROOT GOPATH="$scratch/gopath" GOMODCACHE="$scratch/modules" GOCACHE="$scratch/gocache" GOFLAGS=-mod=mod \
		GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=0 "$go" "$@"
}
module_get() { # MODULE@VERSION: prints its JSON
	: >"$scratch/module.json"
	if ! again module_download "$1"; then
		die "the Go module proxy (GOPROXY=$(go_run 10 env GOPROXY)) does not give $1: $(sed -n 's/^[[:space:]]*"Error": "\(.*\)".*/\1/p' "$scratch/module.json" | cut -c1-300)"
	fi
	cat "$scratch/module.json"
}
module_download() { (cd "$scratch" && go_run "$PROXY_LIMIT_S" mod download -json "$1" >"$scratch/module.json" 2>>"$log"); }

# modules_find_go: a Go that is new enough into $go; else one older, of Debian if need be, fetches it as a module.
modules_find_go() {
	local candidate minor any=''
	for candidate in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go "$scratch/go/bin/go"; do
		[ -x "$candidate" ] || continue
		minor=$(go_minor "$candidate")
		[ -n "$minor" ] || continue
		go=$candidate
		[ "$minor" -lt $GO_MIN ] || return 0
		any=$candidate
	done
	if [ -z "$any" ]; then
		need_packages golang-1.19-go
		any=/usr/lib/go-1.19/bin/go
	fi
	go=$any
	say "fetching $GO_TOOLCHAIN with $any"
	local json dir
	json=$(module_get "golang.org/toolchain@v0.0.1-$GO_TOOLCHAIN.linux-$(dpkg --print-architecture)") || exit 1
	dir=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' <<<"$json")
	chmod -R u+w "$dir"
	rm -rf "$scratch/go"
	mv "$dir" "$scratch/go"
	chmod +x "$scratch"/go/bin/* "$scratch"/go/pkg/tool/*/*
	go=$scratch/go/bin/go
	[ "$(go_minor "$go")" -ge $GO_MIN ] || die "$GO_TOOLCHAIN does not run here"
}

modules_remove() {
	chmod -R u+w "$scratch" 2>/dev/null || true
	rm -rf "$scratch"
}

# modules_write MODULE VERSION: the go.mod of the build, with the language version and defaults of the module itself.
modules_write() {
	local module=$1 release=$2 json file
	json=$(module_get "$module@v$release") || exit 1
	file=$(sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",*$/\1/p' <<<"$json")
	{
		echo 'module gpuscale.dev/build'
		grep -E '^go [0-9]|^godebug ' "$file"
		echo "require $module v$release"
		sed -nE "s,^[[:space:]]*(k8s\.io/[a-z-]+) => \./staging/.*,replace \1 => \1 v0.${release#*.},p" "$file"
	} >"$scratch/build/go.mod"
	rm -f "$scratch/build/go.sum"
}

# modules_fetch PACKAGE..: all that they import, so that the build needs no network. What is there already is not fetched again.
modules_fetch() { (cd "$scratch/build" && go_run $((limit_s - (SECONDS - started))) list -deps -tags notest,grpcnotrace "$@" >/dev/null 2>>"$log"); }

# modules_build WHAT LDFLAGS PACKAGE..: programs into $scratch/bin. No debugging information: a third less work.
modules_build() {
	local what=$1 flags=$2; shift 2
	say "fetching the modules of $what"
	again modules_fetch "$@" || die "the modules of $what cannot be had: $(tail -n 1 "$log") (see $log)"
	say "building $what with $("$go" version | cut -d' ' -f3) (log: $log)"
	(
		cd "$scratch/build" || exit
		exec setsid env -u GOROOT GOPATH="$scratch/gopath" GOMODCACHE="$scratch/modules" GOCACHE="$scratch/gocache" GOFLAGS=-mod=mod \
			GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=0 \
			"$go" build -trimpath -gcflags=all=-dwarf=false -tags notest,grpcnotrace -ldflags "-s -w $flags" -o "$scratch/bin/" "$@"
	) >>"$log" 2>&1 &
	attend "$what" $!
}

# A build that failed or was stopped leaves its folder: the next one goes on from there.
modules_begin() { # MIB of disk it takes
	scratch=$root/modules
	mkdir -p "$scratch/build" "$scratch/bin"
	: >"$log"
	need_disk "$scratch" "$1"
	modules_find_go
}

# All of Kubernetes in one go, whatever is asked for: most packages are shared.
modules_build_kubernetes() {
	local name package flags=''
	local -a names
	read -ra names <<<"$known"
	modules_begin 5000
	modules_write k8s.io/kubernetes "$version"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=${version%%.*} -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
		flags+=" -X $package.gitCommit=0000000000000000000000000000000000000000 -X $package.gitTreeState=clean"
	done
	modules_build "${names[*]} $version" "$flags" "${names[@]/#/k8s.io/kubernetes/cmd/}"
	for name in "${names[@]}"; do keep "$scratch/bin/$name" "$name"; done
	modules_remove
}

modules_build_tool() { # NAME of TOOLS
	local name=$1 release package variable made
	release=$(tool_field "$name" 2) package=$(tool_field "$name" 4) variable=$(tool_field "$name" 5)
	modules_begin 3000
	modules_write "$(tool_field "$name" 3)" "$release"
	modules_build "$name $release" "-X $variable=v$release" "$package"
	made=$(sed 's,/v[0-9]*$,,; s,.*/,,' <<<"$package") # how Go names it
	keep "$scratch/bin/$made" "$name"
	modules_remove
}
