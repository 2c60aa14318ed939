"""`rocmrun fetch`: download a model with the locked image, apart from serving it."""

from collections.abc import Mapping
from pathlib import Path

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import (
    host_root_option,
    lockfile_option,
    profile_dir_option,
    pull_option,
    set_option,
)


@click.command(
    "fetch",
    short_help="Download a model with the locked image, apart from serving.",
    context_settings=command_context(),
)
@click.argument("profile")
@click.argument("repos", nargs=-1, required=True, metavar="REPO...")
@click.option("--revision", metavar="REVISION", help="Branch, tag or commit of the repository.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Only these files. Repeatable.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Not these files. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Show the plan of the download and start nothing.")
@pull_option
@profile_dir_option
@set_option
@lockfile_option
@host_root_option
def command(  # noqa: PLR0913  # one parameter an option
    *,
    profile: str,
    repos: tuple[str, ...],
    revision: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    pull: str,
    profile_dirs: tuple[Path, ...],
    settings: Mapping[str, str],
    lockfile: Path | None,
    host_root: Path,
) -> int:
    """Download REPO into the model directory of PROFILE, in a container of its locked image.

    It gets a network, HF_TOKEN if that is set, and nothing of a GPU; the model directory is writable for
    it alone. The server then runs offline, read-only and without the token. Several REPOs go side by
    side into directories of their names. What downloads is the image's huggingface_hub, or [fetch] command.

    \b
    Examples:
      rocmrun fetch vllm-serve Qwen/Qwen3-0.6B --set model_dir=/srv/models/qwen3
      rocmrun fetch llama-cpp ORG/NAME --include '*Q4_K_M.gguf' --set models_dir=/srv/gguf
    """
    from rocmrun.cli.profiles import search_for
    from rocmrun.usecases.ask import Ask
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.fetch import FetchRequest, fetch, fetch_plan

    ask = Ask(
        profile=profile,
        search=search_for(profile_dirs),
        settings=settings,
        lockfile=lockfile,
        host_root=host_root,
        pull=pull == "missing",
    )
    request = FetchRequest(
        ask=ask, repos=repos, revision=revision, include=include, exclude=exclude
    )
    if dry_run:
        from rocmrun.console.output import out
        from rocmrun.console.plan import print_plan
        from rocmrun.usecases.planning import view

        print_plan(out(), view(fetch_plan(request, connect())))
        return 0
    from rocmrun.console.voice import voice

    fetch(request, connect=connect, voice=voice())
    return 0
