"""Images of an engine: looked up, fetched, named."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import docker
import docker.auth
import docker.errors
import requests

from rocmrun.core.engine_errors import pull_error
from rocmrun.core.image import ImageFacts
from rocmrun.core.keep_tags import NamedImage
from rocmrun.core.lock import Resolved
from rocmrun.core.run import PullEvent
from rocmrun.system.engine.calls import CALL_TIMEOUT_SECONDS, translated
from rocmrun.system.engine.logins import Logins


class EngineImages:
    """The part of an engine that knows images."""

    _api: Any

    _logins: Logins

    def image(self, name: str) -> ImageFacts | None:
        """Return the config of a local image by id, digest or tag; None when it is not here."""
        with translated(f"inspect image {name}"):
            try:
                return _image_facts(self._api.inspect_image(name))
            except docker.errors.NotFound:
                return None

    def history(self, image_id: str) -> tuple[str, ...]:
        """Return the steps that a local image was built by, the first one first; () when it is not here."""
        with translated(f"read the history of {image_id}"):
            try:
                steps = self._api.history(image_id)
            except docker.errors.NotFound:
                return ()
        return tuple(step.get("CreatedBy") or "" for step in reversed(steps))

    def asks_registries(self) -> bool:
        """Whether it can say what a reference names at its registry; Podman has no such call.

        Asked with a name that no image can have: an engine that has the call refuses it without asking anybody.
        """
        api = self._api
        with translated("ask the engine what it can do"):
            url = api._url("/distribution/{0}/json", ":")
            answer = api.get(url, timeout=CALL_TIMEOUT_SECONDS)
        return bool(answer.status_code != requests.codes.not_found)

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
        """Ask the registry, through the engine, what *reference* names now."""
        api = self._api
        login, warning = self._logins.login(reference)
        with translated(f"resolve {reference}", registry=reference):
            response = api.get(
                api._url(
                    "/distribution/{0}/json", reference
                ),  # inspect_distribution has no timeout
                headers={"X-Registry-Auth": docker.auth.encode_header(login)} if login else {},
                timeout=timeout_seconds,
            )
            api._raise_for_status(response)
            body = response.json()
        descriptor = body["Descriptor"]
        platforms = body.get("Platforms")
        return Resolved(
            digest=descriptor["digest"],
            media_type=descriptor.get("mediaType"),
            platforms=None if platforms is None else _platforms(platforms),
            warning=warning,
        )

    def pull(self, name: str, platform: str) -> Iterator[PullEvent]:
        """Pull *name* ("repo@sha256:…") and yield progress; an error inside the stream is raised.

        The SDK's `images.pull` hides those errors and returns whatever is local: it is not used.
        """
        login, warning = self._logins.login(name)
        if warning:
            yield PullEvent(warning=warning)
        with translated(f"pull {name}", registry=name):
            repository, _, digest = name.partition("@")
            stream = self._api.pull(
                repository,
                tag=digest,
                stream=True,
                decode=True,
                platform=platform,
                auth_config=login,
            )
            failure = ""
            for event in stream:
                if "error" in event:
                    failure = (
                        failure or event["error"]
                    )  # the last event; the stream is read to its end
                    continue
                detail = event.get("progressDetail") or {}
                yield PullEvent(
                    layer=event.get("id", ""),
                    status=event.get("status", ""),
                    current=detail.get("current"),
                    total=detail.get("total"),
                )
        if failure:
            raise pull_error(name, failure)

    def tag(self, image_id: str, repository: str, tag: str) -> None:
        """Give a local image a name, so that `docker image prune` leaves it alone."""
        with translated(f"tag {image_id}"):
            self._api.tag(image_id, repository, tag)

    def named_images(self, repository: str) -> tuple[NamedImage, ...]:
        """Return the images that a tag of *repository* names, each with all its names."""
        with translated("list images"):
            listed = self._api.images(filters={"reference": f"{repository}:*"})
            found = []
            for body in listed:
                # The filter leaves out an image's other names too, so each is looked at by itself;
                # one that is not found by its id, as while it is made or removed, is no image to speak of.
                with contextlib.suppress(docker.errors.NotFound):
                    found.append(self._api.inspect_image(body["Id"]))
        return tuple(
            NamedImage(
                image_id=body["Id"],
                tags=tuple(map(_familiar, body.get("RepoTags") or ())),
                digests=tuple(
                    name
                    for name in map(_familiar, body.get("RepoDigests") or ())
                    # Podman makes one of each tag, too.
                    if name.partition("@")[0] not in {"<none>", repository}
                ),
                size_bytes=body.get("Size") or 0,
            )
            for body in found
        )

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of the images that any container was made from, running or not."""
        with translated("list containers"):
            return frozenset(body["ImageID"] for body in self._api.containers(all=True))

    def remove_image_name(self, name: str) -> None:
        """Take *name* from an image; the image goes with its last name. Gone already is no error."""
        with translated(f"remove {name}"), contextlib.suppress(docker.errors.NotFound):
            self._api.remove_image(name, noprune=True)


def _familiar(name: str) -> str:
    """Return *name* as Docker writes it: Podman does not leave out Docker Hub's."""
    return name.removeprefix("docker.io/").removeprefix("library/")


def _image_facts(body: Mapping[str, Any]) -> ImageFacts:
    config = body.get("Config") or {}
    environment = (entry.partition("=")[::2] for entry in config.get("Env") or ())
    return ImageFacts(
        image_id=body["Id"],
        repo_digests=tuple(sorted(set(body.get("RepoDigests") or ()))),
        os=body.get("Os") or "linux",
        architecture=body.get("Architecture") or "",
        variant=body.get("Variant") or "",
        user=config.get("User") or "",
        workdir=config.get("WorkingDir") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        env=tuple(sorted((name, value) for name, value in environment)),
        volumes=tuple(sorted(config.get("Volumes") or ())),
        labels=tuple(sorted((config.get("Labels") or {}).items())),
        healthcheck=bool(config.get("Healthcheck")),
    )


def _platforms(found: list[Mapping[str, str]]) -> tuple[str, ...]:
    names = {
        "/".join(
            part for part in (item.get("os"), item.get("architecture"), item.get("variant")) if part
        )
        for item in found
        if item.get("os") not in {None, "", "unknown"}
    }
    return tuple(sorted(names))
