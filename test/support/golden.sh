# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # root and work come from lib.sh
# golden.sh: expected outputs and their inputs, in test/integration/golden and its bundles (scripts/bundle). Source it after lib.sh.
#   golden_open X..              unpacks X.bundle to $work/golden/X, copies the folder X of test/integration/golden there, and changes to
#                                $work/golden
#   golden_compare NAME X/FILE GOT
#                                the test NAME: the file GOT equals section FILE of X.bundle, or the file X/FILE of
#                                test/integration/golden. With GOLDEN_UPDATE=1 it becomes GOT.
golden_open() {
	local name source=$root/test/integration/golden
	mkdir -p "$work/golden"
	for name in "$@"; do
		if [ -e "$source/$name" ]; then cp -r "$source/$name" "$work/golden/" || bail_out "$source/$name cannot be copied"; fi
		[ ! -e "$source/$name.bundle" ] || "$root/scripts/bundle" unpack "$source/$name.bundle" "$work/golden/$name" || bail_out "$source/$name.bundle cannot be unpacked"
		[ -e "$work/golden/$name" ] || bail_out "$source has no $name"
	done
	cd "$work/golden" || exit 1
}
golden_compare() {
	local name=$1 file=$2 got=$3 source=$root/test/integration/golden place
	if [ -e "$source/$file" ]; then place=${source#"$root/"}/$file; else place="${source#"$root/"}/${file%%/*}.bundle: ${file#*/}"; fi
	if [ -n "${GOLDEN_UPDATE-}" ]; then
		if [ -e "$source/$file" ]; then cp "$got" "$source/$file"; else "$root/scripts/bundle" put "$source/${file%%/*}.bundle" "$got" "${file#*/}"; fi ||
			bail_out "$place cannot be written"
		mkdir -p "$(dirname "$work/golden/$file")"
		cp "$got" "$work/golden/$file"
	fi
	check "$name" diff -u --label "$place" --label 'the output' "$work/golden/$file" "$got"
}
