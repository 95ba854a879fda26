#!/bin/sh
# Random secrets of one zone, each in a file: docker/make_secrets.sh operator FOLDER
# A file that exists stays as it is. For other hosts than those of compose:
# MAIN_HOST=10.0.0.5:5432 VAULT_HOST=10.0.1.5:5432 REDIS_HOST=10.0.0.5:6379 docker/make_secrets.sh operator FOLDER
set -eu
zone="${1:-}"
folder="${2:-}"
case "$zone" in all | operator | analyst) ;; *) folder="" ;; esac
if [ -z "$folder" ]; then
  echo "usage: $0 all|operator|analyst FOLDER" >&2
  exit 2
fi
mkdir -p "$(dirname "$folder")" # the service goes through it
umask 077
mkdir -p "$folder"

keep() { # name: what standard input has goes into a file, unless there is one
  if [ -e "$folder/$1" ]; then
    cat > /dev/null
  else
    cat > "$folder/$1"
  fi
}

database() { # name, host
  openssl rand -hex 24 | keep "$1_password"
  printf 'postgres://mobility:%s@%s/mobility\n' "$(cat "$folder/$1_password")" "$2" | keep "$1_url"
}

openssl rand -base64 48 | tr -d '\n' | keep secret_key
database main "${MAIN_HOST:-main:5432}"
if [ "$zone" != analyst ]; then
  database vault "${VAULT_HOST:-vault:5432}"
fi
printf 'requirepass %s\n' "$(openssl rand -hex 24)" | keep redis.conf
printf 'redis://:%s@%s/0\n' "$(cut -d ' ' -f 2 "$folder/redis.conf")" "${REDIS_HOST:-redis:6379}" | keep redis_url
