"""What finds the parameters: every solver is ``solve(X, grid, rng, …) -> Solution`` and sees
nothing but X and the grid.
"""
