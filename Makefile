# make help lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

FLEET ?= default
SPOKES ?= 2
WITH ?=
HELM_ARGS ?=
IMAGE ?= quay.io/open-cluster-management/cluster-inventory-addon:$(shell sed -n 's/^appVersion: //p' charts/cluster-inventory/Chart.yaml)

export FLEET SPOKES WITH HELM_ARGS
export CGO_ENABLED ?= 0

TOOLS := hack/tools
FLEET_CLI := go -C test/fleet run ./cmd/fleet

##@ Build

.PHONY: build
build: ## Build manager, agent, cp-creds and kubectl-inventory into bin/
	hack/build.sh bin ./cmd/...

.PHONY: image
image: ## Build the image IMAGE for this machine's architecture into bin/image.tar, for docker load or kind
	hack/image.sh $(IMAGE) bin/image.tar

.PHONY: example-image
example-image: ## Build the image of an example of a consumer into bin/example.tar (see docs/quickstart.md)
	hack/image.sh example.com/my-consumer:dev bin/example.tar lister

.PHONY: chart
chart: ## Package the Helm chart into bin/
	$(FLEET_CLI) helm -- package $(CURDIR)/charts/cluster-inventory -d $(CURDIR)/bin

.PHONY: release
release: ## Make image, chart, kubectl plugin and their SBOMs in bin/release (PARTS selects some)
	hack/release.sh

.PHONY: release-check
release-check: ## Make the release in two folders and compare them (takes minutes; CACHE=shared fewer)
	hack/release-check.sh

.PHONY: clean
clean: ## Remove build output from the tree
	rm -rf bin

##@ Test

.PHONY: test
test: ## Run unit, stepped and wired tests, and the main journeys on local fleets (e2e has all of them)
	hack/test.sh all

.PHONY: test-unit
test-unit: ## Run the tests that need no fleet (they build and start a real API server)
	hack/test.sh unit

.PHONY: test-race
test-race: ## Run the tests of the main module under the race detector (needs a C compiler)
	hack/test.sh race

.PHONY: fuzz
fuzz: ## Fuzz every parser of what spokes and tenants send, FUZZTIME each (10s)
	hack/fuzz.sh

.PHONY: e2e
e2e: ## Run all journeys, also those that "test" leaves out, before a larger change and a release (RUN=regexp selects some)
	hack/test.sh e2e

.PHONY: test-kube
test-kube: ## Run wired tests and the main journeys on Kubernetes KUBE (1.34, 1.35, 1.36 or 1.37), which is built first
	hack/test-kube.sh $(KUBE)

.PHONY: test-helm4
test-helm4: ## Run the chart, installation, upgrade and removal with Helm 4, which is built first
	hack/test-helm4.sh

.PHONY: robust
robust: ## Inject faults until TIME (60m) is over, and go on where the last run ended; PLAN='...' repeats one plan, WRITER=agent takes the agent, WRITER=upstream OCM's writers
	hack/robust.sh

.PHONY: robust-reverts
robust-reverts: ## Show that fault injection finds each known fix that is taken away; REVERTS='...' names some
	hack/robust-reverts.sh

.PHONY: robust-orders
robust-orders: ## Search all orders of a small world, at most STATES states of each story; MUTANTS=1 negates each clause
	hack/robust-orders.sh

.PHONY: rbac-audit
rbac-audit: ## Run the journeys with audit logs, compare used with granted rights, and write their table (LOGS reads a folder)
	hack/rbac-audit.sh

.PHONY: conformance
conformance: ## Check ClusterProfiles: this addon's, or with CONFORMANCE_ARGS those of any hub (see docs/compatibility.md)
	hack/conformance.sh

.PHONY: conformance-consumers
conformance-consumers: ## Run Kueue and the Knative operator with this addon (builds both, which takes half an hour once)
	hack/conformance-consumers.sh

.PHONY: bench-latency
bench-latency: ## Measure the time from a property edit to the profile, and of a bare watch-and-patch loop
	hack/bench.sh latency

.PHONY: bench-credentials
bench-credentials: ## Measure how long the update and the removal of a copied token take
	hack/bench.sh credentials

.PHONY: bench-agent
bench-agent: ## Measure how much memory an agent with N properties needs
	hack/bench.sh agent

.PHONY: bench-scale
bench-scale: ## Measure what N simulated clusters cost, beside a raw writer and OCM's own (N=1000,3000 shows growth)
	hack/bench.sh scale

.PHONY: bench-placement
bench-placement: ## Count what N simulated clusters lose while Placements choose them all along (N=163,1000 on fresh hubs)
	hack/bench.sh placement

##@ Lint and verify

.PHONY: lint
lint: ## Check code, chart and scripts
	hack/lint.sh

.PHONY: generate
generate: ## Regenerate derived files
	hack/generate.sh .

.PHONY: verify
verify: ## Check in a copy of the tree that derived and module files are up to date
	hack/verify.sh

.PHONY: vulncheck
vulncheck: ## Check what is released for known vulnerabilities; fails if Go's database cannot be reached
	hack/vulncheck.sh required

##@ Fleet

.PHONY: fleet-up
fleet-up: ## Start a hub and SPOKES spokes with OCM (WITH=access adds cluster-proxy and managed-serviceaccount, WITH=local-cluster joins the hub itself)
	$(FLEET_CLI) up

.PHONY: fleet-down
fleet-down: ## Stop the fleet and remove its files, except the build cache
	$(FLEET_CLI) down

.PHONY: fleet-status
fleet-status: ## Show the state of the fleet
	$(FLEET_CLI) status

.PHONY: deploy
deploy: ## Install or upgrade the chart from this tree (HELM_ARGS='--set ...')
	$(FLEET_CLI) deploy

.PHONY: undeploy
undeploy: ## Uninstall the chart
	$(FLEET_CLI) undeploy

.PHONY: demo
demo: ## Demonstrate the addon: fleet, chart, placement, and properties edited on the spokes
	hack/demo.sh

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
