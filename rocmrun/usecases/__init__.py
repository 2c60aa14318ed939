"""What rocmrun does, as lists of steps: the only place that wires core to system."""
