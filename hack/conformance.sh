#!/usr/bin/env bash
# Checks the ClusterProfiles in a namespace of any hub, with the arguments in
# CONFORMANCE_ARGS (--kubeconfig FILE --namespace NAMESPACE --cluster-manager NAME
# --report FILE). Without them, checks those of this addon, on a fleet of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
read -r -a args <<<"${CONFORMANCE_ARGS:-}"
if [ ${#args[@]} -eq 0 ]; then
	RUN='^TestProfilesConform$' TEST_FORMAT=standard-verbose exec hack/test.sh e2e
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
go -C test/e2e build -o "$program" ./cmd/conformance
"$program" "${args[@]}" # in this folder, so that names of files are relative to it
