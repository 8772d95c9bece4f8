"""Ways to begin: one file each, and none knows another."""
