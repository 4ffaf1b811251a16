"""Entry point of ``anabranch``: results on stdout, progress and errors on stderr; exit 0 done, 1 failed, 2 usage."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

import anabranch
from anabranch.cli.bound import bound
from anabranch.cli.catalogues import groupings, streams
from anabranch.cli.chain import chain
from anabranch.cli.demo import demo
from anabranch.cli.options import Grouped
from anabranch.cli.output import print_text, say
from anabranch.cli.predictors import predictors
from anabranch.cli.produce import produce
from anabranch.cli.run import run
from anabranch.cli.simulate import simulate
from anabranch.cli.values import OptionError
from anabranch.errors import AnabranchError, ConfigError

# What typer raises on wrong usage: it has no public name there.
_UsageError: Any = typer.BadParameter.__base__
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Compare the published ways to spread skewed keys over workers.",
    epilog="Start with: anabranch simulate --stream 'zipf(z=1.4)' --workers 16",
)
for verb in (simulate, bound, chain, run, produce, demo, streams, groupings, predictors):
    app.command(cls=Grouped)(verb)


def _version(show: bool) -> None:
    if show:
        print_text(f"anabranch {anabranch.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an expected error is one line, never a traceback."""
    try:
        sys.exit(app(standalone_mode=False))
    except _UsageError as error:
        _explain(error)
    except (ConfigError, OptionError) as error:
        _fail(error, 2)
    except (AnabranchError, OSError, MemoryError) as error:
        _fail(error, 1)
    except KeyboardInterrupt:
        _fail("stopped", 130)


def _explain(error: Any) -> None:
    """Print the usage and what is wrong with it as typer would, with the characters escaped that command a terminal."""
    shown = io.StringIO()
    error.show(shown)
    print_text(shown.getvalue().rstrip("\n"), err=True)
    sys.exit(error.exit_code)


def _fail(error: object, code: int) -> None:
    say(f"Error: {error}")
    sys.exit(code)
