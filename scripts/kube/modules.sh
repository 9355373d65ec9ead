# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # root, cache, KUBERNETES and the functions are those of build
# modules.sh: builds programs through the Go module proxy that Go is configured with. Sourced by build. Each module is
# built by a go.mod that requires it: the `replace` lines of a module count only when it is the main module, so those of
# Kubernetes, which point into its staging folder, are replaced by the published modules of the same release. KEDA
# needs its own, of one version by another.
readonly GO_MIN=26 GO_TOOLCHAIN=go1.26.10 # Go 1.26 is the oldest that Kubernetes 1.36, etcd 3.7 and Helm 4.3 accept
readonly PROXY_LIMIT_S=300 DISK_MIB=6000 TAGS=notest,grpcnotrace,remove_all_sd
limit_s=${GPUSCALE_KUBE_BUILD_S:-3600}
started=$SECONDS
scratch=$root/modules

left_s() { local left=$((limit_s - (SECONDS - started))); echo $((left > 0 ? left : 1)); }
# again COMMAND..: runs the command up to four times, because mirrors and proxies fail temporarily. A command that
# failed after minutes is not repeated.
again() {
	local pause begun=$SECONDS
	for pause in 3 10 30; do
		! "$@" || return 0
		[ $((SECONDS - begun)) -lt 200 ] && [ "$(left_s)" -gt "$pause" ] || return 1
		say "that failed; trying again in $pause s"
		sleep "$pause"
	done
	"$@"
}

# ---- go ----
# go_run SECONDS ARGUMENT..: runs $go with its own folders, so that all its files can be removed. GOGC=400: less garbage
# collection in the compiler, for more memory.
go_run() {
	local limit=$1; shift
	env -u GOROOT GOPATH="$scratch/gopath" GOMODCACHE="$scratch/modules" GOCACHE="$scratch/gocache" GOFLAGS="-mod=mod${GPUSCALE_KUBE_BUILD_JOBS:+ -p=$GPUSCALE_KUBE_BUILD_JOBS}" GOGC=400 \
		GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=0 timeout -k 5 "$limit" "$go" "$@"
}
go_minor() { # GO: prints 26 for a Go 1.26, nothing when it is not a Go
	GOTOOLCHAIN=local GOFLAGS='' "$1" version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p' || true
}
# module_get MODULE@VERSION KEY: downloads the module and prints the value of the key from `go mod download -json`.
module_get() {
	local json
	json=$(mktemp "$scratch/module.XXXXXX")
	if ! again module_download "$1" "$json"; then
		die "the Go module proxy (GOPROXY=$(go_run 10 env GOPROXY)) does not have $1: $(member Error "$json" | cut -c1-300)"
	fi
	member "$2" "$json"
	rm "$json"
}
module_download() { (cd "$scratch" && go_run $PROXY_LIMIT_S mod download -json "$1" >"$2"); }
member() { sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",*\$/\1/p" "$2"; }

# find_go: sets $go to a Go that is new enough. An older Go (from Debian, if none is installed) downloads a newer one as
# a module.
find_go() {
	local candidate minor dir
	go=
	for candidate in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go "$scratch/go/bin/go"; do
		minor=$([ ! -x "$candidate" ] || go_minor "$candidate")
		[ -n "$minor" ] || continue
		go=$candidate
		[ "$minor" -lt $GO_MIN ] || return 0
	done
	[ -n "$go" ] || die "there is no go: scripts/deps e2e installs one"
	say "fetching $GO_TOOLCHAIN with $go"
	dir=$(module_get "golang.org/toolchain@v0.0.1-$GO_TOOLCHAIN.linux-$(dpkg --print-architecture)" Dir)
	chmod -R u+w "$dir"
	rm -rf "$scratch/go"
	mv "$dir" "$scratch/go"
	chmod +x "$scratch"/go/bin/* "$scratch"/go/pkg/tool/*/*
	go=$scratch/go/bin/go
	minor=$(go_minor "$go")
	[ "${minor:-0}" -ge $GO_MIN ] || die "$GO_TOOLCHAIN does not run on this machine"
}

# ---- one module ----
# begin MODULE: sets name, release, build (its folder), log, packages, and reason, the file in which die() leaves why it failed.
begin() {
	module=$1 release=$(module_field "$1" 2)
	name=$(basename "${module%/v[0-9]*}") # server, of etcd
	[ "$name" != server ] || name=etcd
	build=$scratch/build-$name log=$root/build-$name.log reason=$root/build-$name.reason
	mapfile -t packages < <(for program in $(names_of "$module"); do program_field "$program" 2; done)
}
# fetch: downloads all imports of the module's programs, so that the build needs no network. Fetches each module once.
fetch() {
	local file
	mkdir -p "$build"
	file=$(module_get "$module@v$release" GoMod)
	{
		echo 'module gpuscale.dev/build'
		grep -E '^go [0-9]|^godebug ' "$file"
		echo "require $module v$release"
		[[ $module != github.com/kedacore/* ]] || grep -E '^replace [^ ]+ v[^ ]+ => [^./ ][^ ]* v' "$file" || true
		sed -nE "s,^[[:space:]]*(k8s\.io/[a-z-]+) => \./staging/.*,replace \1 => \1 v0.${release#*.},p" "$file"
	} >"$build/go.mod"
	# A program of this project that consists of the module's packages: its main.go and the modules of the same release.
	if [ -d "$here/$name" ]; then
		mkdir -p "$build/$name"
		cp "$here/$name/main.go" "$build/$name/"
		sed "s/^/require /" "$here/$name/modules" >>"$build/go.mod"
	fi
	rm -f "$build/go.sum"
	again fetch_packages || die "cannot fetch the modules of $name: $(tail -n 1 "$log") (see $log)"
	say "fetched the modules of $name, $((SECONDS - started)) s after the start"
}
fetch_packages() { (cd "$build" && go_run "$(left_s)" list -deps -tags $TAGS "${packages[@]}" >/dev/null 2>>"$log"); }

# compile: builds without debugging information, which saves a third of the work.
compile() {
	local flags='' variable begun=$SECONDS program file
	if [ "$name" = kubernetes ]; then
		for variable in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
			flags+=" -X $variable.gitVersion=v$release -X $variable.gitMajor=${release%%.*} -X $variable.gitMinor=$(cut -d. -f2 <<<"$release")"
			flags+=" -X $variable.gitCommit=0000000000000000000000000000000000000000 -X $variable.gitTreeState=clean"
		done
	elif [ "$(module_field "$module" 3)" != - ]; then
		flags="-X $(module_field "$module" 3)=v$release"
	fi
	say "building $name $release with $("$go" version | cut -d' ' -f3) (log: $log)"
	mkdir -p "$build/bin"
	if ! (cd "$build" && go_run "$(left_s)" build -trimpath -gcflags=all=-dwarf=false -tags $TAGS -ldflags "-s -w $flags" -o bin/ "${packages[@]}") >>"$log" 2>&1; then
		[ "$(left_s)" -gt 1 ] || die "$name was not built within $limit_s s; the next build continues from there"
		die "building $name failed: $(tail -n 1 "$log") (see $log)"
	fi
	mkdir -p "$cache"
	for program in $(names_of "$module"); do # into the cache, whole or not at all
		file=$build/bin/$(basename "$(program_field "$program" 2 | sed 's,/v[0-9]*$,,')") # as Go names it
		if ! { cp "$file" "$cache/.$program.new" && mv "$cache/.$program.new" "$cache/$program" && recipe_of "$program" >"$cache/$program.recipe"; }; then
			die "cannot write $cache/$program"
		fi
	done
	say "built $name in $((SECONDS - begun)) s"
}

# ---- all of them ----
report_progress() { while sleep 30 && kill -0 $$ 2>/dev/null; do say "still building, $((SECONDS - started)) s"; done; }

# modules_build_all PROGRAM..: builds the modules one after the other, each with all of its programs, because most
# packages are shared. Downloads run ahead of the compiler. A module that fails does not keep the others from being
# built. A stopped build leaves its folder, and the next build continues from it.
modules_build_all() {
	local program one reporter
	local -a modules fetching failed=()
	[[ $limit_s =~ ^[1-9][0-9]{0,5}$ ]] || die "GPUSCALE_KUBE_BUILD_S=$limit_s: expected seconds"
	mkdir -p "$root"
	exec 9>"$root/lock"
	flock -n 9 || { say "waiting for another build"; flock -w "$limit_s" 9 || die "another build did not finish within $limit_s s"; }
	mapfile -t modules < <(for program in $(missing_of "$@"); do program_field "$program" 3; done | awk '!seen[$0]++')
	[ ${#modules[@]} -gt 0 ] || return 0
	mkdir -p "$scratch"
	[ "$(df -Pm "$scratch" | awk 'NR == 2 {print $4}')" -ge $DISK_MIB ] || die "building takes $DISK_MIB MiB of disk, and $scratch has less"
	find_go
	report_progress 9>&- &
	reporter=$!
	for one in "${modules[@]}"; do
		begin "$one"
		: >"$log"
		rm -f "$reason"
		fetch &
		fetching+=($!)
	done
	for one in "${!modules[@]}"; do
		begin "${modules[one]}"
		if ! { wait "${fetching[one]}" && (compile); }; then failed+=("$reason"); fi
	done
	kill "$reporter"
	reason=
	[ ${#failed[@]} = 0 ] || die "$(cat "${failed[@]}" | paste -sd ';')"
	chmod -R u+w "$scratch"
	rm -rf "$scratch"
}
