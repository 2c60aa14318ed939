"""What a probe is asked, in which image it runs, how far it is, and for how long it counts."""
