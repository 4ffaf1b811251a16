"""A Python worker whose Spark has left ends."""

from __future__ import annotations

from anabranch.spark.daemon import until_left


def test_a_worker_that_spark_has_left_is_not_called_again():
    def broken(sock: object, authenticated: bool) -> int:
        raise BrokenPipeError

    assert until_left(broken)(None, True) != 0
    assert until_left(lambda sock, authenticated: 0)(None, True) == 0
