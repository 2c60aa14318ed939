"""Who may open the nodes: groups by number, user namespaces, modes, labels, capabilities."""

import re

from rocmrun.core.diagnosis.evidence import Evidence, Node
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    GPU_NODES,
    KFD,
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    log,
    node,
    opened,
    remedy,
    text,
    told,
    unquoted,
    variable,
)
from rocmrun.core.diagnosis.words import DENIED, HYPERVISED, NO_GPU, ROOTLESS

NOBODY = frozenset({"nobody", "nogroup", "65534", "4294967294", "overflowuid"})
_GROUP_READ_WRITE, _OTHERS_READ_WRITE = 0o060, 0o006

_DENIED = any_of(opened("EACCES"), text(rf"/dev/(?:kfd|dri)[^\n]{{0,60}}{DENIED}"))
_OLD_ROCMINFO = all_of(
    text(r"returned 4104|out_of_resources"), absent(opened("ENOMEM|EINVAL|EPERM|ENOENT"))
)
_UNSEEN = text(NO_GPU)
_PRIVILEGED_WORKS = any_of(
    text(r"sudo (?:/opt/rocm\S*/)?(?:bin/)?rocminfo|works (?:as root|with sudo)"),
    anywhere(
        r"^(?:as_root|works_with_sudo|works_as_root|root)\W{1,3}(?:true|yes|works|ok)|works[\w ]{0,12}(?:as root|with sudo|as uid 0)"
    ),
)
_NOBODY = any_of(
    text(r"nobody\W{1,3}nogroup|\bnogroup\b|nobody[ :]+nobody|\b65534\b|root (?:nobody|65534)"),
    node(GPU_NODES, lambda _mode, owner, group: bool({owner, group} & NOBODY)),
)
_ROOTLESS = any_of(
    anywhere(rf"{ROOTLESS}|/var/lib/containers|/run/user/\d+/podman"),
    fact(lambda seen: seen.engine and (seen.engine.rootless or seen.engine.userns_remap)),
)
_SELINUX = text(
    r"avc:\s{1,3}denied|selinux[\w.]*\W{1,3}(?:is )?enforcing|container_use_devices|getenforce\W{1,3}enforcing"
)
_NODE_AVC = text(
    r"avc:\s{1,3}denied[^\n]{0,400}(?:tclass=chr_file|dri_device_t|xserver_misc_device_t|hsa_device_t|device_t|name=\W?(?:kfd|renderd))"
)
_LABELLED_FILES = text(r"avc:\s{1,3}denied[^\n]{0,400}tclass=(?:dir|file|lnk_file|sock_file)")


def _mapped(seen: Evidence) -> bool:
    """Whether ids inside are not those outside."""
    return any(inside != outside for inside, outside, _ in seen.uid_map)


def _gated(seen: Evidence) -> tuple[Node, ...]:
    """Return the nodes that only their group may open, and whose group is told."""
    return tuple(
        n
        for n in seen.nodes
        if n.mode is not None
        and n.mode & _GROUP_READ_WRITE == _GROUP_READ_WRITE
        and n.mode & _OTHERS_READ_WRITE != _OTHERS_READ_WRITE
        and n.group not in NOBODY
    )


def _group_lacking(seen: Evidence) -> bool:
    return bool(seen.groups) and any(n.group not in seen.groups for n in _gated(seen))


def _all_groups_held(seen: Evidence) -> bool:
    gated = _gated(seen)
    return bool(seen.groups and gated) and all(n.group in seen.groups for n in gated)


def _gids_of_nodes(seen: Evidence) -> tuple[set[str], set[str]]:
    """Return the groups of kfd and those of render nodes: from listings, LXC entries and facts of the host."""
    kfd, render = set(), set()
    for n in seen.nodes:
        if n.mode is not None and n.mode & _OTHERS_READ_WRITE == _OTHERS_READ_WRITE:
            continue
        if n.path == "/dev/kfd":
            kfd.add(n.group)
        elif "renderd" in n.path:
            render.add(n.group)
    for body in (seen.log, seen.told):
        for match, _ in body.matches(
            r"(/dev/kfd|/dev/dri/renderd\d+)[^\n]{0,40}?\bgid\W{1,3}(\d+)"
        ):
            (kfd if match[1] == "/dev/kfd" else render).add(match[2])
    return kfd, render


def _gids_differ(seen: Evidence) -> bool:
    kfd, render = _gids_of_nodes(seen)
    return bool(kfd and render) and kfd.isdisjoint(render)


def _one_of_two_held(seen: Evidence) -> bool:
    """Whether the process holds the group of kfd or of the render nodes, and not both."""
    kfd, render = _gids_of_nodes(seen)
    held = seen.groups & (kfd | render)
    return kfd.isdisjoint(render) and bool(held) and held != kfd | render


def _newer_in_the_database(seen: Evidence) -> bool:
    """Whether `id -G NAME` tells more groups than `id -G`: what the user gets at the next login."""
    told: dict[bool, set[str]] = {}
    for match, line in seen.log.matches(
        r"^[^\n]{0,60}\bid -g(?: +([a-z_$\"][\w$\"-]*))?\b[ \t]*:?(?=\s|$)"
    ):
        here = seen.log.lines.index(line)
        own = re.findall(r"\d+", line.lower.partition("id -g")[2])
        following = seen.log.lines[here + 1].lower if here + 1 < len(seen.log.lines) else ""
        numbers = own or (following.split() if re.fullmatch(r"[\d ]+", following) else [])
        told[bool(match[1])] = set(numbers)
    return len(told) == 2 and bool(told[True] - told[False]) and bool(told[False])


def _user_named(seen: Evidence) -> bool:
    """Whether the process is told to be somebody else than root."""
    for name, line in seen.flags:
        if re.match(r"(?:-u|--user)=(?!0\b|root)", name) and line is not None:
            return True
    return bool(
        seen.find(
            r"container_user: [^\n]{0,40}non-?root|container_user: (?!root\b|0\b)\w|run_?as_?(?:user|non_?root)\W{1,4}(?:true|[1-9])|adduser|useradd|\buser (?!root|0\b)[a-z$][\w$-]*\s*$|--user[ =](?!0\b|root)|[a-z_][\w-]*@[\w-]+:~?[^\n]{0,40}\$ (?:rocminfo|python|/opt)|non-?root|uid=[1-9]\d*|image[\w.]*: [^\n]{0,60}\buser [a-z]"
        )
    )


RULES = (
    Rule(
        kind="render-gid-mismatch",
        symptom="denied",
        needs=any_of(_DENIED, _UNSEEN, _OLD_ROCMINFO, fact(_group_lacking)),
        unless=any_of(_NODE_AVC, fact(_mapped)),
        signs=(
            Sign(4, "a node may not be opened: EACCES", _DENIED),
            Sign(4, "the node's group is not among the process's groups", fact(_group_lacking)),
            Sign(2, "no GPU is seen", _UNSEEN),
            Sign(2, "the process is not root inside", fact(_user_named)),
            Sign(3, "the nodes belong to a group of this host", any_of(told(r"(?:node|owner|nodes|kfd|ls)[\w./* ]*: [^\n]{0,60}root[:/ ]{1,2}(?:render|video|\d+)|renderd\S* root:render"), fact(lambda seen: bool(_gated(seen))))),
            Sign(2, "a group was given by name: names count in the image, numbers on the host", flag(r"--group-add=(?:video|render)$")),
            Sign(2, "groups were given by number, and no GPU is seen", flag(r"--group-add=\d+$")),
            Sign(3, "with every right it works", _PRIVILEGED_WORKS),
            Sign(1, "an old rocminfo calls a plain permission problem OUT_OF_RESOURCES", _OLD_ROCMINFO),
            Sign(1, "SMI works, which opens no node", any_of(told(r"rocm_smi|smi_works"), log(r"^\d\s+[\d.]+c\s"))),
            Sign(2, "somebody opened the nodes to all, or gave the group", unquoted(any_of(anywhere(r"chmod[\w ]*(?:666|777|a\+rw)"), remedy(r"group[-_ ]?add|supplementalgroups|render gid|gid of")))),
            Sign(1, "rocminfo misses a group", text(r"not (?:a )?member of|check for video group membership")),
            Sign(-6, "ids are mapped: the engine is rootless or remaps users", any_of(_ROOTLESS, _NOBODY)),
            Sign(-4, "the engine is Podman, which is rootless as a rule", text(r"\bpodman\b|distrobox|toolbx|buildah")),
            Sign(-5, "the engine runs in a virtual machine", text(HYPERVISED)),
            Sign(-5, "everybody or nobody but the owner may open it", node(KFD, lambda mode, _owner, _group: mode is not None and mode & _GROUP_READ_WRITE != _GROUP_READ_WRITE)),
            Sign(-4, "the process holds the groups", fact(_all_groups_held)),
            Sign(-4, "a mask of devices is set", all_of(absent(_DENIED), any_of(variable(r"(?:ROCR|HIP|CUDA)_VISIBLE_DEVICES"), text(r"_visible_devices")))),
            Sign(-5, "torch is no ROCm build", text(r"\+cu\d+|\+cpu\b|version\.hip\W{1,8}none|nvidia driver")),
            Sign(-2, "SELinux is enforcing", _SELINUX),
            Sign(-2, "kfd and the render nodes belong to different groups", all_of(fact(_gids_differ), absent(fact(_group_lacking)))),
            Sign(-5, "the process holds the group of kfd or of the render nodes, and not both", fact(_one_of_two_held)),
            Sign(-2, "the group was given after the session began", all_of(_DENIED, anywhere(r"newgrp|usermod|just added"))),
            Sign(-6, "the database has the group for the user already", fact(_newer_in_the_database)),
            Sign(-4, "another errno than EACCES", opened("EPERM|EINVAL|ENOMEM|ENOENT")),
            Sign(-2, "rocminfo says that the user is a member", all_of(_DENIED, text(r"is (?:a )?member of"), absent(text(r"not (?:a )?member of")))),
            Sign(-5, "WSL has no such nodes", anywhere(r"/dev/dxg|\bwsl")),
        ),
        settles=any_of(fact(_group_lacking), all_of(_DENIED, any_of(fact(_user_named), _PRIVILEGED_WORKS, flag(r"--group-add"), text(r"not (?:a )?member of")))),
        undecided="the numbers: compare `stat -c '%g %n' /dev/kfd /dev/dri/renderD*` on the host with `Groups:` in /proc/PID/status of the process",
    ),
    Rule(
        kind="rootless-groups",
        symptom="denied",
        needs=any_of(_DENIED, _UNSEEN, _NOBODY, text(r"crun|runc")),
        signs=(
            Sign(4, "ids are mapped: the engine is rootless or remaps users", _ROOTLESS),
            Sign(3, "the node's owner or group is not mapped: it shows as nobody", _NOBODY),
            Sign(3, "the process's ids are mapped", fact(_mapped)),
            Sign(2, "the engine is Podman or builds on it", text(r"\bpodman\b|distrobox|toolbx|toolbox|buildah|rocm-podman-support")),
            Sign(2, "a node may not be opened: EACCES", _DENIED),
            Sign(3, "even root inside may not open the node", all_of(_DENIED, text(r"root is (?:not )?(?:a )?member of|root@|container_root: true|uid=0"))),
            Sign(-5, "the groups are held and the node may be opened by all", opened("EINVAL|ENOMEM|EPERM")),
            Sign(-2, "SELinux refused", _NODE_AVC),
            Sign(-3, "the engine runs in a virtual machine", text(HYPERVISED)),
        ),
        settles=any_of(_ROOTLESS, _NOBODY, fact(_mapped)),
        undecided="whether ids are mapped: `cat /proc/self/uid_map` inside (\"0 0 4294967295\" is no mapping)",
    ),
    Rule(
        kind="host-udev-perms",
        symptom="denied",
        needs=any_of(
            node(GPU_NODES, lambda mode, _owner, _group: mode is not None and mode & 0o066 == 0),
            text(r"(?:crw-------|\b0?600\b)[^\n]{0,80}(?:kfd|renderd)|(?:kfd|renderd\d*)[^\n]{0,40}(?:\b0?600\b|crw-------)"),
            fact(lambda seen: seen.host and seen.host.kfd and not seen.host.kfd.group_writable and not seen.host.kfd.world_writable),
        ),
        signs=(
            Sign(7, "only its owner may open the node: no group can help", any_of(
                node(GPU_NODES, lambda mode, _owner, _group: mode is not None and mode & 0o066 == 0),
                text(r"(?:crw-------|\b0?600\b)[^\n]{0,80}(?:kfd|renderd)|(?:kfd|renderd\d*)[^\n]{0,40}(?:\b0?600\b|crw-------)"),
                fact(lambda seen: seen.host and seen.host.kfd and not seen.host.kfd.group_writable and not seen.host.kfd.world_writable),
            )),
            Sign(-5, "another errno than EACCES", opened("EPERM|EINVAL|ENOMEM")),
        ),
    ),
    Rule(
        kind="kfd-render-gid-differ",
        symptom="denied",
        needs=fact(_gids_differ),
        unless=opened("EINVAL|ENOMEM|EPERM"),
        signs=(
            Sign(6, "kfd and the render nodes belong to different groups", all_of(fact(_gids_differ), text(r"/dev/kfd|\bkfd\b"))),
            Sign(4, "the process holds the group of one of them alone", fact(_one_of_two_held)),
            Sign(1, "kfd may not be opened", opened("EACCES", KFD)),
            Sign(-5, "a group is lacking for the render nodes too", opened("EACCES", r"/dev/dri/.*")),
            Sign(-6, "the process holds all of these groups", fact(_all_groups_held)),
        ),
    ),
    Rule(
        kind="stale-session-groups",
        symptom="denied",
        needs=all_of(
            _DENIED,
            any_of(
                fact(_newer_in_the_database),
                all_of(
                    text(r"is (?:a )?member of|newgrp|log(?:ged)? ?(?:out|in)|usermod|\bid -g\b|stale|session|re-?login"),
                    absent(text(r"not (?:a )?member of")),
                ),
            ),
        ),
        unless=fact(_mapped),
        signs=(
            Sign(5, "the database has groups for the user that the process does not hold", fact(_newer_in_the_database)),
            Sign(4, "the database has the user in the group, and the open is refused", all_of(text(r"is (?:a )?member of"), _DENIED)),
            Sign(4, "the group was given after the session began", anywhere(r"usermod|newgrp|log(?:ged)? ?(?:out|in|off)|\bid -g\b|new session|re-?login|stale|just added|added [^\n]{0,30}group|gpasswd|reboot")),
            Sign(-4, "ids are mapped: the engine is rootless or remaps users", any_of(_ROOTLESS, _NOBODY)),
            Sign(-3, "SELinux is enforcing", _SELINUX),
            Sign(-4, "the process's groups lack the node's", all_of(fact(_group_lacking), absent(fact(_newer_in_the_database)))),
        ),
        settles=any_of(fact(_newer_in_the_database), anywhere(r"usermod|newgrp|log(?:ged)? ?(?:out|in|off)|\bid -g\b|new session|re-?login|stale|just added")),
        undecided="which groups the process itself holds: `id -G` in that session, compared with `id -G USER`",
    ),
    Rule(
        kind="selinux-denied",
        symptom="denied",
        needs=any_of(_NODE_AVC, all_of(_SELINUX, any_of(_DENIED, _UNSEEN, absent(_LABELLED_FILES)))),
        signs=(
            Sign(7, "SELinux refused access to a device node", _NODE_AVC),
            Sign(3, "SELinux is enforcing", _SELINUX),
            Sign(2, "a node may not be opened, or no GPU is seen", any_of(_DENIED, _UNSEEN)),
            Sign(2, "the boolean for devices is off, or a label was taken away", unquoted(anywhere(r"container_use_devices|label[=:]disable|setenforce 0|dri_device_t|permissive"))),
            Sign(1, "the mode allows it", node(GPU_NODES, lambda mode, _owner, _group: mode is not None and mode & 0o006 == 0o006)),
            Sign(-3, "the process's groups lack the node's", fact(_group_lacking)),
        ),
    ),
    Rule(
        kind="selinux-mount",
        symptom="mount",
        needs=any_of(_LABELLED_FILES, all_of(_SELINUX, text(DENIED))),
        signs=(
            Sign(7, "SELinux refused access to a file or directory", _LABELLED_FILES),
            Sign(1, "a mounted path may not be read", text(rf"{DENIED}[^\n]{{0,60}}'?/|/\S+[^\n]{{0,20}}{DENIED}")),
            Sign(2, "SELinux is enforcing", _SELINUX),
            Sign(3, "a label helps", anywhere(r":[zZ]\b|relabel|chcon|container_file_t|user_home_t|label[=:]disable")),
            Sign(-5, "it is a device node", any_of(_NODE_AVC, _DENIED)),
        ),
    ),
    Rule(
        kind="cap-drop-dac-override",
        symptom="mount",
        needs=all_of(text(DENIED), any_of(flag(r"--cap-drop=all"), anywhere(r"dac_override|cap[-_ ]?drop|capeff|cap_drop"))),
        signs=(
            Sign(3, "a file or directory may not be used", text(DENIED)),
            Sign(3, "capabilities were dropped", any_of(flag(r"--cap-drop=all"), anywhere(r"cap[-_ ]?drop|cap_drop|capeff[^\n]{0,20}0000000000000000"))),
            Sign(1, "the process is root inside, and the path is another's", text(r"container_user: root|\broot\b|host user owned|uid=0")),
            Sign(3, "DAC_OVERRIDE is named", anywhere(r"dac_override")),
            Sign(-6, "the process is not root inside, so the capability is not what it lacks", fact(_user_named)),
            Sign(-3, "it is a device node", _DENIED),
        ),
    ),
    Rule(
        kind="no-new-privileges-setuid",
        needs=text(r"effective uid is not 0|no new privileges|no_new_privs|must be setuid|setuid|unable to (?:change|set) [^\n]{0,20}(?:gid|uid)|sudo: "),
        signs=(
            Sign(6, "sudo cannot become another user: setuid has no effect", text(r"effective uid is not 0|no new privileges|must be (?:owned by uid 0 and have the )?setuid|setresuid\([^\n]{0,60}(?:not permitted|eperm)|su: cannot set (?:groups|user)|setgroups[^\n]{0,30}not permitted|unable to change to (?:root|runas) [gu]id")),
            Sign(2, "no-new-privileges is set", any_of(flag(r"no-new-privileges"), anywhere(r"no[-_ ]new[-_ ]priv|nonewprivs\W{1,4}1|allowprivilegeescalation\W{1,3}false"))),
        ),
    ),
    Rule(
        kind="mount-unreadable",
        symptom="mount",
        needs=text(rf"{DENIED}|permissionerror"),
        signs=(
            Sign(5, "a file or directory with data may not be read", text(
                rf"{DENIED}[^\n]{{0,40}}['\" (:]/(?:models?|data|datasets?|weights|checkpoints?|mnt|srv|input|inputs|workspace|media|storage|nfs|shared|llm)\b"
                rf"|/(?:models?|data|datasets?|weights|checkpoints?|mnt|srv|inputs?|workspace|media|storage|nfs|shared|llm)/\S*[^\n]{{0,20}}{DENIED}"
                rf"|(?:\.safetensors|\.gguf|\.pt|\.pth|config\.json|tokenizer\S{{0,20}}\.json|\.parquet|\.onnx)[^\n]{{0,30}}{DENIED}|{DENIED}[^\n]{{0,120}}(?:\.safetensors|\.gguf|\.pth?|config\.json|tokenizer\S{{0,20}}\.json|\.parquet|\.onnx)"
            )),
            Sign(4, "the working directory may not be entered", text(rf"chdir to cwd[^\n]{{0,120}}{DENIED}")),
            Sign(2, "it is a mount", any_of(flag(r"^(?:-v|--volume|--mount)="), told(r"mount|volume|bind"))),
            Sign(-4, "it is a cache", text(rf"{DENIED}[^\n]{{0,80}}(?:\.cache|\.triton|miopen|site-packages)")),
            Sign(-5, "it is a device node", _DENIED),
            Sign(-4, "capabilities were dropped, and the process is root inside", all_of(flag(r"--cap-drop=all"), absent(fact(_user_named)))),
            Sign(-3, "SELinux refused", _LABELLED_FILES),
        ),
    ),
)  # fmt: skip
