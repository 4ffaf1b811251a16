"""`anabranch run` as it is, with one thread more that kills running tasks when it is told to.

Each line on standard input asks for one; the file named by FAULTS_KILLED gets a line for each task that was killed.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

from pyspark import SparkContext

from anabranch.cli import main


def _obey() -> None:
    for number, _ in enumerate(sys.stdin):
        try:
            killed = _kill_a_task(random.Random(number))
        except Exception as error:  # a context that is starting or stopping has no tasks
            killed = False
            print(f"no task was killed: {error}", file=sys.stderr, flush=True)
        with Path(os.environ["FAULTS_KILLED"]).open("a") as said:
            said.write(f"{int(killed)}\n")


def _kill_a_task(choice: random.Random) -> bool:
    """Kill one of the tasks that run now, as an impatient operator would; Spark runs it again."""
    context = SparkContext._active_spark_context
    if context is None:
        return False
    running = []
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        tasks = store.taskList(stage, info.currentAttemptId if info else 0, 1000)
        found = (tasks.apply(at) for at in range(tasks.size()))
        running += [task.taskId() for task in found if task.status() == "RUNNING"]
    return bool(running) and bool(context._jsc.sc().killTaskAttempt(choice.choice(running), True, "fault"))


if __name__ == "__main__":
    threading.Thread(target=_obey, daemon=True).start()
    main()
