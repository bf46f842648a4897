#!/bin/sh
# Runs tests again and again beside two busy loops, and counts the runs that pass.
#
#     sh tests/busy.sh PYTHON RUNS TESTS
#
# A test that depends on how fast a machine is fails here first. Exits with 1 if a run has failed.
set -u
python=$1 runs=$2 tests=$3 green=0 loops=""
trap 'kill $loops 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for _ in 1 2; do
    "$python" -c 'while True: pass' &
    loops="$loops $!"
done
mkdir -p var/busy
for run in $(seq "$runs"); do
    "$python" -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 \
        --ignore=tests/models "$tests" >"var/busy/$run.log" 2>&1 && green=$((green + 1))
    echo "$green of $run runs passed: $(tail -n 1 "var/busy/$run.log")"
done
[ "$green" -eq "$runs" ]
