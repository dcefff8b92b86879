# `make demo`: install and run on the embedded pair. `make test`: lint, types, tests. Both in .venv, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# How llama-cpp-python is built from source; set CMAKE_ARGS yourself for CUDA and the like.
CMAKE_ARGS ?= -DLLAVA_BUILD=OFF -DGGML_RPC=on
export CMAKE_ARGS

demo: $(VENV)/.installed-demo
	$(BIN)/specdec generate --temperature 0 --max-tokens 300 \
		"Write Python functions add, subtract, multiply and divide, each with a docstring." </dev/null

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -m "not real"
	$(BIN)/pytest -m real

$(VENV)/.installed-%: pyproject.toml scripts/install
	@scripts/install $(PYTHON) $(VENV) $*
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: demo test clean
.NOTPARALLEL:
