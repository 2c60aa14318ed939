"""Judge a container that runs: what it has, what it uses, and what holds it up."""
