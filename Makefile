# Builds, installs, tests. The version stands once, in the control file.
#
# No PGXS: there is no C to compile, and PGXS would have to be installed (on Debian it is in a package of its own).

EXTENSION := cerebro_db
PG_CONFIG ?= pg_config
# The interpreter embedded in the server, which need not be the python3 on the PATH.
PLPYTHON  ?= /usr/bin/python3
# The interpreter of the virtual environment: Debian's, since PostgreSQL embeds the same one.
PYTHON    ?= $(shell .ci/python)
URL       ?= postgresql://

SOURCES   := pyproject.toml setup.py assembly.py $(EXTENSION).control $(wildcard docs/reference/sql/*.md) \
             $(shell find cerebro_db plpy sql migrations -name __pycache__ -prune -o -print)
# Changes when the clone is moved, its Python is another one, or the environment is made otherwise: each makes one useless.
MADE      := .venv/made-$(shell (echo "$(CURDIR) $(if $(PYTHON),$$($(PYTHON) -V))"; cat .ci/venv) | cksum | cut -d' ' -f1)

PIP := .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help all server install uninstall setup installcheck demo test test-long properties test-bench greenplum chaos floors matrix bench bench-tables
.PHONY: dist reference objects lint clean bootstrap

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | column -t -s'|'

all: ## build the extension script and the upgrade scripts into build/
	@$(PLPYTHON) assembly.py build

# Compiled here, for the server's user may write nothing there; by what is in each file, for copies have other times.
install: server all ## install into the server of PG_CONFIG and the Python of PLPYTHON (DESTDIR is respected)
	install -d "$(DESTDIR)$(SHARE)" "$(DESTDIR)$(SITE)"
	install -m 644 build/*.sql build/*.control "$(DESTDIR)$(SHARE)"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	for file in $$(cd plpy && find cerebro_plpy -name '*.py' -o -name '*.sql'); do \
	    install -D -m 644 "plpy/$$file" "$(DESTDIR)$(SITE)/cerebro_plpy.new/$$file" || exit; done
	install -m 644 build/VERSION build/sql-reference.md "$(DESTDIR)$(SITE)/cerebro_plpy.new/cerebro_plpy"
	$(PLPYTHON) -m compileall -q --invalidation-mode checked-hash \
	    -s "$(DESTDIR)$(SITE)/cerebro_plpy.new" -p "$(SITE)" "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy"
	mv "$(DESTDIR)$(SITE)/cerebro_plpy.new/cerebro_plpy" "$(DESTDIR)$(SITE)"
	rmdir "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	@! test -e "$(BINARIES)/gpstate" || printf '%s\n' $(OTHER_HOSTS)

server:
	@bash .ci/server "$(PG_CONFIG)" "$(PLPYTHON)"

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(SHARE)"/$(EXTENSION)--*.sql "$(DESTDIR)$(SHARE)/$(EXTENSION).control"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy"

install uninstall: SHARE = $(shell $(PG_CONFIG) --sharedir)/extension
install uninstall: SITE = $(shell $(PLPYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
install: BINARIES = $(shell $(PG_CONFIG) --bindir)

# Greenplum's pg_config says that it is PostgreSQL; what manages a cluster lies beside it.
define OTHER_HOSTS
"" "This is a Greenplum. Copy to every other host of the cluster, to the same places:" \
$(foreach file,$(wildcard build/*.sql build/*.control),"    $(DESTDIR)$(SHARE)/$(notdir $(file))") \
"    $(DESTDIR)$(SITE)/cerebro_plpy/" \
"Trainers run on every host that has segments: their environment (trainer_python in cerebro.setting) must lie at the" \
"same place on all of them. psycopg2 is needed on the coordinator (and its standby) only."
endef

setup: ## set up a server of your own, as root: with DATABASE=flowers ROLE=ann
	@./setup --database "$(DATABASE)" $(foreach role,$(ROLE),--role "$(role)")

# A second make for what follows, because the first has read this file before there was a Python.
READY := $(MAKE) --silent

installcheck: bootstrap ## check the server that URL or libpq's environment variables name
	@$(READY) .venv/package
	.venv/bin/cerebro-db check --url "$(URL)"

demo: bootstrap ## from a bare machine to a leaderboard
	@$(READY) .venv/package
	.venv/bin/cerebro-db demo

# The order is that of pyproject.toml.
PYTEST := .venv/bin/pytest -rfEs --dist loadscope --no-loadscope-reorder

test: bootstrap ## run the tests, on a PostgreSQL that they start themselves; with TESTS="tests/upgrade -n 0" these
	@$(READY) .venv/dev .venv/dbt/made .venv/package
	@.ci/tools
	@# Three processes keep two cores busy: each waits for a server now and then. Long tests need more memory.
	$(PYTEST) -n 3 -m "not long" --hypothesis-profile few $(TESTS)

test-long: bootstrap ## run the slow tests that rarely tell more, and `make floors`
	@$(READY) .venv/dev .venv/dbt/made .venv/package
	@.ci/tools
	$(PYTEST) -n 2 -m long
	@$(READY) floors

properties: bootstrap ## try each property with more examples than `make test`; with NEW=1 with new ones
	@$(READY) .venv/dev .venv/package
	$(PYTEST) -n 2 -m hypothesis $(if $(NEW),--hypothesis-profile new)

# What of each room works otherwise on a cluster, in a quarter of an hour. The user may write into the server's folders;
# TESTS="..." runs others.
ON_SEGMENTS := tests/integration/greenplum tests/contract/test_platform.py tests/upgrade \
    $(addprefix tests/integration/,dashboard/test_pages.py endings/test_background.py endings/test_kills.py \
        endings/test_locks.py endings/test_queue.py endings/test_resume.py endings/test_transactions.py training/test_replay.py \
        training/test_runs.py training/test_strategies.py search/test_acts.py models/test_train.py \
        models/test_evaluate.py models/test_importance.py models/test_attribution.py models/test_drift.py \
        models/test_register.py export madlib/test_tour.py tables/test_custom_functions.py \
        client/test_check.py client/test_optuna.py security/test_privileges.py training/test_features.py)
greenplum: bootstrap ## install into the Greenplum that URL names, and run on it what works otherwise there
	@$(READY) .venv/dev .venv/package
	@.ci/greenplum "$(URL)" $(PLPYTHON)
	CEREBRO_TEST_GREENPLUM_URL="$(URL)" $(PYTEST) -n 2 -m "not long" --hypothesis-profile few -k greenplum $(or $(TESTS),$(ON_SEGMENTS))

# A round that failed is repeated alone by the seed that it printed, such as SEED=16/3.
chaos: MINUTES ?= 15
chaos: SEED ?= $(shell date +%s)
chaos: MOMENTS ?= 20
chaos: bootstrap ## kill the server at MOMENTS, and disturb runs for MINUTES in every way that is known, drawn from SEED
	@$(READY) .venv/dev .venv/package
	CHAOS_MINUTES=$(MINUTES) CHAOS_MOMENTS=$(MOMENTS) CHAOS_SEED=$(SEED) .venv/bin/pytest -s tests/chaos

floors: bootstrap ## try the oldest releases of the libraries that pyproject.toml allows
	@.ci/floors $(PYTHON)

# TESTS is as for `make test`; KEEP=1 keeps the folders.
SUITES ?= trixie forky
matrix: ## run the tests on the PostgreSQL and the Python of other releases of Debian (root and debootstrap)
	@for suite in $(SUITES); do .ci/matrix $$suite $(TESTS) || exit; done

# What BENCH may say: .venv/bin/python -m bench --help
bench: bootstrap ## measure beside other ways to do the same work; with BENCH="--scale report" write docs/internals/benchmarks.md
	@$(READY) .venv/bench .venv/package
	PYTHONPATH=tests/support:tests/contract .venv/bin/python -m bench $(BENCH)

# TABLES, SEEDS (a number), SECONDS and CONTENDERS name what is measured; BUSY=2 keeps two cores busy meanwhile, AGAIN=ours
# replaces what is there, TABLES=none only reports, and WRITE=1 writes docs/internals/benchmarks.md.
bench-tables: bootstrap ## measure models of real tables beside AutoGluon, FLAML and others; adds what is missing to bench/quality/results.jsonl
	@$(READY) .venv/bench .venv/package
	PYTHONPATH=tests/support:tests/contract .venv/bin/python -m bench.quality \
        $(if $(TABLES),--tables $(TABLES)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(SECONDS),--seconds $(SECONDS)) \
        $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(if $(BUSY),--busy $(BUSY)) $(if $(AGAIN),--again $(AGAIN)) \
        $(if $(WRITE),--write)

test-bench: bootstrap ## run the tests of what `make bench` computes with
	@$(READY) .venv/dev .venv/package
	.venv/bin/pytest bench/tests

dist: bootstrap ## write what a release consists of into dist/: a wheel, a source archive, and an archive for PGXN
	@$(READY) .venv/dev
	rm -rf dist
	.venv/bin/python -m build --no-isolation --outdir dist
	.venv/bin/python assembly.py archive dist
	.venv/bin/twine check --strict dist/*.whl dist/*.tar.gz

reference: ## write signatures and tables of arguments into docs/reference/sql, after a change of a declaration in sql/
	@$(PLPYTHON) assembly.py reference

objects: bootstrap ## record the extension's objects in tests/upgrade/objects.txt, after a change of the interface
	@$(READY) .venv/dev .venv/package
	.venv/bin/pytest -q tests/upgrade tests/integration/greenplum -k objects --write-objects

lint: bootstrap ## ruff (rules and format), mypy in strict mode, what the server's Python lacks, how the code reads (.ci/style)
	@$(READY) .venv/dev .venv/package
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/vermin --target=3.9- --no-tips --violations --quiet plpy/cerebro_plpy
	.venv/bin/python .ci/style

clean: ## remove what make built; the embedded server and its data stay
	rm -rf build dist $(EXTENSION).egg-info .mypy_cache .ruff_cache .hypothesis
	rm -rf --one-file-system .matrix
	for folder in .venv .floors .peers; do [ ! -d $$folder ] || rm -rf "$$(realpath $$folder)" $$folder; done

# The virtual environment. Each stamp file says which step is done, so that a second call costs nothing.

bootstrap:
	@.ci/bootstrap

$(MADE):
	@echo "Making the virtual environment .venv with $(PYTHON)"
	@.ci/venv $(PYTHON)
	@touch $@

.venv/runtime: pyproject.toml $(MADE)
	@echo "Installing TensorFlow, Keras, LightGBM and what else is needed; the first time this downloads some 300 MB"
	@.ci/packages $(PYTHON) tensorflow,boosting,demo
	@touch $@

.venv/dev: .venv/runtime
	@echo "Installing JAX, PyTorch, LightGBM, Optuna, pytest, ruff and mypy; the first time this downloads some 280 MB"
	@.ci/packages $(PYTHON) tensorflow,jax,torch,boosting,automl,demo,export,tf2onnx,dev
	@.venv/bin/python -m pip install --no-deps 'keras-hub>=0.32' regex tokenizers --quiet --disable-pip-version-check
	@touch .venv/runtime $@

.venv/dbt/made: docs/examples/dbt/requirements.txt $(MADE)
	@echo "Installing dbt into an environment of its own, for it wants older libraries than mypy does"
	@$(PYTHON) -m venv --clear .venv/dbt
	@.venv/dbt/bin/python -m pip --quiet --disable-pip-version-check --no-input install -r docs/examples/dbt/requirements.txt
	@touch $@

.venv/bench: .venv/runtime
	@echo "Installing JAX, PyTorch, LightGBM, Optuna, Ray Tune, and packages with tables"
	@.ci/packages $(PYTHON) tensorflow,torch,boosting,automl,demo,bench
	@touch .venv/runtime $@

# Not an editable install: a trainer runs with `python -I`, and the user `postgres` may be unable to read the clone.
.venv/package: .venv/runtime $(SOURCES)
	@echo "Installing the package into .venv"
	@$(PIP) install --no-deps --no-build-isolation --force-reinstall .
	@touch $@
