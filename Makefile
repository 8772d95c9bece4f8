# Everything runs in .venv, which the first command makes.  `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
# where an environment has its programs
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(PROGRAMS)
READY := .venv/.ready
# small matrices: a second BLAS thread gains nothing, and waiting threads cost a busy machine dearly
export OMP_NUM_THREADS ?= 1
# what the theme says about its successor is not for those who build the pages
export NO_MKDOCS_2_WARNING ?= 1

.PHONY: demo test test-full test-cluster test-ephys test-eeg test-cells test-notebooks test-portable test-pages test-wheel test-lowest release-check check-records fuzz lint format docs bench reproduce reproduce-full clean

demo: $(READY)
	$(BIN)/symlift demo --out demo

# one thread for each of the two processes: with more of them, they wait for each other
test: $(READY) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" --cov --cov-report=term

test-full: $(READY) lint
	$(BIN)/python -m pytest -q -m "not (fuzz and slow)" --cov --cov-report=term

# rows on the workers of a local cluster, one of which is killed; `make test` has the small ones
test-cluster: $(READY)
	$(BIN)/python -m pytest -q tests/test_gather.py tests/test_cluster.py

# the numerically sensitive tests with the kernels of other processors; ALL=--all repeats every test that is not slow
test-portable: $(READY)
	$(BIN)/python tests/portable.py $(ALL) -- -n 2 --dist worksteal

# probes with SpikeInterface itself, which is in no other environment: an environment of its own, made by the first run
test-ephys: .venv-ephys/.ready
	.venv-ephys/$(PROGRAMS)/python -m pytest -q --noconftest tests/test_ephys.py

.venv-ephys/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ephys
	.venv-ephys/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	.venv-ephys/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[ephys]' pytest
	touch .venv-ephys/.ready

# montages with MNE's own objects, in an environment of its own
test-eeg: .venv-eeg/.ready
	.venv-eeg/$(PROGRAMS)/python -m pytest -q --noconftest tests/test_eeg.py

.venv-eeg/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-eeg
	.venv-eeg/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	.venv-eeg/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[eeg]' pytest
	touch .venv-eeg/.ready

# phases of cells with AnnData itself, in an environment of its own
test-cells: .venv-cells/.ready
	.venv-cells/$(PROGRAMS)/python -m pytest -q --noconftest tests/test_phase_of_cells.py

.venv-cells/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-cells
	.venv-cells/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	.venv-cells/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[cells]' pytest
	touch .venv-cells/.ready

# each tutorial as a notebook, run from top to bottom, in notebooks; in an environment of its own
test-notebooks: .venv-notebooks/.ready
	.venv-notebooks/$(PROGRAMS)/python docs/_notebooks.py $(NAMES)

.venv-notebooks/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-notebooks
	.venv-notebooks/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	.venv-notebooks/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[train,data,paper,ephys,eeg,cells]' scikit-image pandas 'nbclient>=0.9' 'nbformat>=5.9' 'ipykernel>=6.29'
	touch .venv-notebooks/.ready

# reports and documentation in headless Chromium, on a phone and a screen, light and dark; fails where there is no Chromium
test-pages: $(READY)
	$(BIN)/python tests/pages/look.py

# the wheel, in an environment of its own without extras: README, command line, demonstration
test-wheel:
	rm -rf dist build .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/$(PROGRAMS)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	.venv-wheel/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/symlift-*.whl
	.venv-wheel/$(PROGRAMS)/python tests/wheel.py

# the same with the lowest versions that pyproject.toml declares
test-lowest:
	rm -rf dist build .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/$(PROGRAMS)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	$(PYTHON) tests/lowest.py > dist/lowest.txt
	.venv-wheel/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c dist/lowest.txt dist/symlift-*.whl
	.venv-wheel/$(PROGRAMS)/python tests/wheel.py

# what a release uploads, and a dry run of it: wheel and source archive are built and checked, each is installed and tried in an
# environment of its own.  TAG=v0.2.0 has to be the version
TAG ?=
release-check:
	rm -rf dist build .venv-release
	$(PYTHON) -m venv .venv-release
	.venv-release/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6'
	.venv-release/$(PROGRAMS)/python -m build
	.venv-release/$(PROGRAMS)/python -m twine check --strict dist/*
	test -z "$(TAG)" || test -f "dist/symlift-$(TAG:v%=%).tar.gz"
	for archive in dist/*; do rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel && \
	  .venv-wheel/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$archive" && \
	  .venv-wheel/$(PROGRAMS)/python tests/wheel.py || exit 1; done

# what the fast solver recovers, compared with the committed records
check-records: $(READY)
	$(BIN)/python benchmarks/fast_solver.py check

# every loader with spoiled files for SECONDS in all (tests/attack/test_fuzz_loaders.py says how to add one), every reader of data
# files for as long again, and texts of 10 MB
SECONDS ?= 600
fuzz: $(READY)
	SYMLIFT_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -m fuzz tests/attack

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# the gallery's scripts are run, and their pictures drawn anew
docs: $(READY)
	$(BIN)/python docs/_gallery.py
	$(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python benchmarks/lifting_map.py
	$(BIN)/python benchmarks/fast_solver.py rows
	$(BIN)/python benchmarks/fast_solver.py decline
	$(BIN)/python benchmarks/fast_solver.py scaling
	$(BIN)/python benchmarks/fast_solver.py nothing
	$(BIN)/python benchmarks/diagnosis.py forty
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/memory.py plan

# The paper's tables.  Runs are kept in RUNS (one file each, so that an interrupted command goes on), results in benchmarks/results,
# and docs/results.md is written from those.  The first is Table 1 with the fast solver and every cheap baseline: under 45 minutes on
# two cores.  The second adds training, LieGAN and its search, topographic ICA, ablation and Morris; it says first what that costs.
RUNS ?= .symlift-runs
CORES ?= 2
TABLE := $(BIN)/symlift experiment table --jobs $(CORES) --cache $(RUNS) --archive benchmarks/results/experiments --page docs/results.md --out benchmarks/results/tables
reproduce: $(READY)
	$(TABLE)

reproduce-full: $(READY)
	$(BIN)/symlift experiment price --jobs $(CORES) --cache $(RUNS)
	$(TABLE) --full
	$(TABLE) tica
	$(TABLE) ablation
	$(TABLE) morris
	$(TABLE) liegan

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev,docs]'
	touch $(READY)

clean:
	rm -rf .venv .venv-ephys .venv-eeg .venv-cells .venv-notebooks notebooks .venv-wheel .venv-release build dist demo site .pytest_cache .mypy_cache .ruff_cache .coverage htmlcov
