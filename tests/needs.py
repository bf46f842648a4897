"""Reasons to skip tests: programs and packages that a machine may lack.

Each reason names what is missing and how to install it; `skipped.py` lists them at the end of a
run. Programs have the names of their Debian and Ubuntu packages.
"""


def needs(what: str, how: str) -> str:
    """Returns a reason to skip a test: `what` is missing, and `how` installs it."""
    return f"needs {what}: {how}"


CHROMIUM = needs("Chromium", "apt-get install chromium")
PROMETHEUS = needs("Prometheus and promtool", "apt-get install prometheus")
NATS = needs("a NATS server", "apt-get install nats-server; pip install nats-py")
DNSMASQ = needs("dnsmasq", "apt-get install dnsmasq-base")
SMALL_DISK = needs("root and a mount of tmpfs", "apt-get install mount; run as root")
HNSWLIB = needs("hnswlib", "pip install hnswlib, with a C++ compiler and Python's headers")
OPENSSL = needs("openssl", "apt-get install openssl")
SBOM = needs("cyclonedx-bom", "make sbom")
HELM = needs("Helm", "pip install helm-python-sdk")
KUBERNETES = needs("kubernetes-validate", "pip install kubernetes-validate")
OTEL = needs("opentelemetry-proto", "pip install -e '.[otel]'")
OPENVINO = needs("OpenVINO", "pip install -e '.[openvino]'")
RAY = needs("Ray", "pip install -e '.[ray]'")
PLOTS = needs("matplotlib", "pip install -e '.[plots]'")
TORCH = needs("PyTorch", "make models")
READLINE = needs("readline", "a Python that was built with it")
IPV6 = needs("IPv6", "give the machine a loopback address ::1")
GLIBC = needs("glibc", "a Linux whose C library it is")
HUGE_PAGES = needs("huge pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
LINUX = needs("Linux", "there is no other way")
