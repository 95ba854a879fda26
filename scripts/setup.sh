#!/usr/bin/env bash
# Create .venv with the packages of a lock file: setup.sh requirements.txt
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
  local name
  for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if is_new_enough "$name"; then
      command -v "$name"
      return
    fi
  done
  fail "Python 3.11 or later is required; python3 is $(python3 --version 2>&1 || true)" \
    "install it (Debian, Ubuntu: apt install python3 python3-venv) or give its path: make setup PYTHON=/path/to/python3.11"
}

if ! is_new_enough .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  python="$(find_python)"
  echo "setup: creating .venv with $("$python" --version)" >&2
  if ! reason="$("$python" -m venv --clear .venv 2>&1)"; then
    rm -rf .venv
    fail "$reason" "$python cannot create a virtual environment (Debian, Ubuntu: apt install python3-venv)"
  fi
fi

# Print the lines of one package, with hashes, from a lock file.
locked() {
  sed -n "/^$1==/,/[^\\\\]\$/p" "$2"
}

pip() {
  .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes "$@"
}

# uv takes a third of the time of pip but does not read pip.conf. If uv fails, pip installs the packages.
with_uv() {
  pip -r <(locked uv requirements-dev.txt) &&
    VIRTUAL_ENV=.venv .venv/bin/uv pip install --quiet --compile-bytecode --require-hashes -r "$1"
}

echo "setup: installing the packages of $1" >&2
with_uv "$1" 2>/dev/null || pip -r "$1" ||
  fail "the packages of $1 could not be installed; see the error above"
