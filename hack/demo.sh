#!/usr/bin/env bash
# Demonstrates the addon on a local fleet, and starts the fleet if necessary.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go -C test/e2e run ./cmd/demo -fleet "${FLEET:-default}"
