#!/bin/sh
# test.sh NAME FRAMEWORK PYTHON: installs an integration into var/integrations/NAME, checks its types, runs its tests.
# PYTHON is that of the checkout's environment, whose `winnow up` serves the tests.
set -eu
name=$1 framework=$2 python=$(realpath -s "$3")
root=$(realpath "$(dirname "$0")/..")
here=$root/integrations/$name
venv=$root/var/integrations/$name
wheels=$root/var/integrations/wheels

for project in "$root/client" "$here"; do
    (cd "$project" && "$python" -m hatchling build -t wheel -d "$wheels" >/dev/null)
done
pip="$venv/bin/python -m pip --quiet --disable-pip-version-check"
if [ ! -e "$venv/.installed" ] || [ "$here/pyproject.toml" -nt "$venv/.installed" ]; then
    echo "installing $framework ..."
    "$python" -m venv "$venv"
    $pip install --find-links "$wheels" "$name[test]"
    touch "$venv/.installed"
fi
$pip install --no-index --no-deps --force-reinstall --find-links "$wheels" winnow-qa-client "$name"

cd "$here"
"$venv/bin/mypy" --cache-dir "$venv/mypy" .
INTEGRATIONS_SERVER="$(dirname "$python")/winnow" "$venv/bin/pytest" -p live_cluster
"$venv/bin/python" "$root/integrations/testing/sizes.py" "$name" "$framework"
