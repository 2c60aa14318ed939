"""The smallest launch that the Docker SDK allows: create, inspect, attach, start, wait, remove.

It imports what a tool of this kind needs (click, rich, pydantic, docker) and takes a finished
create request, so that it does no thinking of its own: python smallest_sdk.py REQUEST.json
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click  # noqa: F401
import docker
import pydantic  # noqa: F401
import rich.console  # noqa: F401


def main() -> int:
    """Run the request and return the container's exit code."""
    request = json.loads(Path(sys.argv[1]).read_text())
    api: Any = docker.DockerClient.from_env(version="auto").api
    container = api.create_container_from_config(request)["Id"]
    try:
        api.inspect_container(container)
        output = api.attach(container, stream=True, demux=True)
        api.start(container)
        for out, err in output:
            os.write(1, out or b"")
            os.write(2, err or b"")
        return int(api.wait(container)["StatusCode"])
    finally:
        api.remove_container(container, v=True, force=True)


if __name__ == "__main__":
    sys.exit(main())
