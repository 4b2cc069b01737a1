SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

binary := bin/conduit-mcp
# What is shipped needs no C; the race detector does, so it is used where Go has
# found a C compiler.
static := CGO_ENABLED=0
race   := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
gofmt  := $(shell go env GOROOT)/bin/gofmt
flags  := -trimpath -ldflags "-s -w"
# 30 MB
limit  := 30000000
# A Python script that measures servers side by side and takes --rounds, --json
# and --list; make bench does without where there is none.
side_by_side ?= $(firstword $(wildcard ../*/bench/bench.py))

.PHONY: build man demo test test-long test-real-cli interop regressions baseline check cover docs snapshots bench

build:
	$(static) go build $(flags) -o $(binary) ./cmd/conduit-mcp

# Manual pages, as bin/man/conduit-mcp-zip-open.1.
man:
	go run ./internal/man bin/man

demo: build
	go run ./internal/demo $(if $(verbose),-verbose) $(binary)

# Within minutes on two cores: tests that repeat themselves do so seldom, make
# check vets, and nobody debugs these binaries.
groups := registry middleware internal ops cmd
test   := go test $(race) -vet=off -ldflags '-s -w' -timeout 25m
test:
	@for group in $(groups); do \
		printf '\n== tests of %s\n' "$$group"; \
		$(test) "./$$group/..." | { grep --line-buffered -v 'no test files' || true; }; \
	done

# The tests that repeat themselves, as often as they should; and calls raced
# against another process that exchanges directories for links.
race_for ?= 60s
test-long:
	@packages=$$(grep -rl --include='*_test.go' /internal/longtest cmd internal middleware ops registry | xargs -n 1 dirname | sort -u); \
	printf '\n== long tests of\n%s\n' "$$packages"; \
	LONG_TESTS=1 $(test) $$(printf './%s ' $$packages)
	LONG_RACE=$(race_for) go test -count=1 -run TestExchangedForALink -timeout 60m ./ops/all

# Real coding agents from the npm registry against a model of the test's own;
# REALCLI_DIR keeps the installation.
test-real-cli:
	go test -tags realcli -run TestRealAgents -v -timeout 30m ./internal/agentcli

# Archives of other programs, and theirs of ours; searches and listings against
# find, grep, du and ripgrep. Needs those that .ci/run installs.
interop:
	go vet -tags interop ./internal/pack ./internal/zipws ./ops/all
	go test -tags interop -run 'Others|Theirs|Sparse' ./internal/pack
	go test -tags interop -run 'OtherPrograms|Documents|OtherFormats' ./internal/zipws
	go test -tags interop -run 'Against' ./ops/all

# What calls allocate and answer, held against testdata/bench/baseline.json. The
# race detector would be counted, so this is apart from the other tests.
regressions:
	go test -count=1 -run TestRegressions ./internal/bench

# After a review of what has changed.
baseline:
	go test -count=1 -run TestRegressions ./internal/bench -update

check: build
	@bad=$$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -print0 | xargs -0 $(gofmt) -l); \
	if [ -n "$$bad" ]; then echo "not formatted (run gofmt -w):"; echo "$$bad"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	GOOS=darwin $(static) go vet ./...
	GOOS=windows $(static) go vet ./...
	go tool staticcheck ./...
	@size=$$(wc -c < $(binary)); echo "$(binary): $$((size)) bytes"; \
	if [ $$size -ge $(limit) ]; then echo "larger than $(limit) bytes"; exit 1; fi
	$(MAKE) regressions
	$(MAKE) test

cover:
	@mkdir -p bin
	go test -timeout 15m -coverprofile=bin/cover.out \
		-coverpkg=./registry/...,./middleware/...,./ops/...,./internal/... ./...
	go tool cover -func=bin/cover.out | tail -n 1

docs:
	go test ./cmd -run TestReference -update

snapshots:
	go test ./cmd -run 'TestSnapshots' -update

# BENCHMARKS.md and testdata/bench/growth.svg; bench_flags="-parts growth"
# and the like make a part of it, see go run ./internal/bench -help.
bench: build
	go run ./internal/bench -side-by-side "$(side_by_side)" $(bench_flags) $(binary)
