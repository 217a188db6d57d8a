# make help lists the targets.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Images: of the manager, and the execution environment that runs Ansible.
IMG ?= localhost/edpm-operators:latest
RUNNER_IMG ?=
export IMG RUNNER_IMG

# The bundle for OLM: see hack/bundle.sh for these and for OPERATORS, PACKAGE and CHANNEL.
VERSION ?= 0.1.0
REPLACES ?=
# Bundles of the catalog, the newest last. That is the one that make bundle makes.
BUNDLES ?= bundle
export VERSION REPLACES

# Without C, as the manager is released, and without what only debuggers read: one set of
# compiled packages serves the tests, the manager and the components of the lab.
export CGO_ENABLED = 0
export GOFLAGS := $(filter-out -gcflags=%,$(shell go env GOFLAGS)) -gcflags=all=-dwarf=false

# As many targets run next to each other as there are JOBS, and one that fails stops no other.
JOBS ?= 2
ALL_OF = $(MAKE) --no-print-directory --keep-going --jobs $(JOBS)

# Tools are pinned in go.tools.mod, compiled by Go and kept in its cache.
TOOL := go tool -modfile=go.tools.mod
LAB := go run ./test/lab

# What make test tests is everything but the end-to-end tests: packages whose tests
# start an API server, and the others. internal/placement is both.
IMPORTS = go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep -v '^[^ ]*/test/e2e'
SERVED = $$($(IMPORTS) | grep /envtest | cut -d ' ' -f 1)
PURE = $$($(IMPORTS) | grep -v /test/envtest | cut -d ' ' -f 1)
# The longest of them, whose stories are told in several processes, which share an API
# server. They wait more than they work: as many processes, and packages, run at a time as
# keep two CPUs busy. Of the others those that take longest come first.
STORIES = controllers
PROCESSES = 8
PACKAGES = 4
LONGEST = ./test/podified ./cmd/manager ./test/storagecluster ./internal/placement
# lint vets everything. A test binary without a symbol table is linked in three quarters of the
# time, and there are more than a hundred; stack traces need none.
GO_TEST = go test -vet=off -ldflags=-s -timeout 40m
# The modules beside that of the root: every directory with a go.mod, but those that only pin what the lab compiles.
MODULES := $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod -not -path './test/lab/binaries/*' | sort))
export MODULES
# The packages whose resource definitions are made here: that of ceph is Rook's, that of metal3 Metal3's.
OWN_KINDS = $$(go list ./apis/... | grep -v -e /apis/ceph/ -e /apis/metal3/ | paste -sd ';')
# The code whose rights the manager always has. Those of the operator ocs, which may
# label nodes, are in config/overlays/ocs.
RIGHTS = $$(go list ./controllers/... ./webhooks/... ./internal/... ./cmd/... | grep -v /controllers/ocs/ | paste -sd ';')

##@ General

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Generate

.PHONY: manifests
manifests: ## Generate the resource definitions, webhooks and roles from the code.
	go run ./hack/kinds
	$(TOOL) controller-gen crd:generateEmbeddedObjectMeta=true "paths=$(OWN_KINDS)" output:crd:dir=config/crd/bases
	$(TOOL) controller-gen rbac:roleName=manager-role "paths=$(RIGHTS)" output:rbac:dir=config/rbac
	$(TOOL) controller-gen rbac:roleName=edpm-operators-manager-ocs-role 'paths=./controllers/ocs/...' output:rbac:dir=config/overlays/ocs
	hack/split.sh

.PHONY: generate
generate: ## Generate the deep-copy functions of the API, and the texts of its conditions and reasons.
	$(TOOL) controller-gen object 'paths=./apis/...'
	go run ./hack/conditions/texts

.PHONY: docs
docs: ## Generate the API reference and the tables of conditions in docs/.
	hack/reference.sh
	go run ./hack/conditions

.PHONY: bundle
bundle: ## Generate the OLM bundle, bundle/: OPERATORS=nova,dataplane for some operators only.
	hack/bundle.sh bundle $(lastword $(BUNDLES))

.PHONY: catalog
catalog: ## Generate a file-based catalog of the bundles in BUNDLES, bin/catalog. Builds opm the first time.
	hack/bundle.sh catalog bin/catalog $(BUNDLES)

.PHONY: fmt
fmt: ## Format the Go code.
	gofmt -l -w .

##@ Check

.PHONY: vet
vet: ## Run go vet.
	for module in . $(MODULES); do go -C "$$module" vet ./...; done

.PHONY: lint
lint: ## Run golangci-lint, and if installed, ansible-lint and shellcheck.
	+$(ALL_OF) lint-go lint-scripts

.PHONY: lint-go lint-scripts
lint-go:
	lint=$$($(TOOL) -n golangci-lint); for module in . $(MODULES); do (cd "$$module" && "$$lint" run ./...); done
lint-scripts:
	hack/lint-scripts.sh

.PHONY: verify
verify: ## Generate all generated files again, and fail if any of them differs.
	hack/verify.sh

# Tests, their compilers and API servers take memory rather than time to collect garbage.
test test-fast test-stories test-pure test-served test-modules test-race lint: export GOGC = 400

.PHONY: test
test: ## Run the tests. Needs no root; builds etcd and kube-apiserver the first time.
	@$(LAB) binaries >/dev/null
	@go run ./test/progress/make 'make test' 2 test-stories test-python test-served test-pure test-modules

# Two at a time: with three, stories take twice as long, and those that wait for something
# are the first that a busy machine makes fail.
.PHONY: test-stories test-pure test-served test-modules test-python
test-stories:
	KUBEBUILDER_ASSETS=$$($(LAB) binaries) $(TOOL) ginkgo run --procs $(PROCESSES) --timeout 40m --no-color --succinct ./$(STORIES)
test-pure:
	env -u KUBEBUILDER_ASSETS $(GO_TEST) $(PURE)
test-served:
	KUBEBUILDER_ASSETS=$$($(LAB) binaries) $(GO_TEST) -p $(PACKAGES) $(LONGEST) $$(echo "$(SERVED)" | grep -v '/$(STORIES)$$')
test-modules:
	for module in $(MODULES); do go -C "$$module" test -vet=off ./...; done
test-python:
	hack/test-python.sh

.PHONY: test-fast
test-fast: ## Run the tests that need no API server, without slow ones.
	env -u KUBEBUILDER_ASSETS go test -short $(PURE)

.PHONY: test-race
test-race: export CGO_ENABLED = 1
test-race: ## Run the tests in Go with the race detector, which takes twice the time and a C compiler.
	KUBEBUILDER_ASSETS=$$($(LAB) binaries) go test -timeout 60m -race $$(echo "$(SERVED) $(PURE)" | tr ' ' '\n' | sort -u)

# Random clusters that are compared, and the seed that they are drawn from.
DRAWS ?= 20000
SEED ?= 1

.PHONY: compare-scheduler
compare-scheduler: ## Compare predictions with kube-scheduler in DRAWS random clusters from SEED, and try first remedies; 20000 take hours.
	KUBEBUILDER_ASSETS=$$($(LAB) binaries) go test ./internal/placement -run 'TestAgreesWithKubeScheduler|TestTheFirstRemedyHelps' -count=1 -timeout 0 -v -draws $(DRAWS) -seed $(SEED)

.PHONY: compare-ironic
compare-ironic: ## Compare root device hints with ironic-lib's own function, on 5000 random hosts.
	@hack/ironic-lib.sh >/dev/null
	go test ./internal/metal -run TestHintsAgreeWithIronicLib -count=1 -v -hint-draws 5000

# Steps that the model of the engine takes.
STEPS ?= 1000000

.PHONY: test-model
test-model: ## Let everything happen to the engine's model in STEPS steps.
	go test ./internal/edpm -run TestTheEngineKeepsItsPromisesWhateverHappens -count=1 -timeout 0 -v -model.steps $(STEPS)

.PHONY: test-monitoring
test-monitoring: ## Run the tests of rules and dashboard alone, with the code of Prometheus.
	go -C hack/monitoring test ./...

# End-to-end suites with the lab, of which there is one, that of the roles, which takes
# longest, and the others, of which two run at the same time unless JOBS is 1. Those that
# are left out have targets of their own. What a suite with long stories only would link is
# left out without them.
LONG = $(filter 1,$(E2E_LONG))
E2E_LAB = ./test/e2e $(LONG:1=./test/e2e/metal)
E2E_ROLES = ./test/e2e/roles
E2E_NO_LAB = $$(go list ./test/e2e/... | grep -vE '/e2e(/(metal|docs|olm|openstack|ovn|roles|tempest|walkthrough$(if $(LONG),,|recovery)))?$$')
E2E_TEST = go test -vet=off -ldflags=-s -timeout 60m -count=1 -p 1

.PHONY: e2e
e2e: e2e-needs ## Run the end-to-end tests on a real cluster and real hosts on this machine, but for the long ones (root).
	+$(ALL_OF) e2e-roles e2e-lab e2e-without-lab

.PHONY: e2e-lab
e2e-lab: e2e-needs ## Of these, those with the lab.
	$(E2E_TEST) $(E2E_LAB)

.PHONY: e2e-roles
e2e-roles: e2e-needs ## Of these, those of the Ansible roles, on hosts of their own.
	$(E2E_TEST) $(E2E_ROLES)

.PHONY: e2e-without-lab
e2e-without-lab: e2e-needs ## Of these, the others: pretend nodes, programs alone.
	$(E2E_TEST) $(E2E_NO_LAB)

.PHONY: e2e-needs
e2e-needs:
	@hack/install-packages.sh lab test
	@$(LAB) binaries >/dev/null
	@test/lab/images/build.sh pause ansibleee edpm-host nova glance node-exporter $(LONG:1=edpm-machine) >/dev/null

.PHONY: e2e-olm
e2e-olm: ## Of these, those with OLM (root): docs/walkthrough.md and more. Compiles OLM the first time.
	@hack/install-packages.sh lab test openstack
	E2E_OLM=1 go test ./test/e2e/olm ./test/e2e/walkthrough -count=1 -p 1 -timeout 40m

.PHONY: e2e-docs
e2e-docs: ## Run the commands of the documentation, page after page (root). Not part of make e2e.
	@hack/install-packages.sh lab test openstack
	E2E_DOCS=1 go test ./test/e2e/docs -count=1 -timeout 40m

.PHONY: e2e-openstack
e2e-openstack: ## Run those with a real OpenStack (root): computes run guests, cinder-volume reports, Tempest. Not part of make e2e.
	@hack/install-packages.sh lab test openstack
	E2E_OPENSTACK=1 go test ./test/e2e/openstack ./test/e2e/tempest -count=1 -p 1 -timeout 4h -ginkgo.timeout 4h

.PHONY: e2e-vm
e2e-vm: ## Run those of OpenStack and OVN whose hosts are virtual machines (root): reboots, loss of power. Not part of make e2e.
	@hack/install-packages.sh lab test openstack vm
	E2E_OPENSTACK=1 E2E_OVN=1 E2E_HOSTS=vm go test ./test/e2e/openstack ./test/e2e/ovn -count=1 -p 1 -timeout 7h -ginkgo.timeout 7h

.PHONY: e2e-ovn
e2e-ovn: ## Run those with a real OVN and neutron (root): networks and metadata of guests on two hosts. Not part of make e2e.
	@hack/install-packages.sh lab test openstack
	E2E_OVN=1 go test ./test/e2e/ovn -count=1 -timeout 40m

.PHONY: e2e-all
e2e-all: export E2E_LONG = 1
e2e-all: JOBS = 1
e2e-all: DRAWS = 2000
e2e-all: e2e test-python e2e-olm e2e-docs e2e-openstack e2e-vm e2e-ovn test-race test-model compare-scheduler compare-ironic ## Everything: before a release, and when the subject of one of them changes (root).

.PHONY: bench
bench: ## Measure edpm-operators with thousands of nodes; prints a table.
	go run ./test/bench

.PHONY: bench-hosts
bench-hosts: ## Measure what a run takes on 1, 10 and 50 hosts, next to bare ansible-playbook; prints a table (root).
	@hack/install-packages.sh lab test
	python3 -B ansible/tests/bench_hosts.py

.PHONY: figures
figures: lab-needs ## Measure what deployments and changes take on the lab's real hosts; prints a table (root).
	test/demo/figures.sh

##@ Try

.PHONY: demo
demo: ## Run the demo, from an empty machine to guests on computes, one of which moves (root).
	@go run ./test/demo

.PHONY: demo-down
demo-down: lab-down ## Remove everything that make demo created.

.PHONY: lab-up
lab-up: lab-needs ## Bring up a real cluster and three hosts on this machine (root); OLM=1: with OLM; OPENSTACK=1: with OpenStack; OVN=1: with OVN; VMS=1: and a virtual machine.
	$(if $(OPENSTACK)$(OVN),@hack/install-packages.sh openstack)
	$(if $(VMS),@hack/install-packages.sh vm)
	$(LAB) up --hosts $(if $(VMS),--vms $(VMS)) $(if $(OLM),--olm) $(if $(OPENSTACK),--openstack) $(if $(OVN),--ovn)

.PHONY: lab-down
lab-down: ## Remove the lab.
	$(LAB) down

.PHONY: lab-kubeconfig
lab-kubeconfig: ## Print the path of the lab's kubeconfig; with make -s nothing else.
	@$(LAB) kubeconfig

.PHONY: lab-openrc
lab-openrc: ## Print the variables for the OpenStack client of a lab with OpenStack: source <(make -s lab-openrc)
	@$(LAB) openrc

.PHONY: lab-needs
lab-needs:
	@hack/install-packages.sh lab

##@ Build and deploy

.PHONY: build
build: ## Build the manager, bin/manager; GOFLAGS=-trimpath: the same bytes in any directory.
	go build -ldflags '-s -w' -o bin/manager ./cmd/manager

.PHONY: plugin
plugin: ## Build the kubectl plugin, bin/kubectl-edpm.
	go build -ldflags '-s -w' -o bin/kubectl-edpm ./cmd/kubectl-edpm

.PHONY: krew
krew: ## Pack the plugin for all platforms with its krew manifest, bin/krew: VERSION=v1.2.3 URL=https://...
	go run ./hack/krew '$(VERSION)' '$(URL)' bin/krew

.PHONY: release
release: ## Make a release, bin/release: VERSION=v1.2.3 IMG=...; see hack/release.sh.
	hack/release.sh '$(VERSION)'

.PHONY: vulncheck
vulncheck: ## Check for known vulnerabilities; OFFLINE=1 accepts that the database cannot be reached.
	hack/vulncheck.sh

.PHONY: image
image: image-manager image-runner ## Build both images with podman (root for the second).

.PHONY: image-manager
image-manager: build ## Build the image of the manager, IMG, and save it as bin/manager.tar.
	podman build --quiet --pull=never --network=none --timestamp 0 --tag '$(IMG)' --file Containerfile .
	rm -f bin/manager.tar
	podman save --quiet --format docker-archive --output bin/manager.tar '$(IMG)'

.PHONY: image-runner
image-runner: ## Build the execution environment with the collection, localhost/edpm-ansibleee (root).
	test/lab/images/build.sh ansibleee

.PHONY: deploy
deploy: ## Deploy to the cluster of the current kubeconfig: IMG=... RUNNER_IMG=... BASE=... OPERATORS=...
	hack/deploy.sh apply

.PHONY: deploy-lab
deploy-lab: IMG = localhost/edpm-operators:latest
deploy-lab: image-manager ## Build the manager and deploy it to the lab, which must be up (root).
	hack/deploy.sh lab

.PHONY: undeploy
undeploy: ## Remove the manager; the resource definitions and all objects are kept.
	hack/deploy.sh delete
