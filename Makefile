# Everything a checkout can do. Needs Python 3.11 or newer, make and a C++ compiler.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types proto proto-check models bench clean

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml deploy/check_tools.sh
	@PYTHON="$(PYTHON)" sh deploy/check_tools.sh
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (hnswlib compiles for about half a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(STAMP) ## Make the virtual environment and install everything that serving and testing need

demo: $(STAMP) ## Index the demo corpus, start a front and three content nodes, ask, serve (ONCE=1: exit)
	@$(BIN)/winnow demo $(if $(ONCE),--once --listen 127.0.0.1:0)

test: $(STAMP) format-check lint types proto-check ## Check format, lint, types and stubs, and run every test
	@$(BIN)/python -m pytest

.PHONY: format-check
format-check: $(STAMP)
	@$(BIN)/ruff format --check .

lint: $(STAMP) ## Lint
	@$(BIN)/ruff check .

format: $(STAMP) ## Format the code and mend what the linter can
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

types: $(STAMP) ## Check types (mypy --strict)
	@$(BIN)/mypy winnow stateless content_node models bench tests

proto: $(STAMP) ## Regenerate the stubs in winnow/v1 from proto/
	@sh proto/generate.sh $(BIN)/python

proto-check: $(STAMP) ## Fail if the committed stubs are not what proto/ gives
	@rm -rf var/stubs && mkdir -p var/stubs && sh proto/generate.sh $(BIN)/python var/stubs
	@for stub in var/stubs/winnow/v1/*; do \
	    cmp -s $$stub winnow/v1/$$(basename $$stub) \
	        || { echo "winnow/v1/$$(basename $$stub) is stale: run make proto"; exit 1; }; done

models: $(STAMP) ## Install what training needs (PyTorch, transformers, onnx)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,models]'

clean: ## Remove the virtual environment and everything that was built
	@rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .hypothesis
