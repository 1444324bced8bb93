#!/usr/bin/env bash
# Shows the addon at work on a local fleet, which it starts if need be.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go -C test/e2e run ./cmd/demo -fleet "${FLEET:-default}"
