# Everything runs in .venv, which the first command makes.  `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# small matrices: a second BLAS thread gains nothing, and waiting threads cost a busy machine dearly
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-full lint format docs bench clean

demo: $(READY)
	$(BIN)/symlift demo --out demo

test: $(READY) lint
	$(BIN)/python -m pytest -q -n 2 -m "not slow" --cov --cov-report=term

test-full: $(READY) lint
	$(BIN)/python -m pytest -q --cov --cov-report=term

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python benchmarks/lifting_map.py
	$(BIN)/python benchmarks/fast_solver.py rows
	$(BIN)/python benchmarks/fast_solver.py decline
	$(BIN)/python benchmarks/fast_solver.py scaling
	$(BIN)/python benchmarks/fast_solver.py nothing
	$(BIN)/python benchmarks/diagnosis.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev,docs]'
	touch $(READY)

clean:
	rm -rf .venv build dist demo site .pytest_cache .mypy_cache .ruff_cache .coverage htmlcov
