# Headgate. `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS   += --no-builtin-rules

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 1m
SAMPLES  ?= config/samples
ECHO     ?= 127.0.0.1:18080

# What runs concurrently, and so is tested under the race detector as well. The
# field cases build the gateway with it.
RACE     ?= ./controllers ./controllers/holdoff ./controllers/node ./controllers/source/... ./controllers/status ./dataplane/... ./test/cases

# The version comes by -ldflags: stamping by the go command would fail where the
# checkout belongs to another user.
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false
LINT  := bin/golangci-lint
HELM  := bin/helm
# Writes the copying of our types and their CRDs; the directories are its last words.
CRDGEN   := bin/controller-gen
GENERATE := $(CRDGEN) object crd:crdVersions=v1 paths=./api/...

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/headgate.
	$(BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o bin/headgate ./cmd/headgate

.PHONY: run
run: build ## Build and serve the samples, with a backend that echoes; prints what to try.
	bin/headgate serve $(SAMPLES) --with-echo $(ECHO)

# The whole suite as it is, then what runs concurrently under the race detector,
# then the image's, which build the program as `make build` does, and the paper's.
# What is linted is not vetted again; modules of their own are not linted.
.PHONY: test
test: ## Run all tests that need no root.
	@{ status=0; \
	   go test -vet=off -json ./... || status=1; \
	   go test -vet=off -race -json $(RACE) || status=1; \
	   for module in image bench/paper; do go test -C test/$$module -json ./... || status=1; done; \
	   exit $$status; } | go run ./test/report

.PHONY: lint
lint: $(LINT) ## Run the linters of .golangci.yml.
	$(LINT) run

# Built from source: pinned by test/tools, whatever is installed.
$(LINT): test/tools/go.mod test/tools/go.sum
	cd test/tools && $(BUILD) -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(CRDGEN): test/tools/crds/go.mod test/tools/crds/go.sum
	cd test/tools/crds && $(BUILD) -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen

# As Helm's own Makefile links it: without this it takes itself for a client of
# Kubernetes 1.20.
HELMVERSION = $(shell cd test/tools/helm && go list -m -f '{{.Version}}' helm.sh/helm/v3)
HELMLINK    = -X helm.sh/helm/v3/internal/version.version=$(HELMVERSION) \
  $(foreach p,pkg/chartutil pkg/lint/rules,-X helm.sh/helm/v3/$(p).k8sVersionMajor=1 -X helm.sh/helm/v3/$(p).k8sVersionMinor=36)

$(HELM): test/tools/helm/go.mod test/tools/helm/go.sum
	@echo "building Helm from source: about 3 minutes on 2 cores the first time"
	@cd test/tools/helm && $(BUILD) -v -ldflags "-s -w $(HELMLINK)" -o $(CURDIR)/$@ helm.sh/helm/v3/cmd/helm 2>&1 | \
	  awk '/[ :]/ { print; next } ++n % 200 == 0 { print "  " n " packages"; fflush() }'

# The version of the chart must be a semantic one; images are tagged with VERSION.
.PHONY: chart
chart: $(HELM) ## Check the Helm chart and package it in bin/chart.
	go test -C test/chart -count=1 -run '^Test(Golden|Lint|Refusals|Config|CRDs)$$' .
	rm -rf bin/chart
	$(HELM) package charts/headgate --destination bin/chart --version "$$(charts/version.sh "$(VERSION)")" --app-version "$(VERSION)"

.PHONY: generate
generate: $(CRDGEN) ## Write what is generated: copying and CRDs from api, what the chart repeats, docs/values.md.
	$(GENERATE) output:crd:dir=config/crd
	go run ./test/chartfiles

.PHONY: verify
verify: $(CRDGEN) ## Check formatting, modules, what is generated, and the rules of the house.
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './bin/*')); \
	  if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	go mod tidy -diff
	go mod verify
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	  $(GENERATE) output:crd:dir="$$dir/crd" output:object:dir="$$dir/object"; \
	  if ! { diff -r -x kustomization.yaml config/crd "$$dir/crd" && diff api/v1alpha1/zz_generated.deepcopy.go "$$dir/object/zz_generated.deepcopy.go"; }; then \
	    echo "not as generated from api; run make generate"; exit 1; fi
	go run ./test/chartfiles -check
	go test -count=1 ./test/arch

# The first run builds a Kubernetes node from source (about 12 minutes on 2 cores)
# and keeps it in ~/.cache/headgate-test.
.PHONY: envtest
envtest: $(HELM) ## Test the controller and the chart on a real API server; the first run builds it.
	cd test/cluster && go run . build envtest
	@{ status=0; \
	   for module in cluster envtest scale chart; do go test -C test/$$module -count=1 -json ./... || status=1; done; \
	   go test -C test/cluster/kube-all -count=1 -json ./multicall || status=1; \
	   exit $$status; } | go run ./test/report

.PHONY: conformance
conformance: $(HELM) ## Run the Gateway API's conformance suite on a real node. Needs root, for network namespaces.
	cd test/conformance && go run ./run

# What was made before goes: the README names the archive by a pattern.
.PHONY: image
image: ## Make the container images in bin/image, for amd64, arm64 and armv7.
	rm -rf bin/image
	cd test/image && go run . -version "$(VERSION)"

# About 7 minutes; leave the machine alone meanwhile.
.PHONY: scale
scale: ## Measure thousands of routes on a real API server; the first run builds it.
	cd test/cluster && go run . build envtest
	cd test/scale && go run .

# The node is made of namespaces; what runs on it is this tree's image and chart.
.PHONY: e2e
e2e: $(HELM) ## Install, upgrade and uninstall on a real node, as the README says. Needs root, for network namespaces.
	@go test -C test/e2e -count=1 -timeout 30m -json ./... | go run ./test/report

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (1m), one after the other.
	test/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Run the micro-benchmarks, then the gateway beside other proxies.
	go test -run '^$$' -bench . -benchmem ./dataplane/... ./controllers/...
	go run ./test/bench

# Less than half an hour; leave the machine alone meanwhile. PAPER has flags of it,
# such as -quick.
.PHONY: bench-paper
bench-paper: ## Repeat the paper's experiments, beside nginx and Apache; PAPER=-quick for a look.
	cd test/bench/paper && go run . $(PAPER)
