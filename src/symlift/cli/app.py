"""The command line: results on stdout, messages on stderr; exit codes 0, 1 (failed), 2 (input)."""

from __future__ import annotations

import errno
import signal
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from symlift import __version__
from symlift.cli.console import stderr_line, warn
from symlift.cli.doctor import doctor
from symlift.cli.extensions import ExtensibleGroup
from symlift.cli.inspection import inspect
from symlift.cli.probe import probe_app
from symlift.cli.running import InterruptedRunError, demo, recover, report, transform
from symlift.cli.watch import watch
from symlift.errors import InputError, SymliftError

__all__ = ["app", "main"]

app = typer.Typer(
    name="symlift",
    cls=ExtensibleGroup,
    help="Find the hidden domain, its symmetry and the signals behind plain vectors.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(probe_app, name="probe")
# in the order in which the help lists them
for _command in (inspect, demo, recover, transform, report, watch, doctor):
    app.command()(_command)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"symlift {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and stop.")
    ] = False,
) -> None:
    """Find the hidden domain, its symmetry and the signals behind plain vectors."""


# click's class for bad usage, wherever typer keeps it
_UsageError: Any = typer.BadParameter.__mro__[1]


def _stop(code: int, message: str) -> NoReturn:
    # pressing Ctrl-C twice still gives only one line
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    stderr_line("red", "error", message)
    sys.exit(code)


def main() -> None:
    """Run the command line; bad input is one line and exit code 2, a failure exit code 1."""
    warnings.showwarning = warn
    before = signal.getsignal(signal.SIGINT)
    try:
        _main()
    except KeyboardInterrupt:
        _stop(130, "interrupted")
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)


def _main() -> NoReturn:
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _stop(2, str(error))
    except InterruptedRunError as error:
        _stop(130, str(error))
    except (SymliftError, typer.Abort) as error:
        _stop(1, str(error) or "stopped")
    except _UsageError as error:
        if "NoArgs" in type(error).__name__:  # the message is the help
            error.show()
            sys.exit(2)
        where = error.ctx.command_path if error.ctx is not None else "symlift"
        _stop(2, f"{error.format_message().rstrip('.')}: see `{where} --help`")
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of the pipe has ended
            sys.exit(1)
        _stop(
            1,
            f"{error.filename or 'the system'}: {error.strerror or error}; make room or check the"
            " permissions",
        )
    except MemoryError:
        _stop(1, "there is not enough memory for this: give fewer rows or columns")
    if code == 130:
        _stop(130, "interrupted")
    sys.exit(code if isinstance(code, int) else 0)
