"""Pure: no files, clock, environment, processes, sockets or Docker."""
