#!/usr/bin/env bash
# Checks for known vulnerabilities in code that what is released calls. GOVULNDB is the
# vulnerability database, by default Go's own; where it cannot be reached, nothing is
# checked, and a line says so. With "required", that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

unchecked() { # WHY
	echo "verify: nothing was checked for known vulnerabilities: $1"
	[ "$required" = "" ] || exit 1
	exit 0
}

required=${1:-}
govulncheck="go tool -modfile=$PWD/hack/tools/govulncheck/go.mod govulncheck"
db=${GOVULNDB:-https://vuln.go.dev}
go tool -modfile="$PWD/hack/tools/govulncheck/go.mod" -n govulncheck >/dev/null # builds it
# It says when the database was updated only if it can read it.
timeout 20 $govulncheck -db "$db" -version | grep -q '^DB updated:' ||
	unchecked "the database $db cannot be reached (GOVULNDB names another)"
timeout 600 $govulncheck -db "$db" ./... || {
	status=$?
	[ "$status" = 124 ] || { echo "verify: govulncheck fails" >&2; exit "$status"; }
	unchecked "the database $db does not answer within ten minutes"
}
