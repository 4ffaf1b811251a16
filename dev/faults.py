"""The fault suite: a stream with known totals runs while tasks, processes, hosts and the broker are killed.

    python -m dev.faults [--faults N] [--groupings NAME,NAME] [--seed N]

`anabranch run word-count` reads a topic of a real broker on a standalone cluster of three hosts. A seeded schedule
kills tasks, Python workers, executors, Spark workers, the broker and the driver, which is then started again from its
checkpoint. In the end every word must have been counted exactly as often as it was sent.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow.parquet as pq
from confluent_kafka import Producer

from anabranch.streams import Zipf
from dev import SHORT_LIVED, topics
from dev.cluster import Cluster, end
from dev.kafka import Broker, KafkaMissing, connector_jars

GROUPINGS = ("partial-key", "fish", "dstream", "spillway")
# Kinds and how often of a hundred; those behind the first two take up to a minute each.
KINDS = {"task": 42, "python worker": 34, "executor": 9, "spark worker": 4, "broker": 5, "driver": 6}
_RATE = 500
_BATCH = 5000
_RECOVERY_S = 120.0
# The first batches wait for kernels to be compiled, where they have not been before.
_START_S = 600.0
_SPARK = {
    # Blocks of a lost executor are gone for good: asking for them again is only waiting.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.executor.memory": "700m",
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "10s",
    # A task may be hit by several faults; a query that gives up is started again, but that is another test.
    "spark.task.maxFailures": "8",
    "spark.sql.shuffle.partitions": "4",
}


@dataclass
class Tally:
    """What happened to one grouping."""

    grouping: str
    faults: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    sent: int = 0
    counted: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0


class Sender(threading.Thread):
    """Sends words of a Zipf stream at a steady rate until it is told to stop; `sent` is what the broker took."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.sent: Counter[str] = Counter()
        self.over = threading.Event()
        # A broker that comes back gets what it missed, once and in order.
        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 300_000}
        self.producer = Producer(settings | {"linger.ms": 50, "reconnect.backoff.max.ms": 1000, "log_level": 0})

    def run(self) -> None:
        stream = Zipf(n_tuples=10**8, n_keys=5000, z=1.2)
        for batch in stream.batches(size=_RATE // 5, stop=10**8):
            if self.over.wait(0.2):
                break
            for word in batch["key"].to_pylist():
                self.producer.produce(self.topic, str(word), on_delivery=self._delivered)
            self.producer.poll(0)
        self.producer.flush(300)

    def _delivered(self, error: object, message: object) -> None:
        if error:
            raise RuntimeError(f"a record was not delivered: {error}")
        self.sent[message.value().decode()] += 1  # type: ignore[attr-defined]

    def finish(self) -> Counter[str]:
        """Stop, and wait until everything sent has been taken."""
        self.over.set()
        self.join()
        return self.sent


@dataclass
class Scene:
    """One grouping's run: broker, cluster, driver, and the means to hurt them."""

    folder: Path
    grouping: str
    broker: Broker
    cluster: Cluster
    random: random.Random
    tally: Tally
    topic: str = ""
    driver: psutil.Popen | None = None

    def start_driver(self) -> None:
        """Start `anabranch run`, or go on from its checkpoint."""
        command = [
            sys.executable, "-m", "dev.fault_driver", "run", "word-count",
            "--source", f"kafka://{self.broker.servers}/{self.topic}?format=text",
            "--sink", str(self.folder / "sink"), "--checkpoint", str(self.folder / "checkpoint"),
            "--grouping", self.grouping, "--workers", "6", "--work-us", "150", "--batch", str(_BATCH),
            "--master", self.cluster.master, "--jars", str(connector_jars()), "--top", "0",
        ]  # fmt: skip
        command += [part for name, value in _SPARK.items() for part in ("--conf", f"{name}={value}")]
        variables = {"FAULTS_KILLED": str(self.folder / "killed")}
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = psutil.Popen(
                command, stdin=-1, stdout=log, stderr=log, cwd=Path(__file__).parents[1], env=os.environ | variables
            )

    def hurt(self, kind: str) -> bool:
        """Do one fault of this kind; whether there was something to hurt."""
        return bool(getattr(self, "_" + kind.replace(" ", "_"))())

    def _task(self) -> bool:
        said = self.folder / "killed"
        before = said.read_text() if said.exists() else ""
        assert self.driver is not None
        try:
            self.driver.stdin.write(b"task\n")
            self.driver.stdin.flush()
        except OSError:
            return False
        until = time.monotonic() + 5
        while time.monotonic() < until:
            now = said.read_text() if said.exists() else ""
            if now != before:
                return now.endswith("1\n")
            time.sleep(0.05)
        return False

    def _python_worker(self) -> bool:
        return self._kill_one("pyspark.worker", forked=True)

    def _executor(self) -> bool:
        return self._kill_one("CoarseGrainedExecutorBackend")

    def _spark_worker(self) -> bool:
        host = self.random.choice(self.cluster.hosts)
        self.cluster.kill_worker(host)
        time.sleep(1)
        self.cluster.start_worker(host)
        return True

    def _broker(self) -> bool:
        self.broker.kill()
        time.sleep(1)
        self.broker.start()
        return True

    def _driver(self) -> bool:
        assert self.driver is not None
        end(self.driver)
        self.start_driver()
        return True

    def _kill_one(self, mark: str, *, forked: bool = False) -> bool:
        found = [one for process in self.cluster.processes for one in _family(process) if mark in _command(one)]
        if forked:
            found = [one for one in found if mark in _command(one.parent())]
        if not found:
            return False
        self.random.choice(found).kill()
        return True

    def committed(self) -> int:
        """The last batch that was committed."""
        names = [file.name for file in (self.folder / "checkpoint" / "commits").glob("[0-9]*")]
        return max(map(int, names), default=-1)

    def recover(self, batches: int = 1, within: float = _RECOVERY_S) -> None:
        """Wait for so many batches more; a driver that has given up is started again."""
        goal, until = self.committed() + batches, time.monotonic() + within
        while self.committed() < goal:
            assert self.driver is not None
            if self.driver.poll() is not None:
                self.tally.restarts += 1
                self.start_driver()
            if time.monotonic() > until:
                said = (self.folder / "driver.log").read_text(errors="replace").splitlines()[-20:]
                raise TimeoutError("\n".join([f"no batch for {within:.0f} s; the driver's last words:", *said]))
            time.sleep(0.2)

    def finish(self, sent: Counter[str]) -> Counter[str]:
        """Let the run take what is left, end it as Ctrl-C does, and give the counts in the sink."""
        with suppress(TimeoutError):  # no batch comes any more: what is missing now is lost
            while counted(self.folder / "sink").total() < sent.total():
                self.recover()
        # Whatever is doubled may still be on its way.
        time.sleep(3)
        assert self.driver is not None
        self.driver.terminate()
        self.driver.wait(_RECOVERY_S)
        return counted(self.folder / "sink")


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _command(process: psutil.Process | None) -> str:
    try:
        return " ".join(process.cmdline()) if process is not None else ""
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def counted(sink: Path) -> Counter[str]:
    """The newest count of each word."""
    found: Counter[str] = Counter()
    folders = sorted(sink.glob("batch=*"), key=lambda folder: int(folder.name.partition("=")[2]))
    for folder in folders:
        rows = pq.read_table(folder, columns=["word", "count"], partitioning=None)
        found |= dict(zip(rows["word"].to_pylist(), rows["count"].to_pylist(), strict=True))
    return found


def schedule(n: int, seed: int) -> list[str]:
    """Kinds of `n` faults in random order: a fifth at least are slow ones, and each kind comes if there is room."""
    kinds, weights = list(KINDS), np.array(list(KINDS.values())) / sum(KINDS.values())
    counts = np.maximum(1, np.floor(weights * n)).astype(int)
    while counts.sum() < n:
        counts[np.argmax(weights * n - counts)] += 1
    chosen = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    random.Random(seed).shuffle(chosen)
    return chosen[:n]


def run(grouping: str, kinds: list[str], seed: int, folder: Path, *, say: bool = True) -> Tally:
    """One grouping under these faults."""
    began, choice, tally = time.monotonic(), random.Random(seed), Tally(grouping)
    (folder / "cluster").mkdir(parents=True)
    with Broker(folder / "broker") as broker, Cluster(folder / "cluster", n_hosts=3) as cluster:
        scene = Scene(folder, grouping, broker, cluster, choice, tally, topics.create(broker.servers, "words", 4))
        sender = Sender(broker.servers, scene.topic)
        sender.start()
        try:
            scene.start_driver()
            scene.recover(2, within=_START_S)
            for number, kind in enumerate(kinds):
                _inject(scene, kind)
                if say:
                    print(f"{grouping}: fault {number + 1} of {len(kinds)}: {kind}", flush=True)
            sent = sender.finish()
            found = scene.finish(sent)
        finally:
            sender.over.set()
            if scene.driver is not None:
                end(scene.driver)
    tally.sent, tally.counted = sent.total(), found.total()
    tally.lost, tally.doubled = (sent - found).total(), (found - sent).total()
    tally.seconds = time.monotonic() - began
    return tally


def _inject(scene: Scene, kind: str) -> None:
    """One fault; where there was nothing to hurt, once more a little later."""
    quick = kind in ("task", "python worker")
    until = time.monotonic() + _RECOVERY_S
    while True:
        # At any moment of a batch, not only where the last one ended.
        time.sleep(scene.random.uniform(0.3, 3.0))
        if scene.hurt(kind):
            break
        if time.monotonic() > until:
            raise TimeoutError(f"there was no {kind} to hurt for {_RECOVERY_S:.0f} s")
    scene.tally.faults[kind] += 1
    # Quick faults may meet; after a slow one, and now and then in between, the stream must go on.
    scene.recover(1 if not quick or scene.random.random() < 0.2 else 0)


def table(tallies: list[Tally]) -> str:
    """Faults by kind, and what became of the tuples."""
    head = ["grouping", *KINDS, "faults", "restarts", "sent", "counted", "lost", "doubled", "minutes"]
    rows = [
        [t.grouping, *(str(t.faults[kind]) for kind in KINDS), str(t.faults.total()), str(t.restarts), f"{t.sent:,}",
         f"{t.counted:,}", f"{t.lost:,}", f"{t.doubled:,}", f"{t.seconds / 60:.1f}"]
        for t in tallies
    ]  # fmt: skip
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in [head, *rows]
    )


def main() -> None:
    """Run the suite, print its table, and fail where a tuple was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m dev.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--faults", type=int, default=60, help="of each grouping (default 60)")
    parser.add_argument("--groupings", default=",".join(GROUPINGS), help=f"default {','.join(GROUPINGS)}")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tallies = []
    try:
        for at, grouping in enumerate(given.groupings.split(",")):
            with tempfile.TemporaryDirectory(prefix="anabranch-faults-") as folder:
                kinds = schedule(given.faults, given.seed + at)
                tallies.append(run(grouping, kinds, given.seed + at, Path(folder)))
            print(table(tallies), flush=True)
    except KafkaMissing as error:
        sys.exit(f"Error: {error}")
    sys.exit(any(tally.lost or tally.doubled for tally in tallies))


if __name__ == "__main__":
    main()
