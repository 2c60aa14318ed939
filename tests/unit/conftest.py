"""Examples are judged by what they show, and not by how long a machine takes that is busy with other tests."""

from hypothesis import HealthCheck, settings

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
