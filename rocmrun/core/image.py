"""What a local image's config says: facts and lints, no pulls."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """The config of a local image.

    Attributes:
        image_id: The engine's id ("sha256:…"): config digest on the classic store.
        repo_digests: "repo@sha256:…" names that the engine knows it by.
        user: USER as written; "" is root.
        entrypoint: ENTRYPOINT, () when absent.
        command: CMD, () when absent.
        env: NAME → value, as baked.
        volumes: VOLUME paths, sorted.
        labels: Sorted (key, value) pairs.
    """

    image_id: str
    repo_digests: tuple[str, ...] = ()
    os: str = "linux"
    architecture: str = "amd64"
    variant: str = ""
    user: str = ""
    workdir: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    volumes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    healthcheck: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """The baked environment as a mapping."""
        return dict(self.env)
