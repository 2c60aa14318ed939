"""cosign, the program that verifies signatures of images. Judges nothing that it says."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from rocmrun.errors import SignatureUnverified

PROGRAM = "cosign"


def run_cosign(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_seconds: float,
    *,
    program: str = PROGRAM,
) -> subprocess.CompletedProcess[str]:
    """Run cosign with *environment* on top of the caller's, and return how it ended; the image is named last.

    Raises:
        SignatureUnverified: it is not installed, cannot be started, or does not end in time.
    """
    signed = f"{arguments[-1] if arguments else 'the image'} must be signed, and cosign"
    try:
        return subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_seconds,
            env={**os.environ, **environment},
        )
    except FileNotFoundError as error:
        msg = f"{signed} is not installed"
        raise SignatureUnverified(
            msg, hint="install cosign (https://github.com/sigstore/cosign)"
        ) from error
    except subprocess.TimeoutExpired as error:
        msg = f"{signed} did not end within {timeout_seconds:g} s"
        raise SignatureUnverified(msg, hint="safe to try again") from error
    except OSError as error:
        msg = f"{signed} cannot be started: {error.strerror}"
        raise SignatureUnverified(msg) from error
