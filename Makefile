# The same checks as in CI: each target runs stages of .ci/run.
# Knobs: make bench BENCH=Seal BENCHTIME=1s COUNT=10; make fuzz FUZZTIME=60s

export BENCH BENCHTIME COUNT FUZZTIME

.PHONY: all fmt lint test bench fuzz cross ci

all: lint test

fmt:
	gofmt -w .

lint:
	bash .ci/run format vet staticcheck modules

test:
	bash .ci/run test

bench:
	bash .ci/run bench

fuzz:
	bash .ci/run fuzz

cross:
	bash .ci/run cross

ci:
	bash .ci/run
