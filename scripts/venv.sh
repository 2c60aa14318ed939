#!/usr/bin/env bash
# Make .venv ready: `scripts/venv.sh runtime` installs rocmrun, `scripts/venv.sh dev` also what
# the tests and checks need. Does nothing where that was done for this pyproject.toml before.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kind=${1:?runtime or dev}
readonly log=build/log/venv.log
readonly programs=(python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3)

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '\nhint: %s\n' "$2" >&2
    exit 1
}

logged() {
    "$@" >>"$log" 2>&1 || fail "$1 failed: $(tail -n 15 "$log")" "less $log"
}

# Debian's python3 comes without venv and ensurepip; a pyenv shim may lead nowhere. So each is tried.
find_python() {
    local program
    for program in "${programs[@]}"; do
        if "$program" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
            2>/dev/null; then
            command -v "$program"
            return
        fi
    done
    return 1
}

install_python() {
    local packages=(python3 python3-venv)
    command -v apt-get >/dev/null || fail "no Python 3.11 or newer with venv, and no apt-get to install one"
    [ "$(id -u)" = 0 ] || fail "no Python 3.11 or newer with venv" "sudo apt-get install ${packages[*]}"
    echo "==> apt-get install ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "${packages[@]}" >>"$log" 2>&1 || {
        logged apt-get update
        logged apt-get install -y --no-install-recommends "${packages[@]}"
    }
    find_python >/dev/null && return
    # Ubuntu 22.04: its python3 is 3.10, and 3.11 stands beside it.
    logged apt-get install -y --no-install-recommends python3.11 python3.11-venv
}

mkdir -p build/log
readonly stamp=.venv/.installed-$kind
wanted=$(sha256sum pyproject.toml)
if [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null; then
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0
else
    find_python >/dev/null || install_python
    python=$(find_python) || fail "no Python 3.11 or newer with venv was found" "apt-get install python3.11-venv"
    logged "$python" -m venv --clear .venv
fi

echo "==> virtual environment: .venv ($kind) with $(.venv/bin/python --version)"
logged .venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1' # the first that knows --group
case $kind in
    runtime) logged .venv/bin/python -m pip install --quiet --editable . ;;
    dev) logged .venv/bin/python -m pip install --quiet --group dev --editable . ;;
    *) fail "unknown kind $kind" "scripts/venv.sh runtime" ;;
esac
printf '%s\n' "$wanted" >"$stamp"
