#!/usr/bin/env bash
# Checks in a copy of the tree that derived files are up to date and go.mod files are
# tidy, and tests what the chart renders, the alerts, and what makes a release. Where Go's
# vulnerability database can be reached, it also checks what is released for known
# vulnerabilities. It never changes the tree itself.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -cf - -T - | tar -xf - -C "$copy"

echo "verify: derived files"
hack/generate.sh "$copy"
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || cmp -s "$file" "$copy/$file" || { echo "verify: $file is out of date: run make generate" >&2; exit 1; }
done
new=$(cd "$copy" && find . -type f | sed 's|^\./||' | while IFS= read -r file; do [ -e "$OLDPWD/$file" ] || echo "$file"; done)
[ -z "$new" ] || { echo "verify: make generate writes files that are not there: $new" >&2; exit 1; }

# Without test/fleet/tools: tidying it downloads everything that the tests of Kubernetes
# need. The fleet builds it, which is enough.
for dir in . test/fleet test/e2e test/faults test/monitoring hack/tools/*/; do
	echo "verify: module $dir is tidy"
	(cd "$copy/$dir" && go mod tidy -diff) || { echo "verify: run go mod tidy in $dir" >&2; exit 1; }
done
echo "verify: reverts of known fixes and patches of other versions apply and compile"
for patch in "$PWD"/test/faults/reverts/*.patch "$PWD"/test/faults/versions/*.patch; do
	(
		cd "$copy" && git apply "$patch" &&
			git apply --numstat "$patch" | cut -f3 | xargs -n1 dirname | sort -u | sed 's|^|./|' |
			CGO_ENABLED=0 xargs go build -trimpath -buildvcs=false &&
			git apply --reverse "$patch"
	) || { echo "verify: $patch does not apply, or does not compile" >&2; exit 1; }
done
hack/verify-chart.sh
echo "verify: the README shows the demo"
diff <(go -C test/e2e run ./cmd/demo -titles) \
	<(awk '/^<!-- What make demo prints/, /^<\/details>/' README.md | grep -E '^[0-9]+\. ') ||
	{ echo "verify: the demo has other steps: run hack/readme-demo.sh" >&2; exit 1; }
diff <(hack/readme-demo.sh --recorded) \
	<(awk '/^## / { inside = 0 } inside; /^<!-- Recorded by hack/ { inside = 1; getline }' docs/kubectl-inventory.md) ||
	{ echo "verify: docs/kubectl-inventory.md has another recording: run hack/readme-demo.sh" >&2; exit 1; }
echo "verify: alerts, with Prometheus' engine"
(cd test/monitoring && go test ./...) || { echo "verify: go test in test/monitoring fails" >&2; exit 1; }
echo "verify: what makes a release"
(cd hack/tools/release && go test ./...) || { echo "verify: go test in hack/tools/release fails" >&2; exit 1; }
echo "verify: known vulnerabilities"
hack/vulncheck.sh
echo "verify: ok"
