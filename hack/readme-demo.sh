#!/usr/bin/env bash
# Runs the demo, on a fleet of its own, and puts what it prints into the README: without the
# progress of the fleet and of Helm, and without what differs in every run. It has to be run
# as root, or the demo leaves its second half out. make verify compares the headings.
set -euo pipefail
cd "$(dirname "$0")/.."
export FLEET=${README_FLEET:-readme}
trap 'go -C test/fleet run ./cmd/fleet down' EXIT
printed=$(mktemp)
hack/demo.sh | tee "$printed"
shown=$(awk '
	/^(NAME:|Release )/ { helm = 1 }
	/^ *[0-9.]+s  / { helm = 0; next }
	helm { next }
	/^[0-9]+\. / { if (seen++) print ""; print; empty = 1; next }
	/^   / { if (empty) print ""; empty = 0; print }
' "$printed" | sed -E \
	-e "s|$PWD/||g" \
	-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z/YYYY-MM-DDTHH:MM:SSZ/g' \
	-e 's/\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b/HH:MM:SS/g' \
	-e 's/cluster-inventory-[0-9a-f]{12}\b/cluster-inventory-xxxxxxxxxxxx/g' \
	-e 's/login-[0-9]+-([0-9]+)/login-\1/g' \
	-e 's/ +$//')
rm "$printed"
SHOWN=$shown awk '
	/^<!-- What make demo prints/ { print; print "\n```text\n" ENVIRON["SHOWN"] "\n```\n"; inside = 1 }
	$0 == "</details>" { inside = 0 }
	!inside { print }
' README.md >README.new
mv README.new README.md
