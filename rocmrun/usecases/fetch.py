"""Fetch: the locked image once, with a network and the token, and no GPU; the server then needs neither."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rocmrun.core.fetching import Download, directory_below, fetch_profile
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.run_record import RunRecord
from rocmrun.core.voice import Voice
from rocmrun.errors import FetchFailed, UsageError
from rocmrun.system import signals
from rocmrun.usecases.announce import announce
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.launch import make_cache, run_workload
from rocmrun.usecases.launch_request import LaunchRequest
from rocmrun.usecases.prepare import Prepared, load, nothing_is_pulled, prepare
from rocmrun.usecases.run import Run
from rocmrun.usecases.run_report import now
from rocmrun.usecases.secrets import check_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """What the command line asks of a fetch."""

    ask: Ask
    repos: tuple[str, ...]
    revision: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def fetch(
    request: FetchRequest,
    *,
    connect: Callable[[], Engine],
    voice: Voice,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Download every repository of *request* into the profile's model directory.

    Raises:
        FetchFailed: a downloader ended with an error; those before it are complete.
        RocmrunError: whatever went wrong before one ran.
    """
    with signals.as_exceptions():
        downloads = fetch_profiles(request, environment)
        engine = connect()
        for repo, loaded in zip(request.repos, downloads, strict=True):
            _download(request, repo, loaded, engine, voice)


def fetch_plan(
    request: FetchRequest, engine: Engine, *, environment: Mapping[str, str] = os.environ
) -> Prepared:
    """Return the plan of the first download, made and not run."""
    loaded = fetch_profiles(request, environment)[0]
    return prepare(request.ask, engine, fetch=False, on_pull=nothing_is_pulled, loaded=loaded)


def fetch_profiles(
    request: FetchRequest, environment: Mapping[str, str]
) -> tuple[LoadedProfile, ...]:
    """Return the profile of each download: one goes straight into the target, several go side by side below it.

    Raises:
        UsageError: two of them would go into one directory, or nothing says where they go.
    """
    loaded = load(request.ask)
    several = len(request.repos) > 1
    places = [directory_below(repo) if several else "" for repo in request.repos]
    if len(set(places)) < len(places):
        msg = f"{', '.join(request.repos)}: two of them would be one directory"
        raise UsageError(msg, hint="fetch them one by one, each into a profile's own directory")
    return tuple(
        replace(
            loaded,
            profile=fetch_profile(
                loaded.profile,
                loaded.name,
                Download(
                    repo=repo,
                    revision=request.revision,
                    include=request.include,
                    exclude=request.exclude,
                ),
                is_set=environment,
                below=place,
            ),
        )
        for repo, place in zip(request.repos, places, strict=True)
    )


def _download(
    request: FetchRequest, repo: str, loaded: LoadedProfile, engine: Engine, voice: Voice
) -> None:
    prepared = prepare(
        request.ask, engine, fetch=True, on_pull=voice.on_pull, loaded=loaded, prove=False
    )
    check_owner(prepared.plan, prepared.engine)
    # Whoever looks for the profile's server must not find a download.
    labels = {**dict(prepared.plan.labels), "io.rocmrun.profile": f"{loaded.name} (fetch)"}
    prepared = replace(
        prepared, plan=prepared.plan.with_changes(labels=tuple(sorted(labels.items())))
    )
    announce(prepared, voice)
    record = RunRecord.begin(prepared.plan, prepared.host, prepared.engine, started_at=now())
    launch = LaunchRequest(ask=request.ask, probe=False)
    run = Run(engine=engine, request=launch, prepared=prepared, voice=voice, record=record)
    make_cache(run)
    (mount,) = (mount for mount in prepared.plan.mounts if not mount.cache)
    voice.say(f"fetching {repo} into {mount.source}, which is writable for this alone")
    code = run_workload(run, None, lambda: None)
    if code != 0:
        msg = f"fetching {repo} ended with code {code}"
        raise FetchFailed(msg, hint="what it said is above; run the same line again to go on")
    voice.say(f"fetched {repo}")
