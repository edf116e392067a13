# Two commands: `make run` (the headline comparison on real MNIST) and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
SEEDS  ?= 4

SOURCES = pyproject.toml CMakeLists.txt $(shell find src -type f -not -name '*.pyc')

.PHONY: run test lint clean

run: $(VENV)/.installed
	$(BIN)/feelstream reproduce fig1 --seeds $(SEEDS) --out results/fig1

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "feelstream needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# A real install, not an editable one: what users get is what is run and tested.
$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist
