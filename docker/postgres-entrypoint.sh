#!/bin/sh
# Runs the server; the first start makes the cluster, the role and the database with the extension. What
# is given to the container goes to the server: docker run … cerebro_db -c shared_buffers=1GB
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    if [ -z "${CEREBRO_PASSWORD:-}" ]; then
        echo "CEREBRO_PASSWORD is not set: the password with which role cerebro connects over the network." >&2
        exit 1
    fi
    # A cluster that was interrupted halfway is none: the version file comes last.
    made=$PGDATA/cluster.partial
    rm -rf "$made"
    # Over the socket, which is in this container only, roles are trusted; over the network nobody is without a password.
    initdb --pgdata="$made" --username=postgres --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust \
        --auth-host=scram-sha-256 --no-instructions >/dev/null
    echo "host all all all scram-sha-256" >> "$made/pg_hba.conf"
    pg_ctl --pgdata="$made" --options="-c listen_addresses=''" --wait --silent --log="$made/first.log" start
    psql --username=postgres --dbname=postgres --quiet --no-psqlrc --file=/usr/local/lib/cerebro_db/postgres-init.sql
    pg_ctl --pgdata="$made" --wait --silent --mode=fast stop
    rm "$made/first.log"
    version=$made/PG_VERSION
    find "$made" -mindepth 1 -maxdepth 1 ! -path "$version" -exec mv --target-directory="$PGDATA" {} +
    mv "$version" "$PGDATA/"
    rmdir "$made"
fi
unset CEREBRO_PASSWORD
exec postgres -c listen_addresses='*' "$@"
