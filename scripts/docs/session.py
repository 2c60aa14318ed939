"""The plan that README.md shows: the real planner and printer on a host tree that tests build.

Nothing in it depends on the machine, the user or the day, so that `cog --check` says the same everywhere.
"""

import io
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rocmrun.console.plan import print_plan
from rocmrun.core.access import forecast_access
from rocmrun.core.caller import Caller
from rocmrun.core.command_line import Options
from rocmrun.core.exposure.score import score_plan
from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.core.image_report import image_report
from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan_view import PlanView
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.system.profile_search import ProfileDirectory, ProfileSearch, shipped_directory
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.images import planned_image
from rocmrun.usecases.locks import LockPlaces, find_pin
from rocmrun.usecases.prepare import load
from scripts.docs.markdown import fenced
from tests.hosts import FakeGpu, build_host

BUSES = (0x05, 0x27, 0x47, 0x65, 0x85, 0xA7, 0xC7, 0xE5)
MODELS = "/srv/models:/models:ro"
COMMAND = f"$ rocmrun plan prod-inference --offline --gpu index:0 -v {MODELS}"
WIDTH = 144
HEADER = ("image", "digest", "user", "network", "limits", "exposure")
LEFT_OUT = 2  # items of that list; the rest is cut


def plan_session() -> str:
    """Return what `rocmrun plan prod-inference` prints for one of eight MI300X, cut short."""
    text = io.StringIO()
    console = Console(file=text, width=WIDTH, no_color=True, highlight=False, markup=False)
    print_plan(console, _view())
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    left_out = lines.index("Left out of AMD's usual docker line:")
    header = [line for line in lines if line.startswith(HEADER)]
    rights = next(n for n, line in enumerate(lines) if line.startswith("Grants"))
    # Lines that were wrapped begin at the margin, items do not.
    items = [n for n, line in enumerate(lines) if n > left_out and line.startswith("  ")]
    return fenced("console", [COMMAND, *header, "", *lines[rights : items[LEFT_OUT]], "  …"])


def mi300x_host() -> HostFacts:
    """Return a host with eight MI300X and 2 TiB of memory, whose nodes belong to a render group."""
    gpus = [
        FakeGpu(
            address=f"0000:{bus:02x}:00.0",
            minor=128 + 8 * position,
            unique_id=0xF3300000 + bus,
            hive_id=1,
            num_xcc=8,
        )
        for position, bus in enumerate(BUSES)
    ]
    with tempfile.TemporaryDirectory() as directory:
        host = read_host(build_host(Path(directory), gpus))
    return replace(
        host,
        root="/",
        memory_bytes=2 << 40,
        nofile_limit=None,
        nproc_limit=None,
        kfd=host.kfd and _owned(host.kfd),
        render_nodes=tuple(map(_owned, host.render_nodes)),
        gpus=tuple(
            replace(gpu, render_node=gpu.render_node and _owned(gpu.render_node))
            for gpu in host.gpus
        ),
    )


def _owned(node: DeviceNode) -> DeviceNode:
    """Return *node* as udev makes it; only root could have built it so."""
    return replace(node, host_path=node.path, uid=0, gid=992, mode=0o660)


def _view() -> PlanView:
    search = ProfileSearch(
        directories=(ProfileDirectory(path=shipped_directory(), origin="shipped"),),
        working_directory=Path("/"),
        home=None,
    )
    options = Options(volumes=(MODELS,))
    loaded = load(Ask(profile="prod-inference", search=search, options=options))
    places = LockPlaces.of(lockfile=None, environment={}, directory=Path("/nonexistent"))
    pin, _ = find_pin(loaded, places=places)
    models = PathFacts(path="/srv/models", kind="directory", real_path="/srv/models")
    host = mi300x_host()
    plan = make_plan(
        PlanRequest(
            name=loaded.name,
            profile=loaded.profile,
            provenance=loaded.provenance,
            image=planned_image(pin, None),
            host=host,
            caller=Caller(uid=1000, gid=1000, cache_root="/home/you/.cache/rocmrun"),
            paths={models.path: models},
            narrow=("index:0",),
        )
    )
    return PlanView(
        plan=plan,
        host=host,
        engine=None,
        exposure=score_plan(plan, host, None),
        access=forecast_access(plan, host, None, {}, caller_uid=1000),
        image=image_report(None, None),
    )
