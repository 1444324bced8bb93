#!/usr/bin/env bash
# Shows that fault injection finds what was once wrong. Each patch in test/faults/reverts takes one
# known fix away and names plans; one of these must have a finding then, and none without the
# patch. The managers, or agents, are built in a copy of the tree, one patch at a time. REVERTS are names of
# patches, by default all. Prints a table of what found each, and fails if one is not found.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -n "${KUBEBUILDER_ASSETS:-}" ] || KUBEBUILDER_ASSETS=$(go -C test/fleet run ./cmd/fleet assets)
export KUBEBUILDER_ASSETS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree" "$work/managers"
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -cf - -T - | tar -xf - -C "$work/tree"
for patch in test/faults/reverts/*.patch; do
	name=$(basename "$patch" .patch)
	[[ " ${REVERTS:-$name} " == *" $name "* ]] || continue
	program=manager
	if grep -qx 'Writer: agent' "$patch"; then program=agent; fi
	echo "building the $program without $name"
	(
		cd "$work/tree"
		git apply "$patch"
		CGO_ENABLED=0 go build -ldflags='-s -w' -o "$work/managers/$name" "./cmd/$program"
		git apply --reverse "$patch"
	)
done
go -C test/fleet run ./cmd/fleet upstream "$PWD/bin/upstream" # OCM's own components run in some stories
# Every wait has a bound of its own.
go -C test/faults test -run='^TestReverts$' -count=1 -timeout=0 -v . -lanes="${LANES:-2}" -reverts="$work/managers" \
	-upstream="$PWD/bin/upstream"
