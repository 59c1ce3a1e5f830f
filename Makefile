# Two commands for a newcomer: `make demo` and `make test`. Everything runs in .venv, made on first use.
PYTHON ?= python3
BIN := .venv/bin
# The oldest Python that pyproject.toml allows.
OLDEST_PYTHON ?= python3.11
# Two test processes with one BLAS thread each beat one process with two on the small problems of the tests.
# Compiled tests are kept for the next run and for the processes that tests start, whatever the shell says.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

# What an editable install compiles or reads: where one of these changes, packages are installed again.
INSTALLED_FROM := pyproject.toml setup.py $(wildcard src/exclusivity/kernels/*.[ch])

.PHONY: demo test test-dask fuzz test-oldest test-newest coverage lint format bench reproduce docs clean

demo: .venv/.plot
	$(BIN)/erm demo
	@echo "Next, a table of yours: $(BIN)/erm fit mine.csv --target COLUMN -o mine.erm"

# worksteal: neighbouring tests stay in one process, so that what they share is made once.
test: .venv/.dev
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist worksteal

# Workers and schedulers killed in the middle of fits, Ctrl-C, beside the short tests of the same folder.
test-dask: .venv/.dev
	$(TEST_ENV) EXCLUSIVITY_LONG=1 $(BIN)/python -m pytest tests/dask

# Damaged model and data files by the ten thousand; each check of the loader, switched off, must be missed.
fuzz: .venv/.dev
	$(TEST_ENV) EXCLUSIVITY_LONG=1 $(BIN)/python -m pytest tests/persistence/test_model_fuzz.py
	$(TEST_ENV) $(BIN)/python scripts/fuzz_models.py --count 20000
	$(TEST_ENV) $(BIN)/python scripts/model_memory.py --count 60

# The suite with exactly the lowest versions that pyproject.toml allows. Old packages stand beside newer ones
# that they need in turn, and are told of their deprecations: those are shown, and are no errors.
test-oldest: .venv-oldest/.dev
	$(TEST_ENV) .venv-oldest/bin/python -m pytest -n 2 --dist worksteal -W default::DeprecationWarning

# The suite with whatever is newest today, pre-releases included; installed again in every run.
test-newest: .venv-newest/bin/python
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check \
		--pre --upgrade --upgrade-strategy eager --editable ".[dev]"
	$(TEST_ENV) .venv-newest/bin/python -m pytest -n 2 --dist worksteal

# The same tests under branch coverage, which takes 1.7 times the processor time; below 95 % it fails.
coverage: .venv/.dev
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_words.py

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Solvers beside their peers, two minutes of processor time; `make bench FULL=1` takes a day and measures costs too.
# Peers that cannot be installed are skipped. benchmarks/README.md has the other studies.
bench: .venv/.bench
	$(BIN)/python -m benchmarks.solvers $(if $(FULL),,--quick) --out benchmark
	$(if $(FULL),OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.cost)

# The paper's figure, tables and claims, in reproduction/results. `make reproduce EXCLUSIVITY_DATA=DIR` takes the
# nine data sets from a folder; `make reproduce QUICK=1` has three trials and fewer points.
reproduce: .venv/.reproduction
	$(BIN)/python -m reproduction $(if $(QUICK),--quick) $(if $(EXCLUSIVITY_DATA),--data "$(EXCLUSIVITY_DATA)")

# The site, from the pages of docs/, the docstrings and the examples, which are run. A warning is an error, and so is
# a link that leads nowhere.
docs: .venv/.docs
	rm -rf docs/api docs/gallery docs/_build
	$(TEST_ENV) $(BIN)/python -m sphinx -W --keep-going --quiet -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python scripts/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

.PHONY: dist release-check paper-figures

# Wheel and sdist, in dist/, tried as strangers get them: an empty environment, a fit, the tests of the sdist.
# `make dist DIST_TESTS=tests/objective` runs fewer of these.
DIST_TESTS ?= tests
dist: .venv/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(TEST_ENV) $(BIN)/python scripts/check_dist.py dist $(DIST_TESTS)

# Do tag, version, changelog, citation and recipe agree? `make release-check TAG=v1.2.3`; needs no environment.
release-check:
	$(PYTHON) scripts/check_release.py $(TAG)

# The figures of paper/paper.md.
paper-figures: .venv/.plot
	$(TEST_ENV) $(BIN)/python paper/figures.py

.venv/bin/python .venv-newest/bin/python:
	$(PYTHON) -m venv $(@:/bin/python=)

.venv-oldest/bin/python:
	$(OLDEST_PYTHON) -m venv .venv-oldest

.venv-oldest/.dev: .venv-oldest/bin/python $(INSTALLED_FROM) scripts/lowest_versions.py
	.venv-oldest/bin/python scripts/lowest_versions.py > .venv-oldest/floors.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint .venv-oldest/floors.txt --editable ".[dev]"
	touch $@

.venv/.installed: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.plot: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,cli]"
	touch $@ .venv/.installed

.venv/.reproduction: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[cli,plot]"
	touch $@ .venv/.installed

.venv/.bench: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]" \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,cli]"
	touch $@ .venv/.installed

.venv/.dev: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ .venv/.installed

.venv/.release: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[release]"
	touch $@ .venv/.installed

.venv/.docs: .venv/bin/python $(INSTALLED_FROM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@ .venv/.installed

clean:
	rm -rf docs/_build docs/api docs/gallery docs/sg_execution_times.rst
	rm -rf .venv .venv-oldest .venv-newest .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
	rm -rf build src/exclusivity.egg-info src/exclusivity/kernels/_compiled*.so
