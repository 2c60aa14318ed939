"""How calls to the engine end: in time, and in our own errors."""

import contextlib
from collections.abc import Iterator
from typing import Any

import docker
import docker.errors
import requests.exceptions

from rocmrun.core.engine_errors import container_error, pull_error
from rocmrun.errors import (
    EngineFailed,
    EngineUnreachable,
    ImageGone,
)

CALL_TIMEOUT_SECONDS = 60
_PODMANS_CONFLICT = "container state improper"  # libpod/define/errors.go, ErrCtrStateInvalid


@contextlib.contextmanager
def gone_is_fine() -> Iterator[None]:
    """Take a container that is not there, or does not run any more, for what was wanted."""
    conflict = requests.codes.conflict
    try:
        yield
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        # 409: "is not running", "removal already in progress"; Podman 4 says it with 500
        if error.status_code != conflict and _PODMANS_CONFLICT not in str(error.explanation):
            raise


@contextlib.contextmanager
def translated(what: str, *, container: bool = False, registry: str = "") -> Iterator[None]:
    """Turn what the SDK raises into our errors; *what* completes "cannot …"."""
    try:
        yield
    except docker.errors.APIError as error:
        text = str(error.explanation or error)
        if container:
            raise container_error(what, error.status_code, text) from error
        if registry:
            raise pull_error(registry, text, status=error.status_code) from error
        if isinstance(error, docker.errors.ImageNotFound):
            msg = f"cannot {what}: {text}"
            raise ImageGone(msg) from error
        msg = f"cannot {what}: {text}"
        raise EngineFailed(msg) from error
    except requests.exceptions.Timeout as error:
        msg = f"cannot {what}: the engine did not answer in time"
        raise EngineUnreachable(msg) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        msg = f"cannot {what}: {error}"
        raise EngineUnreachable(msg) from error


def chunks_of(response: Any) -> Iterator[bytes]:
    """Yield what comes, as it comes; the engine hangs up when the container is removed."""
    with contextlib.suppress(requests.exceptions.ChunkedEncodingError):
        yield from response.iter_content(chunk_size=None)
