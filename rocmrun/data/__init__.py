"""Package data; each file carries its sources."""
