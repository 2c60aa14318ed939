"""Profiles: what may stand in one, how several are merged, and what is wrong with one."""
