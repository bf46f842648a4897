# Everything a checkout can do. Needs Python 3.11 or newer and make; hnswlib needs a C++ compiler.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-serving test-models test-integrations simulate fuzz busy lint format format-check types types-models
.PHONY: proto api proto-check proto-released models lock platforms sbom audit clean

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# leave it empty, and `make test` leaves out all that needs PyTorch
MODELS ?= yes
# what `make fuzz` and `make busy` run; for how long, how often
MINUTES ?= 10
TESTS   ?= tests
RUNS    ?= 20
AT_ONCE ?= 1
# the seeds of `make simulate`
SEEDS   ?= 200
FIRST   ?= 0
JOBS    ?= 1

# code that needs PyTorch, which most machines lack
NEEDS_TORCH  := models bench/reading/networks.py bench/words.py tests/models tests/checkpoints.py tests/heads_made.py tests/learning.py tests/restored.py
TORCH_STAMP  := $(VENV)/.installed-models
# integrations and their frameworks
INTEGRATIONS := langchain-winnow=langchain-core haystack-winnow=haystack-ai llama-index-winnow=llama-index-core
TEST_INDEX   := var/integrations/index
RELEASED     := proto/released.binpb
# where every locked package but hnswlib has a wheel; `make platforms` checks it
PLATFORMS    := x86_64-manylinux_2_28 aarch64-manylinux_2_28 aarch64-apple-darwin
PYTHONS      := 3.11 3.14
UV           := uv==0.13.9
# what the image has beside the least that serving needs
IMAGE_EXTRAS := documents graph mcp nats otel s3

# what each part of `make test` left out, to be shown at its end
SKIPPED := var/skipped
PYTEST  := $(BIN)/python -m pytest
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
say     = @printf '\n== %s\n' $(1)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml deploy/check_tools.sh deploy/install_graph.sh
	@PYTHON="$(PYTHON)" sh deploy/check_tools.sh
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (hnswlib compiles for about half a minute) ..."
	@$(INSTALL) --editable '.[dev]'
	@sh deploy/install_graph.sh $(BIN)/python
	@touch $@

setup: $(STAMP) ## Create the virtual environment and install what serving and testing need

demo: $(STAMP) ## Index the demo corpus, start a front and three content nodes, ask, serve (ONCE=1: exit; LISTEN=HOST:PORT)
	@$(BIN)/winnow demo $(if $(ONCE),--once) $(addprefix --listen ,$(or $(LISTEN),$(if $(ONCE),127.0.0.1:0)))

test: ## Run every check and every test (MODELS=: without those that need PyTorch)
	@rm -rf $(SKIPPED)
	$(call say,'1 of 2: serving')
	@$(MAKE) --no-print-directory test-serving
	$(call say,'2 of 2: making models')
	@$(if $(MODELS),$(MAKE) --no-print-directory test-models,echo 'left out, as asked for by MODELS=')
	$(call say,'skipped tests and what they need')
	@cat $(SKIPPED)/*.txt | grep . || echo '    0'

test-serving: $(STAMP) format-check lint types proto-check ## Run the checks and tests that need no PyTorch
	$(call say,'tests: a dot each (two processes for each core, at most four)')
	@$(PYTEST) -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --ignore=tests/models --skipped-to=$(SKIPPED)/serving.txt

test-models: $(TORCH_STAMP) types-models ## Run the checks and tests that need PyTorch
	$(call say,'tests of models: a line for each file')
	@$(PYTEST) --verbose tests/models --skipped-to=$(SKIPPED)/models.txt

# not a part of `make test`, which must not need three frameworks
test-integrations: $(STAMP) $(TEST_INDEX) ## Test integrations, each with its framework in an environment (1 GB; not in `make test`)
	@for each in $(INTEGRATIONS); do \
	    printf '\n== %s\n' $${each%=*}; \
	    INTEGRATIONS_INDEX=$(abspath $(TEST_INDEX)) sh integrations/test.sh $${each%=*} $${each#*=} $(BIN)/python || exit 1; done

$(TEST_INDEX): deploy/demo/passages.jsonl integrations/testing/corpus.py
	@mkdir -p $(@D) && rm -rf $@
	@$(BIN)/python integrations/testing/corpus.py > $(@D)/passages.jsonl
	@$(BIN)/winnow index build --passages $(@D)/passages.jsonl --out $@

simulate: $(STAMP) ## Simulate a cluster with faults, from seeds (SEEDS=200, FIRST=0, JOBS=1)
	@$(BIN)/python -m simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

fuzz: $(STAMP) ## Run the property tests repeatedly from random seeds (MINUTES=10, TESTS=tests)
	$(call say,'property tests of $(TESTS) from random seeds (MINUTES=$(MINUTES))')
	@until=$$(($$(date +%s) + 60 * $(MINUTES))); while [ $$(date +%s) -lt $$until ]; do \
	    $(PYTEST) -n auto --maxprocesses 4 -m hypothesis --hypothesis-profile=fuzz $(TESTS) \
	        || { [ $$? -ne 1 ] || cat tests/found_by_fuzz.txt; exit 1; }; done

busy: $(STAMP) ## Run the tests beside two busy loops until RUNS runs of this commit have ended (RUNS=20, AT_ONCE=1, TESTS=tests)
	@$(BIN)/python tests/busy.py $(BIN)/python $(RUNS) $(TESTS) $(AT_ONCE)

format-check: $(STAMP)
	$(call say,'format')
	@$(BIN)/ruff format --check .

lint: $(STAMP) ## Lint
	$(call say,'lint')
	@$(BIN)/ruff check .

format: $(STAMP) ## Format the code and apply the linter's fixes
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

types: $(STAMP) ## Check types (mypy --strict) of code that needs no PyTorch
	$(call say,'types (a minute if nothing was checked before)')
	@$(BIN)/mypy client/hatch_build.py proto winnow bench deploy simulation tests $(NEEDS_TORCH:%=--exclude '^%')

types-models: $(TORCH_STAMP) ## Check types of code that needs PyTorch
	$(call say,'types of models (a minute if nothing was checked before)')
	@$(BIN)/mypy $(NEEDS_TORCH)

proto: $(STAMP) ## Regenerate the stubs in winnow/v1 from proto/
	@sh proto/generate.sh $(BIN)/python

api: $(STAMP) ## Write docs/api.md from the comments in proto/
	@$(BIN)/python proto/reference.py docs/api.md

proto-check: $(STAMP) ## Check the protos: fresh stubs, lint, compatibility with the last release
	$(call say,'protos')
	@rm -rf var/stubs && mkdir -p var/stubs && sh proto/generate.sh $(BIN)/python var/stubs
	@for stub in var/stubs/winnow/v1/*; do \
	    cmp -s $$stub winnow/v1/$$(basename $$stub) \
	        || { echo "winnow/v1/$$(basename $$stub) is stale: run make proto"; exit 1; }; done
	@$(BIN)/buf lint
	@$(BIN)/buf breaking --against $(RELEASED)

proto-released: $(STAMP) ## Record the present protos as those of the last release
	@$(BIN)/buf build --exclude-source-info --output $(RELEASED)

models: $(TORCH_STAMP) ## Install what training needs (PyTorch, transformers, onnx)

$(TORCH_STAMP): $(STAMP)
	@$(BIN)/python -c 'import torch' 2>/dev/null || cat deploy/size_of_pytorch.txt
	@$(INSTALL) --editable '.[dev,models]'
	@touch $@

lock: $(STAMP) ## Write requirements.lock for the image (UPGRADE=1: newest versions)
	@$(INSTALL) $(UV)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    $(IMAGE_EXTRAS:%=--extra %) --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) \
	    --output-file requirements.lock pyproject.toml

platforms: $(STAMP) ## Check that all locked packages have wheels for x86-64, ARM64 and macOS (asks the public index)
	@$(INSTALL) $(UV)
	@for platform in $(PLATFORMS); do for python in $(PYTHONS); do \
	    MACOSX_DEPLOYMENT_TARGET=14.0 $(BIN)/uv pip compile --quiet --no-deps --no-header --no-annotate \
	        --python-platform $$platform --python-version $$python --only-binary :all: --no-binary hnswlib \
	        --output-file var/platform.txt requirements.lock || exit 1; \
	    echo "$$platform, Python $$python: $$(grep -c == var/platform.txt) packages"; done; done

sbom: $(STAMP) ## Write var/sbom.json (CycloneDX): the image's packages with checksums
	@$(INSTALL) cyclonedx-bom==7.5.0
	@mkdir -p var
	@$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --mc-type application \
	    --output-reproducible --output-format JSON --output-file var/sbom.json 2>var/sbom.log \
	    || { cat var/sbom.log; exit 1; }
	@echo var/sbom.json

audit: $(STAMP) ## Look up known vulnerabilities of the image's packages (asks the public index)
	@$(INSTALL) pip-audit==2.10.1
	@$(BIN)/pip-audit --requirement requirements.lock --require-hashes --disable-pip --strict

clean: ## Remove the virtual environment and all build results
	@rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .hypothesis
