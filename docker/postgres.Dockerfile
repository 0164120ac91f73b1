# PostgreSQL 15 with cerebro_db, for a first look, for tests and for small teams; docker/compose.yaml starts it.
#
#     docker build -f docker/postgres.Dockerfile -t cerebro_db .
#     docker run -d --name cerebro -e CEREBRO_PASSWORD=secret -v cerebro:/var/lib/postgresql/data cerebro_db
#     docker exec -it cerebro psql
#
# With GPUs: --build-arg EXTRA=cuda,boosting, and docker run --gpus all (the host needs the NVIDIA container toolkit).
ARG BASE=debian:bookworm-slim

# What makes the installation, and is not needed to run it, stays behind in this stage.
FROM ${BASE} AS made
RUN apt-get -qq update \
    && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends \
        binutils make postgresql-client-15 python3-venv >/dev/null

WORKDIR /usr/local/src/cerebro_db
COPY Makefile README.md assembly.py cerebro_db.control pyproject.toml setup.py ./
COPY .ci .ci
COPY sql sql
COPY docs/reference/sql docs/reference/sql
COPY migrations migrations
COPY plpy plpy
COPY cerebro_db cerebro_db

RUN make --silent install DESTDIR=/made PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config PLPYTHON=/usr/bin/python3

# What of pyproject.toml's extras the trainers get: tensorflow (for CPUs) or cuda, and boosting; several as tensorflow,jax.
ARG EXTRA=tensorflow,boosting
RUN python3 -m venv /opt/cerebro && /opt/cerebro/bin/pip --no-cache-dir --quiet install ".[${EXTRA}]"

# TensorFlow brings three things that no process here reads. The symbol table of its library (200 MB) has names for a
# debugger; what other libraries are linked with stands in another table. From its headers (290 MB) operations in C++ are
# compiled, for which there is no compiler here: install TensorFlow elsewhere for tf.sysconfig.get_include(). And it asks
# for libclang (60 MB), which none of its modules imports.
RUN cd /opt/cerebro/lib/python3*/site-packages \
    && find . -path './tensorflow/libtensorflow_*.so.*' -type f -exec strip --strip-unneeded {} + \
    && rm -rf tensorflow/include \
    && /opt/cerebro/bin/pip --quiet uninstall --yes libclang

FROM ${BASE}

# JIT compilation of queries is left out, as PostgreSQL provides for (pg_jit_available() is false): it would be LLVM and Z3,
# 150 MB, which does nothing for queries that read a table of buffers in order.
RUN printf 'path-exclude=%s\n' '/usr/lib/*/libLLVM-*' '/usr/lib/*/libz3.so*' '/usr/lib/postgresql/*/lib/llvmjit*' \
        '/usr/lib/postgresql/*/lib/bitcode/*' >/etc/dpkg/dpkg.cfg.d/without-jit \
    && apt-get -qq update \
    && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends postgresql-common >/dev/null \
    && echo 'create_main_cluster = false' >> /etc/postgresql-common/createcluster.conf \
    && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends \
        libgomp1 postgresql-15 postgresql-plpython3-15 python3-psycopg2 tini >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log

COPY --from=made /made/ /
COPY --from=made /opt/cerebro /opt/cerebro
RUN /opt/cerebro/bin/python -I -c 'import cerebro_trainer' && ln -s /opt/cerebro/bin/cerebro-db /usr/local/bin/cerebro-db

# The tour of README.md, for `psql -f`.
COPY tests/sql/tour.sql tests/sql/iris_data.sql /usr/local/share/cerebro_db/
COPY docker/postgres-entrypoint.sh docker/postgres-init.sql /usr/local/lib/cerebro_db/

# psql in the container is the ordinary role, in the database that the first start makes.
ENV PATH=/usr/lib/postgresql/15/bin:$PATH LANG=C.UTF-8 \
    PGDATA=/var/lib/postgresql/data PGHOST=/var/run/postgresql PGUSER=cerebro PGDATABASE=cerebro
RUN install -d -o postgres -g postgres -m 700 "$PGDATA" && install -d -o postgres -g postgres -m 755 "$PGHOST"
USER postgres
WORKDIR /
VOLUME /var/lib/postgresql/data
EXPOSE 5432
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s --timeout=5s --start-period=120s --retries=3 CMD pg_isready --quiet --host=localhost
# Orphans go to an init, not to the server: as process 1 it would take one that was killed for a crashed backend.
ENTRYPOINT ["tini", "--", "/usr/local/lib/cerebro_db/postgres-entrypoint.sh"]
