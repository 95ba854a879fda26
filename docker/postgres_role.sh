#!/bin/sh
# SQL that makes the role and the database of a zone, for psql as PostgreSQL's own administrator. The password is read
# from a file, so that no list of processes shows it: docker/postgres_role.sh FILE | runuser -u postgres -- psql
set -eu
password="$(cat "$1")"
case "$password" in
  *[!0-9A-Za-z]* | "")
    echo "$1 must have a password of letters and digits" >&2
    exit 1
    ;;
esac
# Without a log of statements, also of those that fail; run again, it sets the password anew.
cat << SQL
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET log_min_duration_statement = -1;
SELECT 'CREATE ROLE mobility LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mobility') \\gexec
ALTER ROLE mobility LOGIN PASSWORD '$password';
SELECT 'CREATE DATABASE mobility OWNER mobility ENCODING ''UTF8'' TEMPLATE template0'
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'mobility') \\gexec
REVOKE CONNECT ON DATABASE mobility FROM PUBLIC;
SQL
