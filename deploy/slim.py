"""Removes files that serving never uses from an environment: `slim.py SITE_PACKAGES`.

For the image only: the packages stay installed, with fewer files. It fails if a package changed so
that nothing matches, so that the image does not grow unnoticed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

UNUSED = (
    "numpy/**/tests",
    # tools that convert models
    "onnxruntime/transformers",
    "onnxruntime/tools",
    "onnxruntime/datasets",
    # for programs in C; Python's module has its own copy
    "onnxruntime/capi/libonnxruntime.so*",
    # downloads from a hub of models, which Winnow never does
    "hf_xet",
)
SERVICES = ("s3", "sso", "sso-oidc", "sts")
"""The services of `botocore/data` that reading from S3 needs."""
WITH_SYMBOLS = ("hnswlib*.so", "zstandard/*.so", "selectolax/*.so", "aiohttp/*.so")
"""Libraries with symbols for debuggers, which are safe to strip."""


def main() -> None:
    site = Path(sys.argv[1])
    before = size(site)
    for pattern in UNUSED:
        for path in found(site, pattern):
            remove(path)
    for service in found(site, "botocore/data/*/"):
        if service.is_dir() and service.name not in SERVICES:
            remove(service)
    for pattern in WITH_SYMBOLS:
        subprocess.run(["strip", "--strip-unneeded", *found(site, pattern)], check=True)
    print(f"removed {(before - size(site)) / 1e6:.0f} of {before / 1e6:.0f} MB")


def found(site: Path, pattern: str) -> list[Path]:
    paths = sorted(site.glob(pattern))
    if not paths:
        raise SystemExit(f"no {pattern} in {site}: correct {Path(__file__).name}")
    return paths


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def size(directory: Path) -> int:
    return sum(each.lstat().st_size for each in directory.rglob("*"))


if __name__ == "__main__":
    main()
