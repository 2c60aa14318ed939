"""Options that plan, launch and probe share, and the request that they make."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rocmrun.cli.options import host_root_option, lockfile_option, profile_dir_option, set_option

if TYPE_CHECKING:
    from rocmrun.usecases.ask import Ask

_OPTIONS = (
    profile_dir_option,
    set_option,
    lockfile_option,
    host_root_option,
    click.option("--gpu", "narrow", multiple=True, metavar="SELECTOR", help="Pass only these of the profile's GPUs: index:0, pci:…, uuid:…, numa:…, arch:… (repeatable)."),
    click.option("-e", "--env", multiple=True, metavar="NAME[=VALUE]", help="Set a variable; NAME alone takes your value, which is never shown."),
    click.option("-v", "--volume", "volumes", multiple=True, metavar="SRC:DST[:ro|rw]", help="Mount a path or a volume; rw unless :ro, as in docker."),
    click.option("-p", "--publish", "ports", multiple=True, metavar="ADDR:HOST:PORT", help="Publish a port on an address that is written out."),
    click.option("--network", type=click.Choice(["none", "bridge", "host"]), help="Network of the container."),
    click.option("--entrypoint", metavar="COMMAND", help="Replace the image's entrypoint; \"\" clears it."),
    click.option("--shm-size", metavar="SIZE", help="Size of /dev/shm."),
    click.option("-m", "--memory", metavar="SIZE", help="Memory limit: 64g, 90%."),
    click.option("-i", "--interactive", is_flag=True, help="Keep stdin open and pass it on."),
    click.option("-t", "--tty", is_flag=True, help="Give the container a terminal."),
    click.option("--debug", is_flag=True, help="Add what the profile's [debug] names."),
)  # fmt: skip


def ask_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command, which gets them as one `ask` argument: a function that makes the Ask.

    It takes further fields of an Ask, and a profile in place of the command line's.
    """

    @functools.wraps(function)
    def command(**arguments: Any) -> Any:
        shared = {name: arguments.pop(name) for name in _NAMES if name in arguments}
        profile, words = arguments.pop("profile"), arguments.pop("command", ())

        def ask(**more: Any) -> "Ask":
            return make_ask(more.pop("profile", profile or ""), tuple(words), shared, **more)

        return function(ask=ask, **arguments)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_NAMES = (
    "profile_dirs", "settings", "lockfile", "host_root", "narrow", "env", "volumes", "ports", "network",
    "entrypoint", "shm_size", "memory", "interactive", "tty", "debug",
)  # fmt: skip


def make_ask(profile: str, command: tuple[str, ...], shared: dict[str, Any], **more: Any) -> "Ask":
    """Return the request that the shared options and *more* fields make."""
    from rocmrun.cli.profiles import search_for
    from rocmrun.core.command_line import Options
    from rocmrun.usecases.ask import Ask

    return Ask(
        profile=profile,
        search=search_for(shared["profile_dirs"]),
        settings=shared["settings"],
        lockfile=shared["lockfile"],
        host_root=shared["host_root"],
        narrow=tuple(shared["narrow"]),
        interactive=shared["interactive"],
        tty=shared["tty"],
        debug=shared["debug"],
        options=Options(
            env=shared["env"],
            volumes=shared["volumes"],
            ports=shared["ports"],
            network=shared["network"],
            entrypoint=shared["entrypoint"],
            shm_size=shared["shm_size"],
            memory=shared["memory"],
            command=command,
        ),
        **more,
    )
