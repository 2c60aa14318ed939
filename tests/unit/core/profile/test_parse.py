"""Bad profiles: every mistake at once, each with the nearest right spelling."""

import tomllib
from typing import Any

import pytest

from rocmrun.core.profile.parse import Mistake, find_mistakes, parse_profile
from rocmrun.errors import ProfileInvalid

_MOUNT = '[[mounts]]\nsource = "/a"\ntarget = "{}"\n'
_PRIVILEGE = '[[privileges]]\ngrant = "{}"\nreason = "for a test"\n'


def mistakes(text: str) -> list[str]:
    return [f"{found.key}: {found.text}" for found in find_mistakes(tomllib.loads(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('descripton = "x"', 'descripton: unknown key; did you mean "description"?'),
        ('[container]\nshm-size = "1g"', 'container.shm-size: unknown key; did you mean "shm_size"?'),
        ('shm_size = "1g"', "shm_size: unknown key here; it belongs in [container]"),
        ("[cache]\nx = 1", "cache.x: unknown key; the keys here are mode"),
        (
            '[[mounts]]\nsource = "/a"\ntarget = "/b"\nread_only = true',
            "mounts[0].read_only: unknown key; the keys here are type, source, target, mode, selinux",
        ),
        ('[[mounts]]\ntarget = "/b"', "mounts[0].source: is required"),
        ('accelerator = "rocmm"', 'accelerator: "rocmm" is not one of rocm, cuda, cpu; did you mean "rocm"?'),
        ("accelerator = 1", "accelerator: expected one of rocm, cuda, cpu, got an integer"),
        ("[container]\npids = \"many\"", "container.pids: expected an integer, got a string"),
        ("[container]\npids = 0", "container.pids: must be at least 1, and is 0"),
        ("[container]\npids = true", "container.pids: expected an integer, got a boolean"),
        ("[container]\ncpus = inf", "container.cpus: Input should be a finite number"),
        ("[container]\ncpus = 0", "container.cpus: must be more than 0, and is 0"),
        ("[gpus]\nexclusive = \"yes\"", "gpus.exclusive: expected true or false, got a string"),
        ('[gpus]\nselect = "all"', "gpus.select: expected a list, got a string"),
        ('[gpus]\nselect = ["0"]', 'gpus.select[0]: "0" does not select a GPU; did you mean "index:0"?'),
        ('[container]\ncommand = "python x"', "container.command: expected a list, got a string"),
        ("[container.env]\nA = 8", 'container.env.A: expected a string, got an integer; write "8"'),
        ('[container.env]\n"A B" = "x"', 'container.env."A B": "A B" is not a variable name'),
        ('[container.env]\nA = "\\u0000"', 'container.env.A: "\0" is not text without NUL characters'),
        ('[container.env]\n"A\\u001b" = "x"', 'container.env."A\\u001b": "A\\u001b" has a control character'),
        (
            '[[mounts]]\nsource = "/srv/\\u001b[31mdata"\ntarget = "/m"',
            'mounts[0].source: "/srv/\\u001b[31mdata" has a control character',
        ),
        ('[container.tmpfs]\n"/a\\n" = "1g"', 'container.tmpfs."/a\\n": "/a\\n" has a control character'),
        ('[mounts]\nsource = "/a"', "mounts: expected a list of tables; write [[mounts]]"),
        ('image = "x"', "image: expected a table, got a string"),
        ("[image.verify]\nkex = 1", 'image.verify.kex: unknown key; did you mean "key"?'),
        (
            '[container]\nworkdir = "models"',
            'container.workdir: "models" is not an absolute path below "/" without "." and ".."',
        ),
        (
            '[container]\ntmpfs = { "/a/../b" = "1g" }',
            'container.tmpfs."/a/../b": "/a/../b" is not an absolute path below "/" without "." and ".."',
        ),
        (
            '[container]\nuser = "root"',
            'container.user: "root" is not "caller", "image" or numbers such as "1000:1000"',
        ),
        (
            '[container]\nuser = "99999999999999999999:1000"',
            "container.user: 99999999999999999999 is no user or group number: the highest is 2147483647",
        ),
        (
            '[container]\nuser = "1000:2147483648"',
            "container.user: 2147483648 is no user or group number: the highest is 2147483647",
        ),
        (
            "[container]\ngroups = [2147483648]",
            "container.groups[0]: 2147483648 is no group number: the highest is 2147483647",
        ),
        ('[container]\nrestart = "always"', 'container.restart: "always" is not "no" or "on-failure:N"'),
        (
            '[container]\ngroups = ["render"]',
            'container.groups[0]: "render" is not a group number or "path:/TARGET" of a mount; names mean nothing in an image',
        ),
        (
            '[container]\nnetwork = "bridge"\nports = ["80:80"]',
            'container.ports[0]: "80:80" is not ADDRESS:HOST:CONTAINER[/tcp|/udp]; did you mean "127.0.0.1:80:80"?',
        ),
        (
            '[image]\nref = "docker.io/Foo/bar:1"',
            "image.ref: 'docker.io/Foo/bar:1' is not an image reference: the repository must be in lower case; did you mean docker.io/foo/bar:1?",
        ),
        (
            '[[devices]]\npath = "/etc/shadow"\nreason = "no"',
            'devices[0].path: "/etc/shadow" is not a path below /dev without "." and ".."',
        ),
        (
            '[[privileges]]\ngrant = "cap:SYS_PTRACE"\nreason = " "',
            'privileges[0].reason: " " is not an explanation; say it in words',
        ),
        (
            '[debug]\nprivileges = ["cap:SYS_PTRAC"]',
            'debug.privileges[0]: "SYS_PTRAC" is not a Linux capability; did you mean "SYS_PTRACE"?',
        ),
        ('[parameters]\nModel = { help = "x" }', 'parameters.Model: "Model" is not a name in a-z, 0-9 and _'),
        ("[parameters.x]\ndefault = 1", "parameters.x.help: is required"),
        (
            "[parameters.x]\nhelp = 'x'\ndefault = [1]",
            "parameters.x.default: expected a string, a number or a boolean, got a list",
        ),
        (
            "[container]\nmemory = 1979-05-27",
            "container.memory: expected a size or a percentage, got a date or time",
        ),
        (
            '[container]\nworkdir = "/${x}"',
            'container.workdir: "${x}" names no parameter; a literal ${ is written $${',
        ),
        (
            '[parameters.model]\nhelp = "x"\n[container]\nworkdir = "/${modelx}"',
            'container.workdir: "${modelx}" names no parameter; did you mean "model"?; a literal ${ is written $${',
        ),
        (
            '[container]\nworkdir = "/${x"',
            'container.workdir: "${" is not closed; a literal ${ is written $${',
        ),
    ],
)  # fmt: skip
def test_one_mistake(text: str, expected: str) -> None:
    assert [expected] == mistakes(text)


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ('[container]\nshm_size = "1g"\n' + _PRIVILEGE.format("ipc:host"), "container.shm_size", "ipc:host"),
        *(
            (
                f'accelerator = "{accelerator}"\n[probe]\nruntime = "hip"',
                "probe.runtime",
                f'"hip" proves AMD GPUs, and accelerator is "{accelerator}"',
            )
            for accelerator in ("cpu", "cuda")
        ),
        ("[image.verify]\n", "image.verify", "a key, or an identity and its issuer"),
        ('[image.verify]\nidentity = "a"', "image.verify", "a key, or an identity and its issuer"),
        ('[image.verify]\nkey = ""', "image.verify", "a key, or an identity and its issuer"),
        ('[image.verify]\nkey = "k"\nissuer = "i"', "image.verify.issuer", "does not go with a key"),
        (
            '[image.verify]\nidentity = "a"\nissuer = "i"\ntransparency_log = false',
            "image.verify.transparency_log",
            "false goes with a key",
        ),
        (
            _PRIVILEGE.format("ipc:host") + _PRIVILEGE.format("ipc:shareable"),
            "privileges[1].grant",
            "exclude each other",
        ),
        ('[container]\nports = ["127.0.0.1:80:80"]', "container.ports", '"none" nothing is published'),
        ('[container]\nnetwork = "host"', "container.network", 'grant = "network:host"'),
        (_MOUNT.format("/a") + _MOUNT.format("/a/"), "mounts[1].target", "already the target of mounts[0]"),
        (_MOUNT.format("/a") + _MOUNT.format("/a/b"), "mounts[1].target", 'under "/a"'),
        (_MOUNT.format("/a/b") + _MOUNT.format("/a"), "mounts[0].target", 'under "/a"'),
        (
            '[container]\ntmpfs = { "/a" = "1g" }\n' + _MOUNT.format("/a/b"),
            "mounts[0].target",
            'container.tmpfs."/a"',
        ),
        (
            '[container]\nnetwork = "bridge"\nports = ["127.0.0.1:80:80", "127.0.0.1:80:81"]',
            "container.ports[1]",
            "same host port",
        ),
        ('[container]\ngroups = ["path:/models"]', "container.groups[0]", 'no mount has the target "/models"'),
        ('[container]\nenv_from = ["A"]\n[container.env]\nA = "x"', "container.env_from[0]", "container.env"),
        ('[gpus]\nselect = ["all", "index:0"]', "gpus.select", "stands alone"),
        ("[gpus]\nselect = []", "gpus.select", '["none"]'),
        (
            _PRIVILEGE.format("pid:host") + _PRIVILEGE.format("pid:host"),
            "privileges[1].grant",
            "asked for twice",
        ),
        (
            '[debug]\nprivileges = ["pid:host", "pid:host"]',
            "debug.privileges[1]",
            "asked for twice",
        ),
        (
            '[[mounts]]\ntype = "volume"\nsource = "/srv/x"\ntarget = "/x"',
            "mounts[0].source",
            'write type = "bind"',
        ),
        ("[container]\nhealth = { interval = 5 }", "container.health", "a command, or image = true"),
        (
            '[container]\nhealth = { command = ["true"], image = true }',
            "container.health.image",
            "exclude each other",
        ),
        (
            '[cache]\nmode = "tmpfs"\n[container]\nnetwork = "bridge"',
            "cache.mode",
            "kept in memory (HF_HOME is /home/rocmrun/.cache/huggingface)",
        ),
        (
            '[container]\nnetwork = "bridge"\nenv = { HF_HOME = "/tmp/models" }',
            "container.tmpfs",
            "kept in memory (HF_HOME is /tmp/models)",
        ),
        (
            '[container]\nnetwork = "bridge"\ntmpfs = { "/home/rocmrun" = "9GiB" }',
            "container.tmpfs",
            "kept in memory",
        ),
    ],
)  # fmt: skip
def test_one_contradiction(text: str, key: str, says: str) -> None:
    (found,) = find_mistakes(tomllib.loads(text))

    assert key == found.key
    assert says in found.text


@pytest.mark.parametrize(
    "text",
    [
        '[container]\nnetwork = "host"\n' + _PRIVILEGE.format("network:host"),
        _MOUNT.format("/a") + _MOUNT.format("/ab"),
        '[container]\nnetwork = "bridge"\nports = ["127.0.0.1:80:80", "127.0.0.1:80:80/udp"]',
        '[container]\ngroups = ["path:/a", 44, "992"]\n' + _MOUNT.format("/a"),
        '[container]\nshm_size = "1g"\n' + _PRIVILEGE.format("ipc:shareable"),
        '[container.env]\nEMPTY = ""\n"dotted.name" = "x"',
        '[probe]\nimage = ""',
        '[cache]\nmode = "tmpfs"',
        '[container]\nnetwork = "bridge"',
        '[cache]\nmode = "tmpfs"\n[container]\nnetwork = "bridge"\nenv = { HF_HUB_OFFLINE = "1" }',
        '[cache]\nmode = "tmpfs"\n[container]\nnetwork = "bridge"\nenv = { HF_HOME = "/a/hf" }\n'
        + _MOUNT.format("/a"),
        '[cache]\nmode = "tmpfs"\n[container]\nnetwork = "bridge"\n'
        + _MOUNT.format("/home/rocmrun/.cache/huggingface"),
        '[container]\nnetwork = "bridge"\nenv = { HF_HOME = "/tmp/a/hf" }\n'
        + _MOUNT.format("/tmp/a"),
    ],
)
def test_what_only_looks_like_a_mistake(text: str) -> None:
    assert mistakes(text) == []


def test_all_mistakes_come_at_once() -> None:
    """Unknown keys, wrong types, and contradictions between the keys that are right."""
    found = mistakes("""
        acceleratorr = "rocm"
        [container]
        pids = "many"
        shm_size = "1GiB"
        [[mounts]]
        source = "/a"
        target = "/models"
        readonly = true
        [[mounts]]
        source = "/b"
        target = "/models/b"
        [[privileges]]
        grant = "ipc:host"
        reason = "for a test"
    """)

    assert [line.partition(": ")[0] for line in found] == [
        "container.pids",
        "mounts[0].readonly",
        "acceleratorr",
        "container.shm_size",
        "mounts[1].target",
    ]


def test_contradictions_show_beside_a_broken_list() -> None:
    """An item that lacks a key takes its list out of the comparison, not the other keys."""
    found = mistakes('[container]\nnetwork = "host"\n[[mounts]]\nsource = "/a"')

    assert [line.partition(": ")[0] for line in found] == ["mounts[0].target", "container.network"]


def test_a_wrong_key_is_no_contradiction_too() -> None:
    """The default that stands in for a wrong value contradicts nothing."""
    found = mistakes('[container]\nnetwork = "bridgee"\nports = ["127.0.0.1:80:80"]')

    assert found == [
        'container.network: "bridgee" is not one of none, bridge, host; did you mean "bridge"?'
    ]


def test_what_waits_for_a_parameter_is_not_judged() -> None:
    assert (
        mistakes(
            """
        [parameters]
        x = { help = "anything" }
        [image]
        ref = "${x}"
        [container]
        pids = "${x}"
        command = ["$${x}", "${x}"]
        network = "${x}"
        ports = ["127.0.0.1:${x}:80"]
        """
        )
        == []
    )


def test_an_error_names_the_file_of_each_mistake() -> None:
    data: dict[str, Any] = {"container": {"pids": 0}, "cache": {"mode": "x"}}

    with pytest.raises(ProfileInvalid) as caught:
        parse_profile(data, name="p", file_of=lambda key: f"/{key.partition('.')[0]}.toml")

    assert caught.value.message == "profile p has 2 mistakes"
    assert caught.value.details == (
        "/container.toml: container.pids: must be at least 1, and is 0",
        '/cache.toml: cache.mode: "x" is not one of persistent, tmpfs',
    )


def test_mistakes_are_values() -> None:
    assert (Mistake(key="cache.x", text="unknown key; the keys here are mode"),) == find_mistakes(
        {"cache": {"x": 1}}
    )
