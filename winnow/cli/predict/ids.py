"""Ids of heads as an option has them."""


def head_ids(option: str) -> list[str]:
    """The ids that `option` separates by commas."""
    return [each.strip() for each in option.split(",") if each.strip()]
