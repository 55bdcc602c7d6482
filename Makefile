# `make demo` and `make test` are all a newcomer needs: each makes .venv when it is missing or stale, and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := pytest -n auto --dist worksteal

.PHONY: demo test test-oldest test-newest test-wheel lint docs bench bench-check reproduce clean

demo: $(STAMP)
	$(BIN)/distreduce demo --overwrite

# FAST=1 leaves out the tests marked slow. One process a core, and one thread in each.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m $(PYTEST) $(if $(filter 1,$(FAST)),-m "not slow")

# The same tests with the oldest and the newest libraries, in environments of their own; `TESTS` chooses some.
# On Linux the torch of an index without CPU builds brings CUDA: some gigabytes.
test-oldest: PYTHON := python3.10
test-newest: PYTHON := python3.13
test-oldest test-newest: test-%: .venv-%/.installed
	OMP_NUM_THREADS=1 .venv-$*/bin/python -m $(PYTEST) -m "not slow and not browser" $(or $(TESTS),tests)

.venv-%/.installed: pyproject.toml constraints/%.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints/$*.txt -e '.[dev]'
	touch $@

# The same tests with the built wheel, in an environment and a folder without the sources.
test-wheel:
	rm -rf dist .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check build
	.venv-wheel/bin/python -m build --wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[dev]"
	folder=$$(mktemp -d) && git archive HEAD | tar x -C $$folder && rm -r $$folder/src && cd $$folder && \
	OMP_NUM_THREADS=1 $(CURDIR)/.venv-wheel/bin/python -m $(PYTEST) -o pythonpath=tests --ignore tests/test_house.py \
	-m "not slow and not browser" $(or $(TESTS),tests)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site, gallery included, with warnings as errors: docs/_build/html/index.html.
docs: $(STAMP)
	rm -rf docs/api/generated  # pages of names that are gone would fail the build
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going docs docs/_build/html

# Everything of the paper, small: minutes. Without --quick it takes hours and stops and goes on as you like.
reproduce: $(STAMP)
	$(BIN)/distreduce reproduce all --quick --jobs 2

bench: $(STAMP)
	$(BIN)/python benchmarks/core.py

# A minute: fails if a part of a fit has lost a fifth against its yardstick, or the first fit compiles for too long.
bench-check: $(STAMP)
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/cold_start.py --check

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-wheel build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/_gallery docs/api/generated
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
