"""The features of the processor."""

from pathlib import Path

_EXACT_BYTE_PRODUCTS = {"avx512_vnni", "avx_vnni", "amx_int8"}


def cpu_features(source: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's flags; empty if `source` does not exist."""
    try:
        text = source.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def multiplies_bytes_exactly(features: frozenset[str]) -> bool:
    """Whether ONNX Runtime's usual int8 kernel is exact on a processor with these flags.

    Without these instructions, its sums of two products of an unsigned and a signed byte saturate
    at 16 bits (onnxruntime #5849, #6004).
    """
    return bool(features & _EXACT_BYTE_PRODUCTS)
