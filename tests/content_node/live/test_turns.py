"""Who waits comes next."""

import threading

from winnow.content_node.live.locks import AlternatingLock


def test_a_thread_that_waits_comes_before_one_that_comes_again() -> None:
    turns, came = AlternatingLock(), list[str]()

    def other() -> None:
        with turns:
            came.append("other")

    for _ in range(20):
        came.clear()
        waiting = threading.Thread(target=other)
        with turns:
            waiting.start()
            while not turns._queue.locked():
                pass
        with turns:
            came.append("again")
        waiting.join()
        assert came == ["other", "again"]
