#!/usr/bin/env bash
# Writes everything that is derived from other sources into a tree: the first
# argument, or this one.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(cd "${1:-.}" && pwd)
charts/generate.sh "$tree"
