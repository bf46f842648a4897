"""Cutting long passages into windows. Pure."""


def windows(tokens: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Ranges of tokens, each at most `room` long, that together cover all of them.

    Neighbours share at least `overlap` tokens, so that an answer is not cut in two; the last window
    is moved back to be full. An empty passage has one empty window.
    """
    if tokens <= room:
        return [(0, tokens)]
    if not 0 <= overlap < room:
        raise ValueError(
            f"overlap {overlap} must be at least 0 and below the room of {room} tokens"
        )
    starts = [*range(0, tokens - room, room - overlap), tokens - room]
    return [(start, start + room) for start in starts]
