"""Applications by the names that the command line uses."""

from __future__ import annotations

from anabranch.apps.app import App
from anabranch.apps.geo_trends import GeoTrends
from anabranch.apps.hashtags import Hashtags
from anabranch.apps.vwap import Vwap
from anabranch.apps.word_count import WordCount
from anabranch.names import Catalogue

APPS: Catalogue[type[App], App] = Catalogue("application", (WordCount, Hashtags, Vwap, GeoTrends))
names, named = APPS.names, APPS.named
