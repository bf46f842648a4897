#!/bin/sh
# Compiles and installs hnswlib for a Python, if its tools are there; else says what is missing.
#
# Without hnswlib, shards of at most 20,000 passages work.
python=$1
missing=""
found=""
for compiler in "${CXX:-c++}" g++ clang++; do
    command -v "$compiler" >/dev/null 2>&1 && found=$compiler && break
done
[ -n "$found" ] || missing="a C++ compiler"
header=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h
[ -f "$header" ] || missing="${missing:+$missing and }Python's headers"
if [ -z "$missing" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check --editable '.[graph]' && exit
    missing="a working compiler (see above)"
fi
echo "hnswlib was left out: it needs $missing (Debian, Ubuntu: apt install g++ python3-dev;" \
    "Fedora: dnf install gcc-c++ python3-devel; Alpine: apk add g++ python3-dev;" \
    "macOS: xcode-select --install). Then run: $python -m pip install --editable '.[graph]'" >&2
