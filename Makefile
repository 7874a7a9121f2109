# The commands of the project. `make help` lists them.

TOOLS := go tool -modfile=.ci/tools.mod

.PHONY: help build run test race check fmt docs matrix bench bench-compare fuzz

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./pi-conform
	go build ./cmd/pi-conform

run: build ## judge the real npm loop (installs it on first use)
	./pi-conform run pi@0.84.3

test: ## all tests; the ones that need npm run if PI_CONFORM_NPM=1
	go test ./...

race: ## all tests with the race detector
	go test -race ./...

check: ## formatting, vet, static analysis, outdated idioms, tidy modules
	@out="$$($(TOOLS) gofumpt -l $$(git ls-files '*.go'))"; test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	go vet ./...
	$(TOOLS) staticcheck ./...
	$(TOOLS) exhaustive -d ./...
	@out="$$(go fix -diff ./... 2>&1)"; test -z "$$out" || { echo "go fix would change:"; echo "$$out"; exit 1; }
	go mod tidy -diff

fmt: ## format the Go files
	$(TOOLS) gofumpt -w $$(git ls-files '*.go')

docs: ## write the generated documents anew
	go test ./cmd/pi-conform -run TestGeneratedDocs -update

MATRIX := $(addprefix pi@,0.58.4 0.66.1 0.68.1 0.73.1 0.75.5 0.80.2 0.84.3 0.84.4 0.87.1 1.6.0) oh-my-pi@18.2.3

matrix: build ## write docs/MATRIX.md and docs/matrix.json from a real run (installs all its subjects on first use)
	./pi-conform matrix $(MATRIX) --md docs/MATRIX.md --json docs/matrix.json

bench: ## all benchmarks, ready for benchstat
	go test -run '^$$' -bench . -benchmem -count 5 ./...

bench-compare: ## cases per CPU second beside fast-check on the npm loop (installs both)
	GOGC=1600 PI_CONFORM_COMPARE=1 go test ./adapters -run '^$$' -bench Compare -benchtime 1x

fuzz: ## the native fuzz targets, half a minute each
	go test ./harness/trace -run '^$$' -fuzz FuzzDecode -fuzztime 30s -fuzzminimizetime 5x
	go test ./harness -run '^$$' -fuzz FuzzParseCase -fuzztime 30s -fuzzminimizetime 5x
	go test ./conformance -run '^$$' -fuzz FuzzCheck -fuzztime 30s -fuzzminimizetime 5x
	go test ./fuzz -run '^$$' -fuzz FuzzLoop -fuzztime 30s -fuzzminimizetime 5x
