#!/bin/sh
# Creates the virtual environment named by the first argument and fills it from the locks, every file checked by hash.
# PYTHON names the interpreter; without it the first one of a supported version is taken.
set -eu

venv=$1

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# Being on PATH is not enough: version managers leave a stub there for versions that are not active.
if [ -z "${PYTHON:-}" ]; then
    for candidate in python3.11 python3.12 python3.13 python3; do
        if supported "$candidate"; then
            PYTHON=$candidate
            break
        fi
    done
fi
if [ -z "${PYTHON:-}" ]; then
    echo "setup: no Python 3.11, 3.12 or 3.13 found; install one, or name it: make setup PYTHON=path/to/python3" >&2
    exit 2
fi
if ! supported "$PYTHON"; then
    echo "setup: PYTHON=$PYTHON is not a Python 3.11, 3.12 or 3.13" >&2
    exit 2
fi

# Debian and Ubuntu ship Python without what `venv` needs to put pip into an environment.
if ! "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update && apt-get install -y --no-install-recommends python3-venv || true
    fi
    if ! "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        echo "setup: $PYTHON cannot create virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 2
    fi
fi

# An environment that does not run, because its interpreter is gone or it was left half made, is replaced.
if ! supported "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$PYTHON" -m venv --clear "$venv"
fi

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}

# Twice, because pip and the build tools must be the pinned ones before anything is built with them; and without build
# isolation, because an isolated build fetches whatever version of its tools is the newest today.
pip install --quiet --require-hashes -r requirements-setup.lock
pip install --quiet --require-hashes --no-build-isolation -r requirements.lock
pip install --quiet --no-deps --no-build-isolation --editable .

# Spark starts many processes. Where Python writes no bytecode of its own (PYTHONDONTWRITEBYTECODE), each of them would
# compile every module anew, which takes seconds: so all of it is compiled once, here.
"$venv/bin/python" -m compileall -q -j 0 "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" src ||
    echo "setup: some modules could not be compiled ahead; they are when they are used" >&2
