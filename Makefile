# The commands of this repository. Each first sets up the machine (setup/setup.sh), so each works in a fresh
# clone on a bare Debian or Ubuntu. TORCH=2.15.0 selects another PyTorch, in a separate virtual environment.

TORCH ?=
VENV := .venv$(if $(TORCH),-torch-$(TORCH))
BIN := $(CURDIR)/$(VENV)/bin

# Parallel test processes: one more than the number of cores, because tests also wait. Each runs one compiler at a
# time, and a compiler can use 2 GB of memory.
JOBS ?= $(shell cores=$$(nproc); echo $$((cores < 8 ? cores + 1 : 8)))
PYTEST = MAX_JOBS=$${MAX_JOBS:-1} $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --instafail $(ARGS)

# The project's own C++ and CUDA files: tracked by git or new, not ignored, not deleted.
CXX_FILES = $(wildcard $(shell git -c safe.directory='*' ls-files -co --exclude-standard -- '*.h' '*.inc' '*.cpp' '*.cu' '*.cuh'))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-demo programs demo test test-all test-unit docs fuzz fresh lint format clean

help: ## show this list
	@echo "opwright: describe an operator once, run it in every PyTorch runtime"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  TORCH=2.15.0 make test           with another PyTorch"
	@echo "  make test ARGS='-k words'        some of the tests"
	@echo "  OPWRIGHT_REQUIRE=cuda make test  fail, rather than skip, without a GPU"

SETUP = @VENV='$(VENV)' TORCH='$(TORCH)'

setup: ## set up this machine: system packages, .venv, Python packages
	$(SETUP) FOR=dev setup/setup.sh

setup-demo: ## the same, with only what `make demo` needs
	$(SETUP) FOR=demo setup/setup.sh

# Otherwise, the first test that needs one of these builds it.
programs: setup ## build what many tests share: the host, the probe and the autograd bridge
	@$(BIN)/python -c 'from opwright.host import install; from opwright.loader import bridge; from opwright.probe import build; install.install_host(); bridge.build_bridge(); build.build_probe()'

demo: setup-demo ## build, check and ship one operator, and run it on photographs without Python
	@$(BIN)/python -m examples.demo

test: setup ## run the tests: of those that are slow or alike, only some
	$(PYTEST)

test-all: setup ## run all tests
	$(PYTEST) --runslow

test-unit: setup ## run the tests that start no compiler
	$(PYTEST) -m "not compiles"

docs: setup ## build the documentation as a site in build/docs; warnings are errors
	@$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs && echo "the start page is build/docs/index.html"

SECONDS ?= 60

fuzz: setup ## grow the corpora of the host's inputs for SECONDS each; needs clang
	@$(BIN)/python -m tests.fuzz.grow $(SECONDS) $(TARGETS)

SUITE ?= stable

fresh: ## run the commands of the README on a bare Debian SUITE (root, debootstrap, 30 GB)
	@python3 tests/fresh.py $(SUITE) $(ARGS)

lint: setup ## run the checks that .ci/run performs before the tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(if $(CXX_FILES),@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES) && echo "clang-format: $(words $(CXX_FILES)) files are formatted",@echo "clang-format: git lists no C++ files; is this a clone?" && false)
	@if command -v shellcheck >/dev/null; then shellcheck setup/setup.sh .ci/run && echo "shellcheck: OK"; fi

format: setup ## fix what lint finds, if a tool can
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	$(if $(CXX_FILES),$(BIN)/clang-format -i $(CXX_FILES))

clean: ## remove everything that make has created here, including the virtual environments
	rm -rf .venv .venv-torch-* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
