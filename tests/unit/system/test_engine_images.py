"""Images as an engine lists them, and as it finds them a moment later."""

from typing import Any

import docker.errors
import pytest

from rocmrun.errors import EngineFailed
from rocmrun.system.engine.daemon import DockerEngine


class Listing:
    """The part of the SDK that lists images; it finds them as *answers* say."""

    def __init__(self, **answers: Exception | dict[str, Any]) -> None:
        self.answers = answers

    def images(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert filters == {"reference": "rocmrun/locked:*"}
        return [{"Id": name} for name in self.answers]

    def inspect_image(self, name: str) -> dict[str, Any]:
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return {"Id": name, **answer}


def test_an_image_that_is_listed_and_not_found_is_left_out() -> None:
    """While it is made or removed the engine answers 404, in one word or another."""
    engine = DockerEngine(
        Listing(
            going=docker.errors.ImageNotFound("no such image"),
            coming=docker.errors.NotFound("reference does not exist"),
            here={"RepoTags": ["rocmrun/locked:1"], "Size": 5},
        )
    )

    (found,) = engine.named_images("rocmrun/locked")

    assert (found.image_id, found.tags, found.size_bytes) == ("here", ("rocmrun/locked:1",), 5)
    assert engine.image("coming") is None


def test_any_other_answer_is_the_engines_failure() -> None:
    """It is no image that is gone."""
    engine = DockerEngine(Listing(broken=docker.errors.APIError("layer does not exist")))

    with pytest.raises(EngineFailed, match="layer does not exist"):
        engine.named_images("rocmrun/locked")
