#!/bin/sh
# Runs tests again and again beside two busy loops, and counts the runs that pass.
#
#     sh tests/busy.sh PYTHON RUNS TESTS
#
# A test that depends on how fast a machine is fails here first. Logs of ended runs are kept in
# var/busy by commit and tests. So an interrupted command continues its count: only the run that
# was interrupted is lost. Exits with 1 if a run has failed.
set -u
python=$1 runs=$2 tests=$3 loops=""
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
kept="var/busy/$commit/$(echo "$tests" | tr '/ ' '__')"
case $commit in *-dirty | unknown) rm -rf "$kept" ;; esac # its earlier runs were of other code
mkdir -p "$kept"

count() { find "$kept" -name "*.$1.log" | wc -l | tr -d ' '; }
tell() {
    passed=$(count passed) failed=$(count failed)
    echo "commit $commit: $((passed + failed)) of $runs runs, $passed passed, $failed failed"
}

trap 'kill $loops 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for _ in 1 2; do
    "$python" -c 'while True: pass' &
    loops="$loops $!"
done
tell
while [ $((passed + failed)) -lt "$runs" ]; do
    "$python" -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
        --max-worker-restart 0 --ignore=tests/models "$tests" >"$kept/running" 2>&1
    case $? in
        0) result=passed ;;
        1 | 2) result=failed ;; # 2: a process of the tests has crashed
        *) tail -n 5 "$kept/running" && exit 2 ;; # it was killed, or could not begin
    esac
    mv "$kept/running" "$kept/$((passed + failed + 1)).$result.log"
    tell
done
find "$kept" -name '*.failed.log' -exec grep -hE '^(FAILED|ERROR) ' {} + | sed 's/ - .*//' | sort | uniq -c
[ "$failed" -eq 0 ]
