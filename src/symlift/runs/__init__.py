"""Run folders and data files: settings, results, and what it takes to report and to resume them."""
