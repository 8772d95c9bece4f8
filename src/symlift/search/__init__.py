"""What every solver is made of: a problem, starts, criteria, moves, one judge and one loop."""
