#!/bin/sh
# Random secrets of one zone, each in a file: docker/make_secrets.sh operator FOLDER
# A file that exists stays as it is. For other hosts than those of compose:
# MAIN_HOST=10.0.0.5:5432 VAULT_HOST=10.0.1.5:5432 REDIS_HOST=10.0.0.5:6379 docker/make_secrets.sh operator FOLDER
# With MAIN_AUTHORITY or VAULT_AUTHORITY, a file of certificates, that database is spoken to by TLS which it vouches for.
set -eu
zone="${1:-}"
folder="${2:-}"
case "$zone" in all | operator | analyst) ;; *) folder="" ;; esac
if [ -z "$folder" ]; then
  echo "usage: $0 all|operator|analyst FOLDER" >&2
  exit 2
fi
parent="$(dirname "$folder")"
[ -d "$parent" ] || install -d -m 755 "$parent" # the service goes through it, whatever the caller's umask
umask 077
mkdir -p "$folder"

keep() { # name: what standard input has goes into a file, unless there is one
  if [ -e "$folder/$1" ]; then
    cat > /dev/null
  else
    cat > "$folder/$1"
  fi
}

database() { # name, host, file of its authority
  openssl rand -hex 24 | keep "$1_password"
  printf 'postgres://mobility:%s@%s/mobility%s\n' "$(cat "$folder/$1_password")" "$2" \
    "${3:+?sslmode=verify-full&sslrootcert=$3}" | keep "$1_url"
}

openssl rand -base64 48 | tr -d '\n' | keep secret_key
database main "${MAIN_HOST:-main:5432}" "${MAIN_AUTHORITY:-}"
if [ "$zone" != analyst ]; then
  database vault "${VAULT_HOST:-vault:5432}" "${VAULT_AUTHORITY:-}"
fi
# Nothing is saved: what Redis has is asked for again, and a full disk would make it refuse every task.
printf 'requirepass %s\nsave ""\nappendonly no\n' "$(openssl rand -hex 24)" | keep redis.conf
printf 'redis://:%s@%s/0\n' "$(sed -n 's/^requirepass //p' "$folder/redis.conf")" "${REDIS_HOST:-redis:6379}" | keep redis_url
