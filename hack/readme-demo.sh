#!/usr/bin/env bash
# Runs the demo, on a fleet of its own, and puts what it prints into the README: without the
# progress of the fleet and of Helm, and without what differs in every run. What some commands of
# kubectl inventory print goes into docs/kubectl-inventory.md, too. It has to be run as root, or the
# demo leaves its second half out. make verify compares the headings, and the two documents; with
# --recorded, nothing is run, and what belongs into the second one is printed as the README has it.
set -euo pipefail
cd "$(dirname "$0")/.."

# recorded prints some commands of the README's demo and their output, once each, as a block of code.
recorded() {
	awk '
		/^<!-- What make demo prints/ { inside = 1 }
		$0 == "</details>" { inside = 0 }
		!inside { next }
		/^   \$ kubectl inventory (doctor|rollout|describe|kubeconfig|check-access)/ { if ($4 in last) delete text[last[$4]]; last[$4] = ++n; text[n] = ""; at = n }
		/^   [^ $]|^[0-9]|^```|^   \$ kubectl (-|inventory (list|explain))/ { at = 0 }
		at { sub(/^   /, " "); text[at] = text[at] ($0 == "" ? "" : "   ") $0 "\n" }
		END { for (i = 1; i <= n; i++) if (i in text) { sub(/\n+$/, "", text[i]); print text[i] "\n" } }
	' README.md
}
if [ "${1:-}" = --recorded ]; then
	recorded
	exit
fi

export FLEET=${README_FLEET:-readme}
trap 'go -C test/fleet run ./cmd/fleet down' EXIT
printed=$(mktemp)
hack/demo.sh | tee "$printed"
shown=$(awk '
	/^(NAME:|Release )/ { helm = 1 }
	/^ *[0-9]+\.[0-9]s  / { helm = 0; next }
	helm { next }
	/^[0-9]+\. / { if (seen++) print ""; print; empty = 1; next }
	/^   / { if (empty) print ""; empty = 0; print }
' "$printed" | sed -E \
	-e "s|$PWD/||g" \
	-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z/YYYY-MM-DDTHH:MM:SSZ/g' \
	-e 's/\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b/HH:MM:SS/g' \
	-e 's/cluster-inventory-[0-9a-f]{12}\b/cluster-inventory-xxxxxxxxxxxx/g' \
	-e 's/127\.0\.0\.1:[0-9]+/127.0.0.1:PORT/g' \
	-e 's/manager-[0-9a-f]+-[0-9a-z]{5}_[0-9a-f-]+/manager-xxxxxxxxxx-xxxxx_xxxx/g' \
	-e 's/login-[0-9]+-([0-9]+)/login-\1/g' \
	-e 's/ +$//')
rm "$printed"
SHOWN=$shown awk '
	/^<!-- What make demo prints/ { print; print "\n```text\n" ENVIRON["SHOWN"] "\n```\n"; inside = 1 }
	$0 == "</details>" { inside = 0 }
	!inside { print }
' README.md >README.new
mv README.new README.md
RECORDED=$(recorded) awk '
	/^<!-- Recorded by hack\/readme-demo.sh/ { print; print "\n" ENVIRON["RECORDED"] "\n"; inside = 1 }
	/^## / { inside = 0 }
	!inside { print }
' docs/kubectl-inventory.md >docs/kubectl-inventory.new
mv docs/kubectl-inventory.new docs/kubectl-inventory.md
