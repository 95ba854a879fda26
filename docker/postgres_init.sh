#!/bin/sh
# The first start of a container of PostgreSQL, from its /docker-entrypoint-initdb.d: the application's role and database.
set -eu
sql="$(postgres_role.sh "$ROLE_PASSWORD_FILE")"
printf '%s\n' "$sql" | psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username postgres
