"""The aggregator: merges the partial states of each window, and makes tuples wait for it."""

from __future__ import annotations

from anabranch.simulate.settings import Settings


class Aggregator:
    """A queue of partial states, served by one task per worker.

    A window's partial states are ready when the window is over and every worker has served its tuples. They wait for
    those of earlier windows, then each takes `merge_s` on one of the tasks, over which they spread evenly.
    """

    def __init__(self, settings: Settings) -> None:
        self.merge_s = settings.merge_seconds
        self.free_at = 0.0
        self.partials = 0

    def merge(self, n_partials: int, ready_at: float, n_tasks: int) -> float:
        """Take in a window's partial states; seconds from their being ready to being merged."""
        done = max(ready_at, self.free_at) + n_partials * self.merge_s / n_tasks
        self.free_at = done
        self.partials += n_partials
        return done - ready_at
