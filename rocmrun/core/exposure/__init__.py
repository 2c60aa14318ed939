"""The exposure score: how much of a host a container can reach."""
