"""`docker run` lines: a plan written as one, and a published one brought onto the baseline."""
