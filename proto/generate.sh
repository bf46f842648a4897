#!/bin/sh
# Regenerates the stubs in winnow/v1 from the protos beside this file, and comments.json.
# usage: proto/generate.sh PYTHON [OUTPUT_DIRECTORY]
set -eu
python=$1
here=$(cd "$(dirname "$0")" && pwd)
out=${2:-$here/..}
described=$(mktemp)
trap 'rm -f "$described"' EXIT
PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc -I "$here" \
    --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" \
    --include_source_info --descriptor_set_out="$described" \
    "$here"/winnow/v1/*.proto
"$python" "$here/comments.py" "$described" "$out/winnow/v1/comments.json"
