#!/bin/sh
# Names missing tools, before an installation fails halfway.
python=${PYTHON:-python3}
missing=0
say() { echo "missing: $1" >&2; missing=1; }

if ! command -v "$python" >/dev/null 2>&1; then
    say "Python 3.11 or newer ('$python' was not found; name another with make PYTHON=...)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "Python 3.11 or newer ($("$python" --version) was found; name another with make PYTHON=...)"
else
    "$python" -c 'import venv, ensurepip' 2>/dev/null \
        || say "Python's venv module (Debian and Ubuntu: apt install python3-venv)"
fi
exit $missing
