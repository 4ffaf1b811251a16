"""Predictors: which keys are hot now? DStream's coins and its competitors, behind one interface."""

from anabranch.predictors.adaptive_count_min import AdaptiveCountMin
from anabranch.predictors.coin import Coin
from anabranch.predictors.dyadic_count_min import DyadicCountMin
from anabranch.predictors.evaluation import Score, evaluate
from anabranch.predictors.predictor import Predictor
from anabranch.predictors.sliding_space_saving import SlidingSpaceSaving

ALL: tuple[type[Predictor], ...] = (Coin, DyadicCountMin, AdaptiveCountMin, SlidingSpaceSaving)

__all__ = ["ALL", "AdaptiveCountMin", "Coin", "DyadicCountMin", "Predictor", "Score", "SlidingSpaceSaving", "evaluate"]


def __dir__() -> list[str]:
    return sorted(__all__)
