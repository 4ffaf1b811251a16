from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from anabranch.apps.kafka.gaps import Gap, gaps, places, size


def test_only_what_was_to_be_read_and_is_gone_is_a_gap():
    start = {"0": 10, "1": 10, "2": 10}
    first = {0: 10, 1: 13, 2: 99, 3: 4}
    assert gaps(start, first) == [Gap(1, 10, 13), Gap(2, 10, 99), Gap(3, 0, 4)]
    assert gaps(start, first, {"0": 20, "1": 20, "2": 20, "3": 2}) == [Gap(1, 10, 13), Gap(2, 10, 20), Gap(3, 0, 2)]


def test_gaps_are_told_in_a_few_words():
    found = [Gap(partition, 7, 9) for partition in range(5)]
    assert size(found) == 10
    assert places(found[:2]) == "partition 0, offsets 7 to 8; partition 1, offsets 7 to 8"
    assert places(found).endswith("partition 2, offsets 7 to 8; 2 more partitions")
