#!/bin/sh
# manage.py with the settings and the account of the service: docker/manage.sh create_account ada --role administrator
# Settings are read as systemd reads EnvironmentFile=, line by line: nothing in them is run, and root takes none of them.
set -eu
settings="${MOBILITY_SETTINGS:-/etc/mobility-reports/settings}"
account="${MOBILITY_ACCOUNT:-mobility}"
cd "$(dirname "$0")/.."
umask 077
# libpq looks for certificates in the home folder: in that of root, which is closed to it, it gives TLS up or fails.
HOME="$(getent passwd "$account" | cut -d : -f 6)"
export HOME
if [ "${1:-}" = --settings-are-open ] && [ "$(id -un)" = "$account" ]; then
  shift
else
  exec 3< "$settings"
  if [ "$(id -un)" != "$account" ]; then
    exec setpriv --reuid "$account" --regid "$account" --init-groups --inh-caps=-all \
      docker/manage.sh --settings-are-open "$@"
  fi
fi

number=0
while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  line="${line#"${line%%[![:space:]]*}"}"
  line="${line%"${line##*[![:space:]]}"}"
  case "$line" in "" | "#"* | ";"*) continue ;; esac
  name="${line%%=*}"
  value="${line#*=}"
  case "$value" in
    \"*\") value="${value#\"}" value="${value%\"}" ;;
    \'*\') value="${value#\'}" value="${value%\'}" ;;
  esac
  problem=""
  case "$line" in *=*) ;; *) problem="is not NAME=VALUE" ;; esac
  case "$name" in "" | [0-9]* | *[!A-Za-z0-9_]*) problem="is not NAME=VALUE" ;; esac
  case "$value" in *[\"\'\\]*) problem="contains a quote or backslash: put the value in a file and set NAME_FILE=/path" ;; esac
  if [ -n "$problem" ]; then
    echo "$settings, line $number $problem" >&2
    exit 2
  fi
  export "$name=$value"
done <&3
exec 3<&-
exec .venv/bin/python manage.py "$@"
