"""Steps that a criterion can accept."""
