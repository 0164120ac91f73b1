# Builds, installs, tests. The version stands once, in the control file.
#
# No PGXS: there is no C to compile, and PGXS would have to be installed (on Debian it is in a package of its own).

EXTENSION := cerebro_db
VERSION   := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)
PG_CONFIG ?= pg_config
# The interpreter embedded in the server, which need not be the python3 on the PATH.
PLPYTHON  ?= /usr/bin/python3
# The interpreter of the virtual environment: Debian's, since PostgreSQL embeds the same one.
PYTHON    ?= $(shell .ci/python)
URL       ?= postgresql://

SCRIPT     := build/$(EXTENSION)--$(VERSION).sql
# migrations/A--B.sql holds what changes in tables between the released versions A and B.
MIGRATIONS := $(shell ls migrations/*--*.sql 2>/dev/null | sort -V)
UPGRADES   := $(foreach m,$(MIGRATIONS),build/$(EXTENSION)--$(firstword $(subst --, ,$(notdir $(m))))--$(VERSION).sql)
BUILT      := $(SCRIPT) $(UPGRADES) build/$(EXTENSION).control build/VERSION build/sql-reference.md
TABLES     := $(sort $(wildcard sql/[01]*.sql))
FUNCTIONS  := $(sort $(wildcard sql/[2-9]*.sql))
SOURCES    := $(shell find cerebro_db plpy -name __pycache__ -prune -o -print)
# Changes when the clone is moved or its Python is another one; both make a virtual environment useless.
MADE       := .venv/made-$(shell echo "$(CURDIR) $$($(PYTHON) -V)" | cksum | cut -d' ' -f1)

PIP := .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help all install uninstall installcheck demo test test-long bench objects lint clean bootstrap

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | column -t -s'|'

all: $(BUILT) ## build the extension script and the upgrade scripts into build/

build:
	@mkdir -p build

build/VERSION: $(EXTENSION).control | build
	@echo $(VERSION) > $@

build/$(EXTENSION).control: $(EXTENSION).control | build
	@cp $< $@

# What f('usage') answers from.
build/sql-reference.md: docs/sql-reference.md | build
	@cp $< $@

$(SCRIPT): $(TABLES) $(FUNCTIONS) $(EXTENSION).control | build
	@rm -f build/$(EXTENSION)--*.sql
	@echo "Building $@"
	@printf '%s\n' '\echo Use "CREATE EXTENSION $(EXTENSION)" to load this file. \quit' > $@
	@cat $(TABLES) $(FUNCTIONS) >> $@

# From any older version straight to this one: the table changes since then in order, then every function again,
# so that no function is ever created against the tables of a version in between.
$(UPGRADES): build/$(EXTENSION)--%--$(VERSION).sql: $(MIGRATIONS) $(FUNCTIONS) $(SCRIPT)
	@echo "Building $@"
	@printf '%s\n' '\echo Use "ALTER EXTENSION $(EXTENSION) UPDATE" to load this file. \quit' > $@
	@cat $(shell printf '%s\n' $(MIGRATIONS) | sed -n '/\/$*--/,$$p') $(FUNCTIONS) >> $@

install: $(BUILT) ## install into the server of PG_CONFIG and the Python of PLPYTHON (DESTDIR is respected)
	@$(PG_CONFIG) --version >/dev/null
	@$(PLPYTHON) -c 'import sys; sys.exit("PLPYTHON must be 3.9 or newer, not " + sys.version if sys.version_info < (3, 9) else 0)'
	install -d "$(DESTDIR)$(SHARE)" "$(DESTDIR)$(SITE)"
	install -m 644 $(SCRIPT) $(UPGRADES) build/$(EXTENSION).control "$(DESTDIR)$(SHARE)"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	for file in $$(cd plpy && find cerebro_plpy -name '*.py' -o -name '*.sql'); do \
	    install -D -m 644 "plpy/$$file" "$(DESTDIR)$(SITE)/cerebro_plpy.new/$$file" || exit; done
	install -m 644 build/VERSION build/sql-reference.md "$(DESTDIR)$(SITE)/cerebro_plpy.new/cerebro_plpy"
	$(PLPYTHON) -m compileall -q -s "$(DESTDIR)$(SITE)/cerebro_plpy.new" -p "$(SITE)" "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy"
	mv "$(DESTDIR)$(SITE)/cerebro_plpy.new/cerebro_plpy" "$(DESTDIR)$(SITE)"
	rmdir "$(DESTDIR)$(SITE)/cerebro_plpy.new"
	@! test -e "$(BINARIES)/gpstate" || printf '%s\n' $(OTHER_HOSTS)

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(SHARE)"/$(EXTENSION)--*.sql "$(DESTDIR)$(SHARE)/$(EXTENSION).control"
	rm -rf "$(DESTDIR)$(SITE)/cerebro_plpy"

install uninstall: SHARE = $(shell $(PG_CONFIG) --sharedir)/extension
install uninstall: SITE = $(shell $(PLPYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
install: BINARIES = $(shell $(PG_CONFIG) --bindir)

# Greenplum's pg_config says that it is PostgreSQL; what manages a cluster lies beside it.
define OTHER_HOSTS
"" "This is a Greenplum. Copy to every other host of the cluster, to the same places:" \
$(foreach file,$(SCRIPT) $(UPGRADES) build/$(EXTENSION).control,"    $(DESTDIR)$(SHARE)/$(notdir $(file))") \
"    $(DESTDIR)$(SITE)/cerebro_plpy/" \
"Trainers run on every host that has segments: their environment (trainer_python in cerebro.setting) must lie at the" \
"same place on all of them. psycopg2 is needed on the coordinator (and its standby) only."
endef

# A second make for what follows, because the first has read this file before there was a Python.
READY := $(MAKE) --silent

installcheck: bootstrap ## check the server that URL or libpq's environment variables name
	@$(READY) .venv/package
	.venv/bin/cerebro-db check "$(URL)"

demo: bootstrap ## from a bare machine to a leaderboard
	@$(READY) .venv/package
	.venv/bin/cerebro-db demo

# The order is that of the folders, which ends with many short files: neither process waits long for the other.
PYTEST := .venv/bin/pytest -rfEs -n 2 --dist loadscope --no-loadscope-reorder

test: bootstrap ## run the tests, on a PostgreSQL that they start themselves
	@$(READY) .venv/dev .venv/package
	$(PYTEST) -m "not long" --hypothesis-profile few

test-long: bootstrap ## run the slow tests that rarely tell more, and try each property with more examples
	@$(READY) .venv/dev .venv/package
	$(PYTEST) -m "long or hypothesis"

# What BENCH may say: .venv/bin/python -m bench --help
bench: bootstrap ## measure beside other ways to do the same work; with BENCH="--scale report" write docs/benchmarks.md
	@$(READY) .venv/bench .venv/package
	PYTHONPATH=tests/bench:tests/support:tests/contract .venv/bin/python -m bench $(BENCH)

objects: bootstrap ## record the extension's objects in tests/upgrade/objects.txt, after a change of the interface
	@$(READY) .venv/dev .venv/package
	.venv/bin/pytest -q tests/upgrade -k objects --write-objects

lint: bootstrap ## ruff (rules and format), and mypy in strict mode
	@$(READY) .venv/dev .venv/package
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

clean: ## remove what make built; the embedded server and its data stay
	rm -rf build $(EXTENSION).egg-info .mypy_cache .ruff_cache .hypothesis
	if [ -d .venv ]; then rm -rf "$$(realpath .venv)" .venv; fi

# The virtual environment. Each stamp file says which step is done, so that a second call costs nothing.

bootstrap:
	@.ci/bootstrap

$(MADE):
	@echo "Making the virtual environment .venv with $(PYTHON)"
	@.ci/venv $(PYTHON)
	@touch $@

.venv/runtime: pyproject.toml $(MADE) | $(BUILT)
	@echo "Installing TensorFlow, Keras and what else is needed; the first time this downloads some 300 MB"
	@rm -rf build/lib
	@$(PIP) install --no-build-isolation ".[tensorflow,demo]"
	@touch $@

.venv/dev: .venv/runtime | $(BUILT)
	@echo "Installing JAX, Optuna, pytest, ruff and mypy; the first time this downloads some 90 MB"
	@rm -rf build/lib
	@$(PIP) install --no-build-isolation ".[tensorflow,jax,automl,demo,dev]"
	@touch $@

.venv/bench: .venv/runtime | $(BUILT)
	@echo "Installing JAX and Ray Tune"
	@rm -rf build/lib
	@$(PIP) install --no-build-isolation ".[tensorflow,bench]"
	@touch $@

# Not an editable install: a trainer runs with `python -I`, and the user `postgres` may be unable to read the clone.
.venv/package: .venv/runtime $(BUILT) $(SOURCES)
	@echo "Installing the package into .venv"
	@rm -rf build/lib
	@$(PIP) install --no-deps --no-build-isolation --force-reinstall .
	@touch $@
