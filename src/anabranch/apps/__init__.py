"""Applications on balanced streams: sources, keyed work, sinks, and the query that joins them."""

from anabranch.apps.app import App, Field
from anabranch.apps.balancing import DEFAULT_GROUPING, Balancing
from anabranch.apps.geo_trends import GeoTrends
from anabranch.apps.hashtags import Hashtags
from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.kafka.ends import KafkaSink, KafkaSource
from anabranch.apps.registry import named, names
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.own_session import end_java, own_session
from anabranch.apps.run.pipeline import Events, Pipeline
from anabranch.apps.sinks.dead_letters import DeadLetters
from anabranch.apps.sinks.sink import ConsoleSink, FolderSink, MemorySink, Sink, latest
from anabranch.apps.sources.file_source import FileSource
from anabranch.apps.sources.source import GeneratorSource, Source, source
from anabranch.apps.vwap import Vwap
from anabranch.apps.word_count import WordCount

__all__ = [
    "DEFAULT_GROUPING",
    "App",
    "Balancing",
    "Checkpoint",
    "Connection",
    "ConsoleSink",
    "DeadLetters",
    "Events",
    "Field",
    "FileSource",
    "FolderSink",
    "GeneratorSource",
    "GeoTrends",
    "Hashtags",
    "KafkaAddress",
    "KafkaSink",
    "KafkaSource",
    "MemorySink",
    "Pipeline",
    "Sink",
    "Source",
    "Vwap",
    "WordCount",
    "end_java",
    "latest",
    "named",
    "names",
    "own_session",
    "source",
]


def __dir__() -> list[str]:
    return sorted(__all__)
