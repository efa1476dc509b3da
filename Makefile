# "make help" lists the targets. Programs go to bin/, logs to .state/logs, downloads to the user's cache directory.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# One set of build flags for programs, images and tests: what one compiled, the others find in Go's cache.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

PROTO_PLUGINS := bin/protoc-gen-go bin/protoc-gen-go-grpc bin/protoc-gen-openapiv3
PROTO_TOOLS := bin/protogen $(PROTO_PLUGINS)
TOOLS := bin/helm bin/controller-gen bin/crd-ref-docs $(PROTO_PLUGINS)
GO_MODULES := . tests/imagebuild tests/localkube hack/tools hack/tools/apilint hack/tools/openapi hack/tools/monitoring

##@ See it work
.PHONY: help demo demo-down
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile

# A kubeconfig counts where it is given to make: that of a shell may be the demo's own.
demo demo-down: GIVEN = $(if $(filter command line,$(origin KUBECONFIG)),"$(KUBECONFIG)")
demo: ## A real Ray program on a ComputeCluster on a real Kubernetes on this machine, or on yours: make demo KUBECONFIG=FILE [IMAGE=…]
	@IMAGE="$(IMAGE)" hack/demo/demo.sh up $(GIVEN)

demo-down: ## Take everything down that "make demo" brought up
	@hack/demo/demo.sh down $(GIVEN)

##@ Change it
.PHONY: generate proto web docs build tools images sbom release clean
generate: bin/controller-gen bin/crd-ref-docs bin/crdtrim bin/celrules proto ## Write what is generated: deepcopy, CRD, chart's copy, reference; Ray's protocol
	@hack/tools/generate.sh

proto: $(PROTO_TOOLS) ## Write proto/gen from Ray's protocol as far as we speak it, and from our own
	@hack/tools/proto.sh

web: ## Build the page into dashboard-proxy/web/dist with node, for the server to embed
	@web/make.sh

docs: ## Build the documentation site into .state/site, and check its links and navigation
	@hack/site/build.sh

build: bin/operator bin/heliostat ## Build the operator and the programs of the tests into bin/
	@tests/run.sh build

tools: $(TOOLS) bin/gotestsum bin/golangci-lint bin/apilint bin/celrules bin/crdtrim bin/protogen bin/schema bin/openapi ## Build the programs that generators and static checks run into bin/

images: bin/images ## Build the container images of the operator, Ray and Redis, without Docker
	@bin/images build all

release: ## Make archives of the command line for five platforms, checksums and krew's manifest: make release VERSION=v0.1.0
	@VERSION="$(VERSION)" hack/tools/release.sh .state/release

sbom: bin/images ## Write a bill of materials of each image, in SPDX, to .state/sbom
	@bin/images sbom all --out .state/sbom

clean: ## Remove bin/ and .state/ (downloads and images stay in the user's cache directory)
	rm -rf bin .state

##@ Test it
.PHONY: check check-root test test-one test-one-down deps verify scan lint unit chart integration web-test localkube-test e2e e2e-existing accept
.PHONY: bench bench-fleet bench-autoscale race vuln fuzz
check: ## For each edit, without root and installing nothing: unit tests, shape, lint of what changed, chart; at most 3 minutes when caches are warm
	@tests/run.sh lint-changed unit-few chart-few

check-root: ## What "make check" leaves out: tests that need root, Redis, promtool or checkov, which it installs
	@tests/run.sh unit-root chart-alerts scan

test: ## Run the tests of every layer, those on real Ray included; installs and builds what they need; FRESH=1 skips nothing
	@tests/run.sh

test-one: ## Run one test of any layer: make test-one NAME=TestX or NAME="text of a spec" [KEEP=1: its Kubernetes stays up]
	@tests/one.sh

test-one-down: bin/localkube ## Take down what KEEP=1 left up
	@bin/localkube down --name $(if $(INSTANCE),$(INSTANCE)-)one-api
	@bin/localkube down --name $(if $(INSTANCE),$(INSTANCE)-)one-ray

deps: ## Install the Debian packages that the tests need
	@tests/run.sh deps

verify: bin/controller-gen bin/crd-ref-docs bin/crdtrim bin/celrules bin/openapi bin/schema $(PROTO_TOOLS) ## Fail if anything generated differs from what "make generate" would write, the kinds or the API below /v1 break users, or docs/results has results of what is gone
	@hack/tools/verify.sh

scan: bin/helm ## Look with checkov at the chart and the Dockerfiles
	@tests/run.sh scan

lint: bin/golangci-lint bin/apilint ## Look for mistakes with golangci-lint in every module, and for breaches of Kubernetes' API conventions in the kinds
	@hack/tools/lint.sh

unit: ## Run the tests that need no Kubernetes (as root: some set packet filters in namespaces of their own)
	@tests/run.sh unit

chart: ## Lint the chart and check what it renders
	@tests/run.sh chart

integration: ## Run the tests on a real API server
	@tests/run.sh integration

web-test: ## Run the tests of the page in a browser, on a real API server
	@tests/run.sh web

localkube-test: ## Run the tests of the local Kubernetes: up, down, killed in between, devices, NetworkPolicy
	@tests/run.sh localkube

e2e: ## Run the tests on real kubelets with real Ray
	@tests/run.sh e2e

e2e-existing: ## Run those that any Kubernetes can show on one that you have: make e2e-existing KUBECONFIG=FILE
	@KUBECONFIG="$(KUBECONFIG)" tests/run.sh e2e-existing

accept: ## Run the full counts and measure the promised times: make accept AREA=first-light [SCENARIOS=up-down,start] [INSTANCE=mine]
	@AREA="$(AREA)" SCENARIOS="$(SCENARIOS)" tests/run.sh accept

bench: ## Measure against the same pods applied by hand
	@tests/run.sh bench

bench-fleet: bin/localkube bin/helm ## Measure many clusters beside a floor of the needed writes: make bench-fleet N=500 [ROUNDS=3] [CONTENDERS=floor,operator] [LAYOUTS=spread,one,mixed] [SETTLE=75s] [IDLE=1m] [OTHER=FILE] [PROFILE=1]
	@go run ./tests/bench/fleet -kubernetes "$$(bin/localkube build)" -n $(or $(N),500) -rounds $(or $(ROUNDS),3) \
	  $(if $(CONTENDERS),-contenders $(CONTENDERS)) $(if $(LAYOUTS),-layouts $(LAYOUTS)) $(if $(SETTLE),-settle $(SETTLE)) $(if $(IDLE),-idle $(IDLE)) \
	  $(if $(OTHER),-other $(OTHER)) $(if $(PROFILE),-profile)

bench-autoscale: ## Compare decisions of the autoscaler with those of Ray's own (from PyPI): make bench-autoscale [PYTHON=...] [LIMIT=5m]
	@go run ./tests/bench/autoscale $(if $(PYTHON),-python $(PYTHON)) $(if $(LIMIT),-limit $(LIMIT))

race: ## Run the tests of packages with goroutines with the race detector: make race [PACKAGES="ray-operator/headclient"]
	@nice hack/tools/race.sh $(PACKAGES)

vuln: ## Look for known vulnerabilities with govulncheck: make vuln [GOVULNDB=file:///...], needs vuln.go.dev or a copy
	@GOVULNDB="$(GOVULNDB)" hack/tools/vuln.sh $(GO_MODULES)

fuzz: ## Fuzz each target for a while: make fuzz [FUZZTIME=30s] [PACKAGES=ray-operator/headclient]
	@FUZZTIME="$(FUZZTIME)" nice hack/tools/fuzz.sh $(PACKAGES)

# Programs come from the user's cache where another checkout has built them from the same content.
CACHED := hack/tools/cached.sh
.PHONY: $(TOOLS) bin/gotestsum bin/golangci-lint bin/apilint bin/celrules bin/crdtrim bin/protogen bin/schema bin/openapi bin/images bin/localkube bin/kueue bin/operator bin/heliostat
$(TOOLS) bin/gotestsum:
	@$(CACHED) $(@F) hack/tools/go.mod hack/tools/go.sum -- sh -c 'go build -C hack/tools -o "$$OUT" $(PACKAGE)'
bin/helm: PACKAGE = helm.sh/helm/v4/cmd/helm
bin/controller-gen: PACKAGE = sigs.k8s.io/controller-tools/cmd/controller-gen
bin/crd-ref-docs: PACKAGE = github.com/elastic/crd-ref-docs
bin/gotestsum: PACKAGE = gotest.tools/gotestsum
bin/protoc-gen-go: PACKAGE = google.golang.org/protobuf/cmd/protoc-gen-go
bin/protoc-gen-go-grpc: PACKAGE = google.golang.org/grpc/cmd/protoc-gen-go-grpc
bin/protoc-gen-openapiv3: PACKAGE = github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv3

bin/golangci-lint:
	@$(CACHED) $(@F) hack/tools/lint -- sh -c 'go build -C hack/tools/lint -o "$$OUT" github.com/golangci/golangci-lint/v2/cmd/golangci-lint'
bin/apilint:
	@$(CACHED) $(@F) hack/tools/apilint -- sh -c 'go build -C hack/tools/apilint -o "$$OUT" .'
bin/openapi:
	@$(CACHED) $(@F) hack/tools/openapi -- sh -c 'go build -C hack/tools/openapi -o "$$OUT" .'
bin/celrules bin/crdtrim bin/protogen bin/schema:
	@$(CACHED) $(@F) hack/tools/$(@F) hack/tools/go.mod hack/tools/go.sum -- sh -c 'go build -C hack/tools -o "$$OUT" ./$(@F)'
bin/images:
	@$(CACHED) $(@F) tests/imagebuild -- sh -c 'go build -C tests/imagebuild -o "$$OUT" .'
bin/localkube:
	@$(CACHED) $(@F) tests/localkube -- sh -c 'go build -C tests/localkube -o "$$OUT" .'
bin/kueue:
	@$(CACHED) $(@F) tests/kueue -- sh -c 'go build -C tests/kueue -o "$$OUT" .'
bin/heliostat:
	@$(CACHED) $(@F) go.mod go.sum apiserver cli dashboard-proxy portal proto ray-operator -- sh -c 'go build -o "$$OUT" ./cli/cmd/heliostat'
# gRPC's pages of traces bring in text/template. That calls methods by name, so the linker would keep all of them.
bin/operator:
	@$(CACHED) $(@F) go.mod go.sum ray-operator proto -- sh -c 'go build -tags=grpcnotrace -o "$$OUT" ./ray-operator/cmd/operator'
