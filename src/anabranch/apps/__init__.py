"""Applications on balanced streams: sources, keyed work, sinks, and the query that joins them."""

from anabranch.apps.app import App, Field
from anabranch.apps.balancing import DEFAULT_GROUPING, Balancing
from anabranch.apps.checkpoint import Checkpoint
from anabranch.apps.connection import Connection
from anabranch.apps.dead_letters import DeadLetters
from anabranch.apps.file_source import FileSource
from anabranch.apps.geo_trends import GeoTrends
from anabranch.apps.hashtags import Hashtags
from anabranch.apps.kafka import KafkaSink, KafkaSource
from anabranch.apps.kafka_address import KafkaAddress
from anabranch.apps.named import named, names
from anabranch.apps.pipeline import Events, Pipeline
from anabranch.apps.session import end_java, own_session
from anabranch.apps.sink import ConsoleSink, FolderSink, MemorySink, Sink, latest
from anabranch.apps.source import GeneratorSource, Source, source
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
