"""Words that are the caller's own: names of people, groups and machines, and secrets of the environment."""

import contextlib
import grp
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from rocmrun.core.known_strings import Personal
from rocmrun.core.secret_names import names_secret


def read_personal(uid: int, environment: Mapping[str, str] = os.environ) -> Personal:
    """Return who the caller is in words, where they are, and the secrets that their environment holds.

    *uid* is whom they are under sudo, beside who this process runs as.
    """
    node = os.uname().nodename
    users = [environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME")]
    for each in dict.fromkeys((os.getuid(), uid)):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwuid(each)
            users += [
                entry.pw_name,
                *entry.pw_gecos.split(","),
                *entry.pw_gecos.replace(",", " ").split(),
                Path(entry.pw_dir).name,
            ]
    for gid in os.getgroups():
        with contextlib.suppress(KeyError):
            users.append(grp.getgrgid(gid).gr_name)
    users.append(Path(environment.get("HOME", "")).name)
    return Personal(
        users=tuple(users),
        hosts=(node, node.partition(".")[2], *node.split("."), environment.get("HOSTNAME", "")),
        secrets=tuple(value for name, value in environment.items() if names_secret(name)),
    )
