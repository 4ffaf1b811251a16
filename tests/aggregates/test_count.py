from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.aggregates import Count, Groups


def test_a_count_of_a_column_leaves_nulls_out_and_one_of_tuples_asks_for_no_column() -> None:
    groups = Groups(np.array([0, 0, 1]), 2)
    of_tuples, of_values = Count(), Count("x")
    assert (of_tuples.inputs, of_values.inputs) == ((), ("x",))
    assert [state.to_pylist() for state in of_tuples.add(groups)] == [[2, 1]]
    assert [state.to_pylist() for state in of_values.add(groups, pa.array([7, None, None]))] == [[1, 0]]
