# One entry for every job; the set-up behind it is in scripts/. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
SETUP := $(BIN)/python -m scripts.setup
JOBS ?= 3
DOCS := README.md $(wildcard docs/*.md)
SHELL_SCRIPTS := .ci/run $(wildcard scripts/*.sh)
# Tests start rocmrun hundreds of times, and each of their workers reads all of them: compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: runtime ## from a bare machine to a launched image: engine, registry, image, lock, plan, launch
	@$(SETUP) up
	@$(SETUP) demo

.PHONY: demo-down
demo-down: runtime ## stop the engine and the registry, if make demo or make test started them
	@$(SETUP) down

.PHONY: test
test: dev ## all that a machine without a GPU can test: checks, unit, golden, docs, real engine
	@$(SETUP) up --tests
	@$(MAKE) --no-print-directory lint
	ROCMRUN_REQUIRE_DOCKER=1 $(BIN)/pytest -n $(JOBS) --dist loadfile -m "not gpu and not slow"

.PHONY: test-slow
test-slow: dev ## the long suites, on a real engine
	@$(SETUP) up --tests
	ROCMRUN_REQUIRE_DOCKER=1 $(BIN)/pytest -m "slow and not gpu"

.PHONY: gpu
gpu: dev ## tests that need a real GPU and an engine that already runs
	ROCMRUN_REQUIRE_DOCKER=1 $(BIN)/pytest -m gpu

.PHONY: check
check: dev lint ## format, lint, types, import rules, shell, spelling, docs; needs no engine
	$(BIN)/pytest -q tests/docs

.PHONY: probe
probe: dev ## join the probe's parts into rocmrun/probe/gpu_probe.py
	$(BIN)/python -m scripts.join_probe

.PHONY: docs
docs: dev ## write the generated parts of README.md and docs/ anew
	$(BIN)/cog -r $(DOCS)

.PHONY: lint
lint: dev
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.join_probe --check
	$(BIN)/shellcheck $(SHELL_SCRIPTS)
	$(BIN)/codespell

.PHONY: runtime
runtime:
	@scripts/venv.sh runtime

.PHONY: dev
dev:
	@scripts/venv.sh dev
