"""The fast solver: closed-form statistics instead of training."""
