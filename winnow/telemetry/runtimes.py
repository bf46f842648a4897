"""Reports which runtime was chosen for each model of a process."""

from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.inference.runtime_chooser import RuntimeChoice, RuntimeChooser
from winnow.telemetry.metrics import MetricFactory

_log = structlog.get_logger("winnow.runtimes")


class RuntimeMetrics:
    """Exports the runtime of each model, and logs it if there were several to choose from."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._info = make.gauge(
            "winnow_model_runtime_info",
            "The runtime of a loaded model, and what it was chosen by: setting, only (no other can "
            "run it), flags (of the processor) or measured; always 1",
            "bundle",
            "model",
            "runtime",
            "chosen_by",
        )

    def chooser(self, bundle: str) -> RuntimeChooser:
        """Returns a chooser for the models of a bundle, whose choices are recorded here."""
        return RuntimeChooser(partial(self.record_choice, bundle))

    def record_choice(self, bundle: str, choice: RuntimeChoice) -> None:
        """Records the chosen runtime of a model of a bundle."""
        self._info.labels(bundle, choice.model, choice.runtime, choice.by.value).set(1)
        if choice.why:
            spent = {f"{name}_ms": each for name, each in choice.milliseconds.items()}
            log = _log.warning if choice.faults else _log.info
            log(
                "runtime chosen",
                bundle=bundle,
                model=choice.model,
                runtime=choice.runtime,
                chosen_by=choice.by.value,
                why=choice.why,
                **spent,
            )
