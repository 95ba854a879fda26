# `make demo` shows the product, `make test` checks it; both need Python 3.11 or newer and nothing else.
SHELL := /bin/bash
python := .venv/bin/python
compile := .venv/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
PORT ?= 8000

.PHONY: help setup setup-dev demo run test test-long lint audit bench soak fuzz reproduce mutate mutants map screens messages docs lock clean

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/ -/'

setup: .venv/.installed  ## virtual environment with the locked dependencies

setup-dev: .venv/.installed-dev

.venv/.installed: requirements.txt scripts/setup.sh
	@scripts/setup.sh requirements.txt
	@touch $@

.venv/.installed-dev: requirements-dev.txt scripts/setup.sh
	@scripts/setup.sh requirements-dev.txt
	@touch $@ .venv/.installed

demo: setup  ## demo study at http://127.0.0.1:8000 (SERVE=0: end after the report; SUBSCRIBERS=1000: a small one)
	@$(python) manage.py demo --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve) $(if $(SUBSCRIBERS),--subscribers $(SUBSCRIBERS))

run: setup  ## serve what is there, without the demo
	@$(python) manage.py run --port $(PORT)

test: setup-dev  ## tests; starts PostgreSQL and Redis for them (ARGS: options for pytest)
	@$(python) -m scripts.run_tests $(ARGS)

test-long: setup-dev  ## the tests that take long: whole installations, kills, walks of all pages (ARGS: options for pytest)
	@$(python) -m scripts.run_tests --long $(ARGS)

map: setup-dev  ## how the code is laid out: modules and lines by folder, circles, late imports, words of docs
	@$(python) -m scripts.house

lint: setup-dev  ## style, types, imports, English, migrations
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/codespell
	$(python) -m scripts.plain_english
	$(python) -m scripts.mutants --check
	$(python) manage.py makemigrations --check --dry-run
	$(python) manage.py check

bench: setup-dev  ## speed of ingest and of sanitising, beside other libraries in the same run, and of pages (ARGS: of benchmarks.ingest)
	@$(python) -m benchmarks.ingest $(ARGS)
	@$(python) -m benchmarks.sanitise
	@$(python) -m benchmarks.locations
	@$(python) -m benchmarks.pages

soak: setup-dev  ## errors are as stated (hours; KEYS=200: less), and rows count once whatever is killed (RUNS=100)
	@for each in soak scenario_coverage number_coverage joint_coverage derived_coverage compare_coverage association \
	  class_coverage table_change; do $(python) -m benchmarks.$$each $(if $(KEYS),--keys $(KEYS)) || exit 1; done
	@$(python) -m benchmarks.maps
	@$(python) -m benchmarks.synthesise
	@$(python) -m benchmarks.exactly_once --runs $(or $(RUNS),100)

audit: setup-dev  ## known weaknesses: of our code (bandit), and of what we depend on (pip-audit; asks its database)
	.venv/bin/bandit --quiet --recursive --configfile pyproject.toml --baseline docs/bandit_known.json ldp reports mobility scripts manage.py
	.venv/bin/pip-audit --strict --requirement requirements.txt --no-deps --disable-pip

fuzz: setup-dev  ## any files, for MINUTES=10: none may crash a reader, hang it, or be counted wrongly
	@$(python) -m scripts.fuzz_readers --minutes $(or $(MINUTES),10)

mutate: setup-dev  ## what no test notices: one number or operator changed at a time (ARGS: modules of ldp/)
	@$(python) scripts/mutate.py $(ARGS)

mutants: setup-dev  ## break each important rule, one at a time: its test must fail (ARGS="--only NAME")
	@$(python) -m scripts.mutants $(ARGS)

reproduce: setup-dev  ## docs/reproduction.md: what the papers claim, recomputed; some minutes (ARGS: options)
	@$(python) -m benchmarks.reproduce $(ARGS)

screens: setup-dev  ## pictures of the pages of analysts, anew (ARGS="--language fr --only report")
	@$(python) -m scripts.screens $(ARGS)

messages: setup-dev  ## catalogues of translations, anew from the source (CHECK=1: only say what is wrong)
	@$(python) -m scripts.messages $(if $(filter 1,$(CHECK)),--check)

docs: setup-dev  ## the documentation as a site in var/site, without a network (CHECK=1: only say which generated pages are old)
	@$(python) -m scripts.docs $(if $(filter 1,$(CHECK)),--check)

lock: setup-dev  ## write requirements*.txt anew from requirements*.in
	$(compile) requirements.in --output-file requirements.txt
	$(compile) requirements-dev.in --output-file requirements-dev.txt

clean: setup  ## remove var/: databases, keys, demo (YES=1: do not ask)
	@$(python) scripts/clean.py $(if $(filter 1,$(YES)),--yes)
