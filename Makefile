# Each target makes its own virtual environment, so a fresh machine needs only
# Python 3.11 or newer, make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test types suite test-whole walk prove coverage wheel test-compiled test-install bench studies reference docs lab clean

demo: $(VENV)/base
	$(BIN)/meshlock demo

# Tests start hundreds of processes. Each would compile the source again if the environment
# forbids to keep bytecode, so that is allowed here.
test test-whole: export PYTHONDONTWRITEBYTECODE :=

# mypy uses one core, and so do the first steps of the suite: side by side they take half the time.
test: $(VENV)/dev
	$(MAKE) --jobs=2 types suite

types: $(VENV)/dev
	$(BIN)/mypy

# Reading the tests once beforehand leaves their bytecode to the processes that run them.
suite: $(VENV)/dev
	$(BIN)/ruff check src tests benchmarks campaigns models proofs docs/hooks
	$(BIN)/ruff format --check src tests benchmarks campaigns models proofs docs/hooks
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest --collect-only --quiet > /dev/null
	$(BIN)/python -m pytest --durations=15 --numprocesses 6 --dist loadfile --no-loadscope-reorder

# Every search to its end; some minutes more.
test-whole: $(VENV)/dev
	MESHLOCK_WHOLE=1 $(BIN)/python -m pytest --numprocesses 6 --dist loadfile --no-loadscope-reorder

# The files that one acquire of a live pool passes, traced.
walk: $(VENV)/dev
	PYTHONPATH=tests:tests/live $(BIN)/python tests/live/interfaces/test_walk.py
	PYTHONPATH=tests:tests/algorithms $(BIN)/python tests/algorithms/test_recovery_walk.py

# Recovery for any number of nodes, permits and epochs, by z3.
prove: $(VENV)/dev
	$(BIN)/python proofs/prove.py

coverage: $(VENV)/dev
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --skip-covered --sort=cover

$(VENV)/base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("meshlock needs Python 3.11 or newer, and this is " + sys.version.split()[0] + ": make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[live]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot,live,discovery,web,zenoh,fast]' --group dev
	touch $@

# The compiled wheel is built from a copy, so that no .so ever lies in src/. CFLAGS are Python's
# own without warnings about C that nobody wrote, which take a fifth of the time.
wheel: dist/compiled

$(VENV)/build: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.25' 'hatch-mypyc>=0.16' 'mypy>=1.18'
	touch $@

dist/compiled: $(VENV)/build pyproject.toml README.md LICENSE $(shell git ls-files src 2>/dev/null)
	rm -rf build/compiled dist && mkdir -p build/compiled dist
	cp -r src pyproject.toml README.md LICENSE build/compiled/
	find build/compiled -name '*.so' -delete
	HATCH_BUILD_HOOK_ENABLE_MYPYC=1 CFLAGS='-DNDEBUG -fwrapv -Wno-all' \
		$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist ./build/compiled
	rm -rf build/compiled
	ls dist/*.whl
	touch $@

.venv-compiled/done: dist/compiled
	$(PYTHON) -m venv .venv-compiled
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1' simpy
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check '.[plot,live,discovery,web,fast]' --group dev
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	touch $@

test-compiled: .venv-compiled/done
	.venv-compiled/bin/meshlock --version
	.venv-compiled/bin/python -m pytest

# The compiled build as README and install.md print it, in an environment that has nothing yet.
test-install:
	rm -rf build/install && mkdir -p build/install
	cp -r src pyproject.toml README.md LICENSE build/install/
	find build/install -name '*.so' -delete
	grep -h -o "HATCH_BUILD_HOOK_ENABLE_MYPYC=1 pip install '[^']*'" README.md docs/start/install.md | sort -u > build/install/printed
	test $$(wc -l < build/install/printed) -eq 1
	$(PYTHON) -m venv build/install/venv
	cd build/install && . venv/bin/activate && . ./printed
	build/install/venv/bin/meshlock --version | grep '(compiled,'
	cd build/install && venv/bin/meshlock demo
	rm -rf build/install

bench: $(VENV)/dev .venv-compiled/done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check simpy
	$(BIN)/python benchmarks/simulator.py

# Exit 1 says that some runs are broken, which some studies are there to show.
studies: $(VENV)/dev
	for study in studies/*.toml; do \
		$(BIN)/meshlock sweep $$study --out docs/appendices/studies/$$(basename $$study .toml) > /dev/null || test $$? -eq 1 || exit 2; \
	done

reference: $(VENV)/dev
	$(BIN)/python tests/docs/reference.py

docs: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The laboratory as static files, which run in a browser tab; make docs puts it beside the pages.
lab: $(VENV)/base
	$(BIN)/python deploy/lab/build.py lab

clean:
	rm -rf $(VENV) .venv-compiled build dist lab site .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
