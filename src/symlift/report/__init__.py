"""The HTML report of a run: one file that opens offline."""

from __future__ import annotations

from symlift.report.page import write_page, write_report
from symlift.report.several import PartLine, write_parts_page

__all__ = ["PartLine", "write_page", "write_parts_page", "write_report"]
