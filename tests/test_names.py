"""What is found by a name, and made from a text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from anabranch.errors import ConfigError
from anabranch.names import Catalogue, closest, parameters_of, read


@dataclass(frozen=True)
class Box:
    """Something with parameters of every kind."""

    name = "box"

    n_sides: int = 4
    weight: float | None = None
    label: str = "plain"
    closed: bool = False
    content: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.n_sides < 3:
            raise ConfigError(f"n_sides must be at least 3, got {self.n_sides}")

    @classmethod
    def cube(cls, weight: float = 1.5) -> Box:
        """A box of six sides."""
        return cls(6, weight)


BOXES: Catalogue[type[Box], Box] = Catalogue("box", (Box, Box.cube), "box(sides=4)")  # type: ignore[arg-type]


def test_classes_and_class_methods_are_found_by_their_names():
    assert BOXES.names() == ["box", "cube"]
    assert BOXES.named("box") is Box
    assert BOXES.parse("cube") == Box(6, 1.5)


def test_parameters_are_fields_with_plain_defaults_and_counts_lose_their_n():
    assert list(parameters_of(Box)) == ["sides", "weight", "label", "closed"]


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("box", Box()),
        ("box()", Box()),
        (" box ( sides = 5 , closed=True, ) ", Box(5, closed=True)),
        ("box(sides=1k, weight=2.5k)", Box(1000, 2500.0)),
        ("box(weight=None, label='a, (b) = c')", Box(label="a, (b) = c")),
        ('box(label="it\'s")', Box(label="it's")),
        ("cube(weight=2)", Box(6, 2)),
    ],
)
def test_a_text_says_the_parameters(text, box):
    assert BOXES.parse(text) == box


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("boxes", "no box is named 'boxes'; did you mean box?"),
        ("sphere", "no box is named 'sphere'; there are box, cube"),
        ("box(sides=2)", "sides must be at least 3, got 2"),
        ("box(sides=2.5)", "sides must be a whole number, got 2.5"),
        ("box(weight=heavy)", "weight must be a number or None, got 'heavy'"),
        ("box(label=3)", "label must be text in quotes, got 3"),
        ("box(closed='True')", "closed must be True or False, got 'True'"),
        ("box(content=3)", "box has no parameter 'content'; it takes sides, weight, label, closed"),
        ("box(sides=3", "cannot read 'box(sides=3'; write it as in 'box(sides=4)'"),
        ("box(sides=3:5:1)", "sides takes one value here, got 3:5:1; only sweeps take several"),
    ],
)
def test_errors_name_the_remedy(text, message):
    with pytest.raises(ConfigError) as caught:
        BOXES.parse(text)
    assert str(caught.value) == message


def test_a_sweep_has_several_values():
    make, vary = BOXES.sweep("box(sides=3:5:1,9, weight=0.5)")
    assert vary == {"n_sides": [3, 4, 5, 9], "weight": [0.5]}
    assert make(n_sides=9) == Box(9)


def test_what_was_meant_is_found_in_any_case():
    assert closest("WORDZ", ["Words", "counts"]) == "Words"
    assert closest("xyzzy", ["Words"]) is None


def test_a_name_is_read_without_its_brackets():
    assert read("box", "") == ("box", {})
    assert read("box(a=1,2, b='x,y')", "") == ("box", {"a": ["1", "2"], "b": ["'x,y'"]})
