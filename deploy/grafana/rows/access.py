"""Keys and certificates."""

from deploy.grafana.panels import Row, numbers, panel
from deploy.grafana.queries import ANY, FRONT, or_zero, rate, where

ROW = Row(
    "Keys and certificates",
    (
        panel(
            "Refused for their keys",
            "cps",
            (
                or_zero(rate("winnow_front_key_refusals_total", FRONT, by="scope, reason")),
                "{{scope}} {{reason}}",
            ),
            says="Calls by gRPC and HTTP, by what they wanted to do. Unauthenticated: no key, or "
            "none that is known. Permission denied: the key has another scope. Rate: the key was "
            "used too often.",
        ),
        numbers(
            "Certificates expire in",
            "s",
            (
                f"{where('winnow_certificate_expiry_timestamp_seconds', ANY)} - time()",
                "{{instance}} {{file}}",
            ),
            says="By the setting that names the file. None where calls are in plain text.",
        ),
    ),
)
