# Each target makes its own virtual environment, so a fresh machine needs only
# Python 3.11 or newer, make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test coverage test-compiled bench studies docs clean

demo: $(VENV)/base
	$(BIN)/meshlock demo

test: $(VENV)/dev
	$(BIN)/ruff check src tests benchmarks campaigns
	$(BIN)/ruff format --check src tests benchmarks campaigns
	$(BIN)/mypy
	$(BIN)/python -m pytest --durations=15 --numprocesses 2 --dist loadfile

coverage: $(VENV)/dev
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --skip-covered --sort=cover

$(VENV)/base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[live]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot,live,discovery,web,zenoh,fast]' --group dev
	touch $@

# The compiled flavour is built from a copy, so that no .so ever lies in src/.
.venv-compiled/done: pyproject.toml $(shell git ls-files 'src/*.py' 2>/dev/null)
	$(PYTHON) -m venv .venv-compiled
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1' hatchling hatch-mypyc simpy
	rm -rf build/compiled && mkdir -p build/compiled
	cp -r src pyproject.toml README.md LICENSE build/compiled/
	find build/compiled -name '*.so' -delete
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check '.[plot,live,discovery,web]' --group dev
	cd build/compiled && HATCH_BUILD_HOOK_ENABLE_MYPYC=1 ../../.venv-compiled/bin/python -m hatchling build -t wheel -d wheel
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps build/compiled/wheel/*.whl
	rm -rf build/compiled
	touch $@

test-compiled: .venv-compiled/done
	.venv-compiled/bin/meshlock --version
	.venv-compiled/bin/python -m pytest

bench: $(VENV)/dev .venv-compiled/done
	$(BIN)/python benchmarks/simulator.py

# Exit 1 says that some runs are broken, which some studies are there to show.
studies: $(VENV)/dev
	for study in studies/*.toml; do \
		$(BIN)/meshlock sweep $$study --out docs/studies/$$(basename $$study .toml) > /dev/null || test $$? -eq 1 || exit 2; \
	done

docs: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	$(BIN)/mkdocs build --quiet

clean:
	rm -rf $(VENV) .venv-compiled build dist site .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
