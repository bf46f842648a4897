#!/bin/sh
# Regenerates the stubs in winnow/v1 from the protos beside this file.
# usage: proto/generate.sh PYTHON [OUTPUT_DIRECTORY]
set -eu
python=$1
here=$(cd "$(dirname "$0")" && pwd)
out=${2:-$here/..}
PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc -I "$here" \
    --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" \
    "$here"/winnow/v1/*.proto
