"""Results of single training steps."""

from models.training.loop import StepLosses, Task


def only(task: Task, step: int) -> StepLosses:
    """Returns the result of a step that has one part."""
    (part,) = task.partial_losses(step)
    return part
