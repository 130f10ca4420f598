# Every command a person types here; `make` alone prints them.
#
#   make test FULL=1               all that a change needs, 36 minutes on two cores
#   make tour PYTHON=python3.12    another Python than python3 (3.10 or newer)
#   make serve PORT=8080           another port than 8000
#
# Nothing is installed outside .venv, and every target first brings .venv into the
# state it needs (tools/environment.py), which takes no time once that is done.

# .venv stays with the Python that it was made with
PYTHON ?= $(shell .venv/bin/python -c "" 2> /dev/null && echo .venv/bin/python || echo python3)
PORT ?= 8000

BIN := .venv/bin
PAGES = $(shell git ls-files '*.rst')
# not what learners mend, pieces of answers, and what pages show as wrong
SHELL_FILES = $(shell git ls-files '*.sh' '*.sbatch' '*.pbs' .ci/run \
    ':!exercises' ':!tests/exercises' ':!tests/lint' ':!docs/examples/pbs_traps' \
    ':!docs/examples/lint_four_launchers.sbatch')
WORKFLOWS = $(wildcard .github/workflows/*.yml)
ISSUE_CONFIG = .github/ISSUE_TEMPLATE/config.yml
ISSUE_FORMS = $(filter-out $(ISSUE_CONFIG),$(wildcard .github/ISSUE_TEMPLATE/*.yml))

.DEFAULT_GOAL := help
.PHONY: help env tour test nightly gpu matrix site serve epub pdf cluster figures transcripts lint bench clean distclean

help: ## print these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))

tour: env ## train on one device, then as 2 nodes x 2 ranks, compare, build the site
	@$(BIN)/python tools/tour.py

test: env ## check the exercises, the solutions and all else (FULL=1: with all answers)
	@$(BIN)/python tools/run_tests.py $(if $(FULL),--full)

nightly: env ## the long variants of tests that FULL=1 leaves out
	@$(BIN)/python tools/run_tests.py --nightly

# No env: where the GPUs are, there may be no network, and a PyTorch of the site
gpu: ## run the suite for a GPU with PYTHON
	@$(PYTHON) tools/gpu.py

matrix: env ## try the programs with all PyTorch releases that can be had (an hour or more)
	@$(BIN)/python tools/matrix.py

site: env ## build the pages into _build/html
	@$(BIN)/python tools/site_builder.py

serve: site ## build the pages and show them on http://127.0.0.1:8000
	@$(BIN)/python tools/serve.py $(PORT)

epub: env ## build the pages as a book for e-readers
	@$(BIN)/python tools/book.py epub

pdf: env ## build the pages as a PDF, for which LaTeX must be installed
	@$(BIN)/python tools/book.py pdf

cluster: env ## start a Slurm cluster of four nodes on this machine
	@$(BIN)/workshop cluster up

figures: env ## draw docs/figures/*.svg again
	@$(BIN)/python tools/figures.py

transcripts: env ## record again what the commands on the pages print
	@$(BIN)/python tools/transcripts.py record

lint: env ## check style, types, spelling, shell scripts, pages, schemas, commit messages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/shellcheck --shell=bash $(SHELL_FILES)
	$(BIN)/codespell
	$(BIN)/sphinx-lint $(PAGES)
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(ISSUE_FORMS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config $(ISSUE_CONFIG)
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci .gitlab-ci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/pre-commit validate-config
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml containers/compose.yaml
	$(BIN)/hadolint containers/Dockerfile containers/workshop/Dockerfile
	$(BIN)/python tools/commit_message.py --range origin/main..HEAD
	$(BIN)/pytest -q -s tests/scripts/test_programs.py tests/grader/test_house_rules.py

bench: env ## measure how fast the grader is
	@$(BIN)/python tools/bench.py

clean: ## remove what was built; the environment and your progress stay
	rm -rf _build build .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment, too
	rm -rf .venv .workshop/cache

env:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" 2> /dev/null || { \
	echo "make: $(PYTHON) is missing or too old, the workshop needs 3.10 or newer: \
	install it, or name another Python: make PYTHON=python3.11 tour" >&2; exit 2; }
	@$(PYTHON) tools/environment.py
