"""The HTML report of a run: one file that opens offline."""

from __future__ import annotations

from symlift.report.page import write_page, write_report

__all__ = ["write_page", "write_report"]
