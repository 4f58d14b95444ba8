# Start with `make demo` and `make test`. Both create .venv once.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
ALL_READY := .venv/all-ready
DOCS_READY := .venv/docs-ready

.PHONY: demo test test-all lint dist bench fuzz kills mutants openapi docs tutorials pictures release research-test results clean

demo: $(READY)
	@$(BIN)/tercet demo

test: $(READY) lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# Needs more packages, a Chromium for the playground (Debian: apt install chromium) and npm for axe-core.
test-all: $(ALL_READY)
	OMP_NUM_THREADS=1 AXE_CORE=.venv/node_modules/axe-core/axe.min.js \
	  $(BIN)/pytest --numprocesses 2 --dist loadfile -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/encode_speed.py
	$(BIN)/python benchmarks/encode_memory.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/python benchmarks/match_speed.py
	$(BIN)/python benchmarks/cross_speed.py
	$(BIN)/python benchmarks/train_speed.py
	$(BIN)/python benchmarks/index_speed.py
	$(BIN)/python benchmarks/pairs_speed.py
	$(BIN)/python benchmarks/sampling_speed.py

# The packages to upload. A wheel that is built otherwise names a folder of this machine.
dist: $(READY)
	TERCET_RELEASE=1 $(BIN)/python -m hatchling build -d dist
	cd packages/minilm && ../../$(BIN)/python -m hatchling build -d ../../dist

mutants: $(READY)
	OMP_NUM_THREADS=1 nice $(BIN)/python tests/mutants/run.py

fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --minutes 30

kills: $(READY)
	$(BIN)/python tests/kill/run.py --writing 100 --training 50 --encoding 50 --serving 50 --full 40

openapi: $(READY)
	$(BIN)/python -m tercet.serve.openapi > docs/openapi.json

# The site, in build/docs. Warnings are errors; nothing is fetched from a network.
docs: $(DOCS_READY)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs build/docs
	@echo 'open build/docs/index.html'

# Runs the pages with code, and writes what it prints into them. The pictures come from the same models.
tutorials: $(ALL_READY) pictures
	OMP_NUM_THREADS=1 $(BIN)/python docs/_ext/run_pages.py --write \
	  $$($(BIN)/python docs/_ext/run_pages.py --list)

pictures: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python docs/pictures/draw.py

# Wheel and sdist in dist/, checked, with a list of what an installation contains (CycloneDX).
release: $(ALL_READY)
	rm -rf dist
	$(MAKE) dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/release/contents.py dist
	$(BIN)/cyclonedx-py requirements constraints.txt --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/tercet.cdx.json

research-test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest research/tests

results: $(READY)
	$(BIN)/python research/results.py

# torch comes first and alone, so that nothing after it installs another build.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'tercet needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; }
	@$(PYTHON) -c 'import ensurepip' \
	  || { echo 'Python has no venv module here: on Debian, apt install python3-venv'; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	@touch $(DOCS_READY)

$(ALL_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs,test-all]'
	if command -v npm > /dev/null; then npm install --silent --prefix .venv axe-core@4 \
	  || echo 'axe-core could not be installed: its tests are skipped'; fi
	@touch $(ALL_READY)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
