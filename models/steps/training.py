"""One training run, shown as it goes."""

from pathlib import Path

from models.training.loop import Schedule, Task, Trainer
from models.training.progress import TrainingProgress


def train(task: Task, schedule: Schedule, path: Path, every: int) -> None:
    """Trains `task` to its end, from the checkpoint at `path` if there is one.

    A checkpoint is written every `every` steps.
    """
    trainer = Trainer(task, schedule, path)
    with TrainingProgress(every) as progress:
        trainer.run(every, progress.show)
