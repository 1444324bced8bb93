#!/usr/bin/env bash
# Injects faults into what the manager exchanges with a hub (see test/faults): all plans that
# have not run yet with this manager, in an order that SEED decides, until TIME is over, or
# only those of STORY (several with commas between them). Their results are kept in RESULTS, so that the
# next run goes on where this one ended. PLAN runs one plan, and PLANS that many, which SEED chooses. WRITER=agent
# has this addon's agent tested instead of its manager, and WRITER=upstream Open Cluster Management's
# and managed-serviceaccount's own writers.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -n "${KUBEBUILDER_ASSETS:-}" ] || KUBEBUILDER_ASSETS=$(go -C test/fleet run ./cmd/fleet assets)
export KUBEBUILDER_ASSETS
# Most of the CPU time is that of API servers: collecting their garbage less often saves some of it. The
# manager's memory is then not that of a deployment.
export GOGC="${GOGC:-300}"
args=(-seed="${SEED:-1}" -lanes="${LANES:-4}" -writer="${WRITER:-}")
test=TestRobust
[ -z "${PLANS:-}" ] || test=TestSeeded
if [ "${WRITER:-}" = upstream ] || { [ -z "${WRITER:-}" ] && [ $test = TestRobust ]; }; then
	# Also for this addon's manager, because OCM's own components run in some stories.
	go -C test/fleet run ./cmd/fleet upstream "$PWD/bin/upstream"
	args+=(-upstream="$PWD/bin/upstream")
fi
if [ -n "${PLANS:-}" ]; then
	args+=(-plans="$PLANS")
elif [ -n "${PLAN:-}" ]; then
	args+=(-plan="$PLAN")
else
	args+=(-story="${STORY:-}" -time="${TIME:-60m}" -results="$(realpath -m "${RESULTS:-bin/robust${WRITER:+-$WRITER}.jsonl}")")
fi
# Every wait has a bound of its own.
exec go -C test/faults test -run="^$test\$" -count=1 -timeout=0 -v . "${args[@]}"
