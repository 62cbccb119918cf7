# Each target makes its own virtual environment, so a fresh machine needs only
# Python 3.11 or newer, make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test compiled bench docs clean

demo: $(VENV)/base
	$(BIN)/meshlock demo

test: $(VENV)/dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --skip-covered --sort=cover | tail -n 25

$(VENV)/base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[live]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot,live,discovery,web,zenoh,fast]' --group dev
	touch $@

clean:
	rm -rf $(VENV) .venv-compiled build dist site .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
