"""The ring solver: one angle seen through many noisy, tuned channels."""
