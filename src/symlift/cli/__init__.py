"""The command line: what people type."""

try:
    from symlift.cli.app import app, main
except KeyboardInterrupt:  # before there is anything that could catch it
    import sys

    sys.stderr.write("error: interrupted\n")
    raise SystemExit(130) from None

__all__ = ["app", "main"]
