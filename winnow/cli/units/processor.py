"""The name of the processor."""

import platform
from pathlib import Path


def processor(source: Path = Path("/proc/cpuinfo")) -> str:
    """As Linux calls it, with what of it matters for int8 and bfloat16; else what Python knows."""
    try:
        lines = source.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    known = dict(line.partition(":")[::2] for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, value in known.items()}
    flags = fields.get("flags", "").split()
    able = [name for name in ("amx_int8", "avx512_vnni", "avx_vnni") if name in flags]
    return ", ".join([fields.get("model name", platform.machine()), *able[:1]])
