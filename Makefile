# Needs Python 3.11 or newer (with venv) and make; everything else is pinned in requirements.lock and goes into .venv.
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: serve test transformers measured measure site tables check anchors watch lock clean
.DEFAULT_GOAL := serve

serve: site ## builds both languages and serves them on localhost
	@$(BIN)/python scripts/serve.py --port $(PORT)

site: $(READY) ## builds both languages into site/
	@$(BIN)/python scripts/build.py

test: $(READY) ## runs the whole suite
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

transformers: ## holds the families' rules and what autograd keeps to the models of transformers 5.24.0; installs torch for the CPU, 1.2 GB, into build/
	@test -x build/transformers/bin/python || $(PYTHON) -m venv build/transformers
	@build/transformers/bin/pip install -q -r requirements-transformers.txt
	@OMP_NUM_THREADS=1 build/transformers/bin/python -m pytest -n auto --maxprocesses 8 --dist worksteal --noconftest -m transformers tests/test_transformers.py tests/test_transformers_activations.py $(ARGS)

measured: ## measures a small part of data/observations.yaml again; needs what make transformers installs
	@OMP_NUM_THREADS=1 build/transformers/bin/python -m pytest --noconftest -m measured tests/test_measured.py $(ARGS)

measure: ## measures every open case of scripts/measuring/cases.py and records it; hours, but it goes on where it stopped
	@test -x build/transformers/bin/python || $(PYTHON) -m venv build/transformers
	@build/transformers/bin/pip install -q -r requirements-measure.txt
	@build/transformers/bin/python scripts/measure.py case '*' $(ARGS)
	@build/transformers/bin/python scripts/measure.py record

tables: $(READY) ## renders every table into tests/golden/*.csv and shows what moved
	@$(BIN)/python -m byteledger tables

check: $(READY) ## checks data/ and tells every fault
	@$(BIN)/python -m byteledger check

anchors: $(READY) site ## adds the ids that the site has gained to tests/anchors.txt
	@$(BIN)/python scripts/anchors.py

watch: $(READY) ## serves both languages with live reload
	@$(BIN)/python scripts/watch.py --port $(PORT)

$(READY): requirements.lock requirements-build.lock pyproject.toml scripts/environment.py
	@$(PYTHON) scripts/environment.py $(VENV)

lock: ## renews the locks from pyproject.toml; needs uv
	uv pip compile pyproject.toml --extra site --extra test --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements.lock
	uv pip compile --group build --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements-build.lock

clean: ## removes what was built, and the environment
	rm -rf $(VENV) build site *.egg-info
