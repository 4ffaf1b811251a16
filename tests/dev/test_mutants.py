"""What `make mutants` changes, which tests it runs for a file, and that it tells noticed changes from others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from dev.mutants.__main__ import PACKAGES, report
from dev.mutants.imports import Mapping, Sources
from dev.mutants.operators import Mutant, draw, mutants_of
from dev.mutants.tree import Tree
from dev.mutants.trial import Outcome, run, sources_of

PROJECT = Path(__file__).parents[2]
SOURCES = Sources(PROJECT / "src" / "anabranch")
MAPPING = Mapping(SOURCES, PROJECT / "tests")


def changed(tmp_path: Path, text: str) -> dict[str, set[str]]:
    """By operator, the lines that differ after the changes of a source."""
    path = tmp_path / "source.py"
    path.write_text(text)
    found: dict[str, set[str]] = {}
    for mutant in mutants_of(path):
        found.setdefault(mutant.operator, set()).add(mutant.shown(text.encode())[1].removeprefix("+ "))
    return found


@pytest.mark.parametrize(
    ("line", "operator", "becomes"),
    [
        ("a = b < c", "boundary", {"a = b <= c"}),
        ("a = b >= c", "boundary", {"a = b > c"}),
        ("a = b < c <= d", "boundary", {"a = b <= c <= d", "a = b < c < d"}),
        ("a = (b + c) // d", "arithmetic", {"a = (b - c) // d", "a = (b + c) * d"}),
        ("a = b + 1", "constant", {"a = b + 2", "a = b + 0"}),
        ("a = b[-1]", "constant", {"a = b[-2]", "a = b[-0]"}),
        ("a = 200", "constant", {"a = 400", "a = 100"}),
        ("a = True", "constant", {"a = False"}),
        ("a += b", "dropped statement", {"pass"}),
        ("a += b", "arithmetic", {"a -= b"}),
        ("a[b] = c", "dropped statement", {"pass"}),
        ("a.append(b)", "dropped statement", {"pass"}),
        ("a = b if c else d", "condition", {"a = b if (not (c)) else d"}),
        ("a = [b for b in c if d]", "condition", {"a = [b for b in c if (not (d))]"}),
        ("a = b and c", "condition", {"a = b or c"}),
        ("a = f(b, c=d)", "field lost", {"a = f(b, )"}),
        ("a = ('b', 'c')", "field lost", {"a = ( 'c')", "a = ('b', )"}),
        ("a = {'b': c, 'd': e}", "field lost", {"a = { 'd': e}", "a = {'b': c, }"}),
        ("def f(): return a == b", "return value", {"def f(): return (not (a == b))"}),
        ("def f(): return a, b", "return value", {"def f(): return (b, a)"}),
        ("def f(): return a", "return value", {"def f(): return None"}),
        ("a = 'ä' + b < c", "boundary", {"a = 'ä' + b <= c"}),
    ],
)
def test_small_mistakes_are_made(tmp_path, line, operator, becomes):
    assert changed(tmp_path, line)[operator] == becomes


def test_what_no_test_has_to_notice_stays(tmp_path):
    text = '''
"""Says 1 < 2."""
from a import b
__all__ = ["a", "b"]

@njit(cache=True)
def f(a: Literal[1]) -> Literal[2]:
    """Returns 3."""
    assert a < 4
    log.warning("more than %d", 5)
    print(6)
    raise ConfigError(f"a must be {a + 7}", 8)

def __repr__(self): return 9
'''
    assert changed(tmp_path, text) == {}


def test_every_change_of_a_file_is_another_program():
    path = SOURCES.modules["anabranch.groupings.schemes.head"]
    source = path.read_bytes()
    before = ast.dump(ast.parse(source))
    mutants = mutants_of(path)
    assert len(mutants) > 80
    assert all(ast.dump(ast.parse(mutant.apply(source))) != before for mutant in mutants)


def test_one_change_of_a_line_is_drawn_and_the_same_seed_draws_the_same():
    paths = sources_of(PROJECT, ["sketches"])
    drawn = draw(paths, 50, seed=3)
    assert len({(mutant.path, mutant.line) for mutant in drawn}) == 50
    assert drawn == draw(paths, 50, seed=3) != draw(paths, 50, seed=4)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_has_tests(package):
    for path in sources_of(PROJECT, [package]):
        assert MAPPING.tests_of(path), f"no test is about {path}"


def test_the_tests_named_after_a_file_come_before_those_of_its_importers():
    def names(module: str) -> list[set[str]]:
        layers = MAPPING.tests_of(SOURCES.modules[f"anabranch.{module}"])
        return [{test.stem for test in layer} for layer in layers]

    assert "test_worker" in names("simulate.worker")[0] and "test_run" in names("simulate.worker")[1]
    assert names("groupings.spillway.chunk")[0] >= {"test_spill"}
    # By a name that the package hands on.
    assert "test_reports" in names("groupings.schemes.fish")[0]
    # By a file beside the test, and by the package as a whole.
    assert names("groupings.spillway.moves")[-1] >= {"test_contract", "test_fixed_routes"}


def test_the_kernels_that_may_hold_a_change_are_those_of_its_importers():
    reached = SOURCES.reached_from("anabranch.containers.slot_table")
    assert {"anabranch.containers.slot_table", "anabranch.groupings.schemes.head", "anabranch.simulate.run"} <= reached
    assert not reached & {"anabranch.sketches.count_min", "anabranch.groupings.spillway.arcs"}


# --- on a project of two functions, of which one is tested

SOURCE = """def down(a):
    if a > 3:
        return 7
    return a


def other(a):
    return a < 5
"""
TEST = """from anabranch.part.steps import down


def test_it():
    assert [down(a) for a in (2, 3, 4)] == [2, 3, 7]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    package, tests = root / "src" / "anabranch" / "part", root / "tests"
    package.mkdir(parents=True)
    (tests / "part").mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "steps.py").write_text(SOURCE)
    (package / "user.py").write_text("from anabranch.part.steps import down\n")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['spark', 'slow']\n")
    (tests / "conftest.py").write_text("from hypothesis import settings\nsettings.register_profile('mutants')\n")
    (tests / "part" / "test_steps.py").write_text(TEST)
    return root


def mutant(project: Path, old: str, new: str) -> Mutant:
    start = SOURCE.index(old)
    path = project / "src" / "anabranch" / "part" / "steps.py"
    return Mutant(path, SOURCE[:start].count("\n") + 1, "by hand", start, start + len(old), new)


@pytest.mark.parametrize(
    ("old", "new", "came"),
    [("a > 3", "a >= 3", "failed"), ("return 7", "while 1: pass", "slow"), ("a < 5", "a <= 5", "passed")],
)
def test_a_change_is_made_tried_and_taken_back(project, tmp_path, old, new, came):
    tree, test = Tree(project, tmp_path / "tree"), project / "tests" / "part" / "test_steps.py"
    change = mutant(project, old, new)
    tree.change(change)
    assert tree.run([test], 4.0 if came == "slow" else 200.0, jvm=False) == came
    tree.restore(change)
    assert tree.run([test], 200.0, jvm=False) == "passed"
    assert change.path.read_text() == SOURCE


def test_kernels_of_importers_are_dropped_with_a_change_and_come_back(project, tmp_path):
    part = project / "src" / "anabranch" / "part"
    (part / "__pycache__").mkdir()
    stored = [part / "__pycache__" / f"{name}.py311.{end}" for name in ("steps.down-1", "user.f-3", "other.f-3")
              for end in ("nbi", "1.nbc")]  # fmt: skip
    for path in stored:
        path.write_text("clean")
    tree = Tree(project, tmp_path / "tree")

    def kernels() -> dict[str, str]:
        folder = tree.package / "part" / "__pycache__"
        return {path.name: path.read_text() for path in sorted(folder.glob("*.nb?"))}

    before, change = kernels(), mutant(project, "a < 5", "a <= 5")
    assert len(before) == 6
    tree.change(change)
    assert list(kernels()) == ["other.f-3.py311.1.nbc", "other.f-3.py311.nbi"]
    (tree.package / "part" / "__pycache__" / "steps.down-1.py311.nbi").write_text("of the change")
    tree.restore(change)
    assert kernels() == before


def test_survivors_are_listed(project, tmp_path):
    outcomes = run(project, tmp_path / "scratch", ["part"], n=100, seed=1, most_s=600.0)
    assert {outcome.mutant.line for outcome in outcomes if outcome.survived} == {8}
    listed = report(project, outcomes).splitlines()
    assert listed[0] == f"part: 1 of {len(outcomes)} survived"
    assert listed[1].startswith("  src/anabranch/part/steps.py:8 ")
    assert listed[2] == "    - return a < 5"
    assert listed[-1].startswith(f"1 of {len(outcomes)} survived; ")


def test_a_file_without_tests_is_said_to_have_none(project):
    change = mutant(project, "a < 5", "a <= 5")
    assert "steps.py:8 by hand (no tests)" in report(project, [Outcome(change, "no tests", 0.0)])
