"""The outside world, one thing a module. Modules here do not import each other."""
