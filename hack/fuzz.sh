#!/usr/bin/env bash
# Fuzzes every parser of what spokes, tenants and clients send, each for FUZZTIME, as many
# at a time as there are processors. What is found is kept in the package's testdata/fuzz:
# commit it with the correction, so that the tests try it from then on. Inputs that reach
# new code are kept in Go's build cache.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
root=$PWD kept=$(go env GOCACHE)/fuzz
export bin root kept

# One program for each package, built once for all of its targets.
mapfile -t packages < <(grep -rlE '^func Fuzz' --include=*_test.go cmd internal pkg | xargs -n1 dirname | sort -u)
echo "fuzz: building ${#packages[@]} packages"
printf '%s\n' "${packages[@]}" |
	xargs -P "$(nproc)" -I{} go test -c -vet=off -fuzz . -ldflags="-s -w" -o "$bin/{}/fuzz.test" "./{}"

# Whether a log shows no failure but Go's own at the end of the time: the fuzzer may take its
# deadline for an error of the target (go.dev/issue/75804, corrected in Go 1.27).
isDeadline() {
	local rest
	rest=$(grep -vE '^(fuzz: |warning: |FAIL$|--- FAIL: )' "$1" | sed 's/^ *//; /^$/d')
	[ "$rest" = "context deadline exceeded" ]
}

run() {
	local package=${1%:*} target=${1##*:} log
	log=$bin/$package/$target.log
	cd "$root/$package"
	# By default, one input is simplified for up to a minute, in which nothing else is tried.
	if "$bin/$package/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "${FUZZTIME:-10s}" \
		-test.fuzzminimizetime 100x -test.parallel 1 -test.fuzzcachedir "$kept/$package" >"$log" 2>&1 ||
		isDeadline "$log"; then
		echo "fuzz: $target of $package: $(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -1) inputs, no failure"
	else
		cat "$log"
		echo "fuzz: $target of $package fails" >&2
		return 1
	fi
}
export -f isDeadline run
for package in "${packages[@]}"; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | sed "s|^func |$package:|"
done | xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; run {}'
echo "fuzz: ok"
