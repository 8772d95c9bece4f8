"""Commands that other packages add, as `symlift_paper` adds ``symlift experiment``.

A package declares them as entry points of the group ``symlift.commands``: the name of the command,
and a `typer.Typer`. Nothing is imported before such a command, or the list of all commands, is
asked for.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_group

import symlift
from symlift.cli.console import stderr_line
from symlift.errors import SymliftError

__all__ = ["GROUP", "ExtensibleGroup", "declared_commands"]

#: the group of entry points
GROUP = "symlift.commands"


class ExtensibleGroup(TyperGroup):
    """Commands of this package, and on demand those of others."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None where nobody has it."""
        if cmd_name not in self.commands:
            self._extend()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, those of other packages last."""
        self._extend()
        return super().list_commands(ctx)

    def _extend(self) -> None:
        for name, entry in declared_commands().items():
            if name in self.commands:
                continue
            try:
                command = get_group(entry.load())
            except (ImportError, AttributeError, SymliftError) as error:  # a broken package
                stderr_line("yellow", "warning", f"no command {name} from {entry.value}: {error}")
                continue
            command.name = name
            self.commands[name] = command


def declared_commands() -> dict[str, EntryPoint]:
    """Entry points by name: of installed packages, and of the source tree that this runs from.

    The metadata of an editable installation are as old as the installation; what the source tree
    declares now is in its ``pyproject.toml``.
    """
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    return installed | _of_source_tree(Path(symlift.__file__).parents[2] / "pyproject.toml")


def _of_source_tree(pyproject: Path) -> dict[str, EntryPoint]:
    """What our own ``pyproject.toml`` declares; nothing where there is none, as in a wheel."""
    try:
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, ValueError):
        return {}
    if project.get("name") != "symlift":
        return {}
    entries = project.get("entry-points", {}).get(GROUP, {})
    return {name: EntryPoint(name, value, GROUP) for name, value in entries.items()}
