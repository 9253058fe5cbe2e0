#!/bin/sh
# Make .venv with everything that development and tests need, exactly as locked. Run again it only adds what is missing.
# Needs Python 3.11 or newer; PYTHON names another one than `python3`.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: $python is not there or older than Python 3.11; name another one, as in: make setup PYTHON=python3.12" >&2
    exit 1
fi

if [ ! -x .venv/bin/python ]; then
    if ! "$python" -c 'import ensurepip' 2>/dev/null && ! command -v uv >/dev/null; then
        # Debian keeps the venv module's other half in a package of its own.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
        else
            echo "setup: this Python cannot make virtual environments; on Debian: sudo apt-get install python3-venv" >&2
            exit 1
        fi
    fi
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$python" .venv
    else
        "$python" -m venv .venv
    fi
fi

uv=.venv/bin/uv
if [ ! -x "$uv" ]; then
    # uv itself comes from the lock too; pip reads the one entry.
    entry=$(mktemp)
    trap 'rm -f "$entry"' EXIT
    awk '/^uv==/ { on = 1; print; next } /^[^ ]/ { on = 0 } on && /--hash/ { print }' requirements-dev.lock >"$entry"
    if [ -x .venv/bin/pip ]; then
        .venv/bin/python -m pip install --quiet --require-hashes --no-deps -r "$entry"
    else
        uv pip install --quiet --python .venv/bin/python --require-hashes --no-deps -r "$entry"
    fi
fi

"$uv" pip install --quiet --python .venv/bin/python --require-hashes -r requirements-dev.lock
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
touch .venv/ready
echo "setup: .venv is ready ($(.venv/bin/flyte-binary version))"
