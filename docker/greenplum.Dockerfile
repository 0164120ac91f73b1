# cerebro_db on an image that has Greenplum 7 or Apache Cloudberry with PL/Python 3 (plpython3u). There is no default for
# that image: name yours.
#
#     docker build --build-arg BASE=my-greenplum:7 -f docker/greenplum.Dockerfile -t greenplum-cerebro .
#
# All hosts of a cluster run the same image, so what they need lies at the same place on each. Then, in a database:
#     CREATE EXTENSION cerebro_db SCHEMA madlib CASCADE;
#     SELECT cerebro.set('trainer_python', '/opt/cerebro/bin/python');
# docs/how-to/greenplum.md has the rest.
ARG BASE
FROM ${BASE}

# Where Greenplum is; the Python that its PL/Python embeds; the user who owns the cluster.
ARG PG_CONFIG=/usr/local/greenplum-db/bin/pg_config
ARG PLPYTHON=/usr/bin/python3
ARG OWNER=gpadmin
# For trainers: Python 3.11, 3.12 or 3.13 with venv, and what installs it. The names are Debian's and Ubuntu's; on Rocky
# Linux 9:
#     --build-arg PYTHON=python3.11 --build-arg PACKAGES="make python3.11 python3-psycopg2"
ARG PYTHON=python3
ARG PACKAGES="make python3-venv python3-psycopg2"

USER root
RUN if command -v apt-get >/dev/null; then \
        apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends ${PACKAGES} \
        && rm -rf /var/lib/apt/lists/*; \
    else \
        dnf --quiet --assumeyes install ${PACKAGES} && dnf --quiet clean all; \
    fi

WORKDIR /usr/local/src/cerebro_db
COPY Makefile README.md assembly.py cerebro_db.control pyproject.toml setup.py ./
COPY .ci .ci
COPY sql sql
COPY docs/reference/sql docs/reference/sql
COPY migrations migrations
COPY plpy plpy
COPY cerebro_db cerebro_db

# Greenplum's libraries are found as its own environment script would have them found.
RUN export LD_LIBRARY_PATH="$(dirname "$(dirname "${PG_CONFIG}")")/lib" \
    && make --silent install PG_CONFIG="${PG_CONFIG}" PLPYTHON="${PLPYTHON}" PYTHON="${PYTHON}" \
    && "${PLPYTHON}" -c 'import cerebro_plpy.api.segment' \
    && "${PLPYTHON}" -c 'import psycopg2'

RUN "${PYTHON}" -m venv /opt/cerebro \
    && /opt/cerebro/bin/pip --no-cache-dir --quiet install '.[tensorflow]' \
    && /opt/cerebro/bin/python -I -c 'import cerebro_trainer'

USER ${OWNER}
WORKDIR /
