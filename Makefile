# The menu. `make` prints it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
RESULTS ?= results/demo
AS_ROOT := $(shell [ $$(id -u) = 0 ] || echo sudo -E)

.PHONY: help
help: ## print this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what is missing (Debian, PyPI, crates.io) and build
	@scripts/setup

.PHONY: demo
demo: setup ## the main job: pages x {lte, 3g} x {cubic, fld}, and its report
	@$(AS_ROOT) .venv/bin/wirepaint doctor --require testbed >/dev/null
	@$(AS_ROOT) .venv/bin/wirepaint run examples/first-light.toml -o $(RESULTS)
	@[ "$$(id -u)" = 0 ] || sudo chown -R "$$(id -u):$$(id -g)" $(RESULTS)
	@.venv/bin/wirepaint compare $(RESULTS) --factor congestion
	@.venv/bin/wirepaint report $(RESULTS) -o $(RESULTS)/report.html
	@echo "The report is $(RESULTS)/report.html"

PYTEST := $(AS_ROOT) env PYTHONDONTWRITEBYTECODE=1 .venv/bin/pytest -q -p no:cacheprovider

.PHONY: test
test: setup ## the tests (45 minutes); those that need root say so when they skip
	cargo test --workspace --quiet
	$(PYTEST) -n auto --dist worksteal -m 'not (timed or testbed or slow)'
	$(PYTEST) -m '(timed or testbed) and not slow'

.PHONY: test-all
test-all: test ## also the slow ones
	$(PYTEST) -m slow

.PHONY: lint
lint: setup ## formatters, linters, types, arrows between the rooms
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	.venv/bin/ruff format --check python tests benches
	.venv/bin/ruff check python tests benches
	.venv/bin/pyright
	.venv/bin/lint-imports

.PHONY: bench
bench: setup ## benchmarks beside peers; prints ratios
	@scripts/setup --bench
	$(AS_ROOT) .venv/bin/python benches/emulator.py
	$(AS_ROOT) .venv/bin/python benches/page_load.py
	$(AS_ROOT) .venv/bin/python benches/congestion.py
	$(AS_ROOT) .venv/bin/python benches/oracle.py
	.venv/bin/python benches/simulator.py

.PHONY: agreement
agreement: setup ## the simulator beside the testbed, judged and fitted pages; writes the guide (three hours)
	@for set in judged fitted; do \
	  file=examples/$$set.toml; [ $$set = judged ] || file=examples/agreement.toml; \
	  $(AS_ROOT) .venv/bin/wirepaint run $$file -o results/agreement/$$set || [ $$? = 1 ] || exit 1; \
	done
	@[ "$$(id -u)" = 0 ] || sudo chown -R "$$(id -u):$$(id -g)" results/agreement
	.venv/bin/python benches/pages_agreement.py results/agreement/judged results/agreement/fitted

.PHONY: agreement-flows
agreement-flows: setup ## the simulator beside Linux, flow by flow (an hour)
	$(AS_ROOT) .venv/bin/python benches/agreement.py -o results/agreement-flows

.PHONY: schema
schema: setup ## write the generated schemas anew
	.venv/bin/wirepaint schema --write

.PHONY: clean
clean: ## remove what was built
	cargo clean
	rm -rf .venv
