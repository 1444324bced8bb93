#!/usr/bin/env bash
# Runs Kueue and the Knative operator, in the versions that docs/kueue.md and
# docs/knative.md name, as these pages say: on a fleet of their own, which is removed at the end. They are built
# here, since the tests have a limit of time that the builds may take longer than.
set -euo pipefail
cd "$(dirname "$0")/.."
fleet="go -C test/fleet run ./cmd/fleet"
trap 'FLEET=consumers $fleet down' EXIT
FLEET=consumers SPOKES=2 WITH=consumers $fleet up
TEST_FORMAT=standard-verbose KEEP_FLEET=1 hack/test.sh consumers
