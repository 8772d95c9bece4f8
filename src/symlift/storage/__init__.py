"""How anything is written: whole or not at all, and never as code."""
