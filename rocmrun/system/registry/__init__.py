"""Image registries over HTTP. Pulls nothing."""

from rocmrun.system.registry.client import RegistryClient

__all__ = ["RegistryClient"]
