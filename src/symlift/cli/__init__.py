"""The command line: what people type."""

from symlift.cli.app import app, main

__all__ = ["app", "main"]
