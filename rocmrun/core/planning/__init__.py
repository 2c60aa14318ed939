"""From a profile, an image, a host and an engine to a plan."""
