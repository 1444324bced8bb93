#!/usr/bin/env bash
# Makes the release of the last commit twice, in clones in two folders, the second time
# without any result of the first, and checks that nothing differs. CACHE=shared lets the
# second use what was compiled for the first, which takes a few minutes less.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD)

make_in() { # FOLDER
	git clone --quiet --no-checkout . "$1"
	git -C "$1" checkout --quiet --detach "$commit"
	make --no-print-directory -C "$1" release
}

first=$work/first second=$work/another/place
make_in "$first"
[ "${CACHE:-}" = shared ] || export GOCACHE=$work/cache
make_in "$second"
cat "$first/bin/release/image-digest.txt" "$second/bin/release/image-digest.txt" 2>/dev/null
diff -r "$first/bin/release" "$second/bin/release" ||
	{ echo "release-check: two builds of $commit differ" >&2; exit 1; }
echo "release-check: two builds of $commit are the same, byte by byte"
