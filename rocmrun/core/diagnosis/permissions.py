"""Who may open the nodes: groups by number, user namespaces, modes, labels."""

from rocmrun.core.diagnosis.denials import (
    GROUP_MISSED,
    LABELLED_FILES,
    NODE_AVC,
    NODE_DENIED,
    OPEN_UNSAID,
    SELINUX,
    SELINUX_OFF_HELPED,
    user_named,
)
from rocmrun.core.diagnosis.evidence import Evidence
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
from rocmrun.core.diagnosis.node_groups import (
    GROUP_READ_WRITE,
    NOBODY,
    OTHERS_READ_WRITE,
    ROOT,
    all_groups_held,
    another_group_given,
    gated_nodes,
    gids_differ,
    group_lacking,
    one_of_two_held,
    passed_without_group,
)
from rocmrun.core.diagnosis.sessions import newer_in_the_database
from rocmrun.core.diagnosis.words import AGAIN, HYPERVISED, NO_GPU, NO_SPACE, ROOTLESS

_OLD_ROCMINFO = all_of(
    text(r"returned 4104|out_of_resources"), absent(opened("ENOMEM|EINVAL|EPERM|ENOENT"))
)
_UNSEEN = text(NO_GPU)
_PRIVILEGED_WORKS = any_of(
    text(
        r"sudo (?:/opt/rocm\S*/)?(?:bin/)?rocminfo|works (?:as root|with sudo)|\bha(?:s|ve|d) to (?:run|use|be run)\b[^\n]{0,40}\bsudo\b|\bonly (?:works? )?(?:with|as|under) (?:sudo|root)\b"
    ),
    anywhere(
        r"^(?:as_root|works_with_sudo|works_as_root|root)\W{1,3}(?:true|yes|works|ok)|works[\w ]{0,12}(?:as root|with sudo|as uid 0)|(?:with|as) root it (?:does|works|finds|sees)"
    ),
)
_NOBODY = any_of(
    text(r"nobody\W{1,3}nogroup|\bnogroup\b|nobody[ :]+nobody|\b65534\b|root (?:nobody|65534)"),
    node(GPU_NODES, lambda _mode, owner, group: bool({owner, group} & NOBODY)),
)
_ENGINE_DENIED = text(
    r"permission denied[^\n]{0,40}connect to the docker (?:daemon|api)|fetching server api version[^\n]{0,80}permission denied|docker\.sock\b[^\n]{0,120}permission denied"
)
_ROOTLESS = any_of(
    anywhere(rf"{ROOTLESS}|/var/lib/containers|/run/user/\d+/podman"),
    fact(lambda seen: seen.engine and (seen.engine.rootless or seen.engine.userns_remap)),
)


def _mapped(seen: Evidence) -> bool:
    """Whether ids inside are not those outside."""
    return any(inside != outside for inside, outside, _ in seen.uid_map)


def _roots_alone(mode: int | None, _owner: str, group: str) -> bool:
    """Whether no group but root's may open a node: of these two, neither is one to give away."""
    if mode is None or mode & OTHERS_READ_WRITE == OTHERS_READ_WRITE:
        return False
    return mode & GROUP_READ_WRITE != GROUP_READ_WRITE or group in ROOT


def _roots_alone_here(seen: Evidence) -> bool | None:
    kfd = seen.host.kfd if seen.host else None
    return None if kfd is None else _roots_alone(kfd.mode, str(kfd.uid), str(kfd.gid))


_ROOTS_ALONE = any_of(
    node(GPU_NODES, _roots_alone),
    text(
        r"(?:crw-------|\b0?600\b)[^\n]{0,80}(?:kfd|renderd)|(?:kfd|renderd\d*)[^\n]{0,40}(?:\b0?600\b|crw-------)|(?:kfd|renderd\d*)\b[^\n]{0,80}\broot:root\b[^\n]{0,20}\b0?600\b"
    ),
    fact(_roots_alone_here),
)
# No rule of udev's gives the node to a group: whose it would be stands in what a package would have installed.
_RULE_LACKING = all_of(
    text(r"permission|(?<![\w-])access|(?<![(/=])\broot\b(?![=/])"),
    anywhere(r"kernel==\W{1,3}(?:kfd|renderd)|rules\.d/[\w.-]*(?:kfd|amdgpu|rocm|drm|render)"),
    absent(any_of(NODE_DENIED, fact(gated_nodes))),
)
# A group counts from the next login on, and a new session, or a boot, was what helped.
_FROM_NEXT_LOGIN = all_of(
    text(
        r"\bgroups?\b[^\n]{0,80}\bnext login\b|\bgroups?\b[^\n]{0,60}\blog(?:ging)? (?:back )?(?:out|in)\b|\bgroups?\b[^\n]{0,20}\bre-?loaded"
    ),
    remedy(r"newgrp|re-?boot|log(?:ging|ged)? (?:back )?(?:out|in|off)|new session|re-?login"),
)
# Podman keeps the user's groups with crun alone.
_CRUN_HELPED = all_of(text(r"\bpodman\b"), remedy(r"\bcrun\b"))

# The engine looks a name up in the image's /etc/group, whatever the host has.
_NAME_NOT_IN_IMAGE = text(r"unable to find group (?:render|video): no matching entries")

# Whoever retells a refusal often names neither node nor errno, and says which group mended it.
_GROUP_HELPED = all_of(
    any_of(text(r"permissions?\b|access|denied"), OPEN_UNSAID),
    remedy(
        r"(?:usermod|gpasswd|adduser|addgroup|groupadd|groupmod|adds|added|adding|creates?|joined)\b[^\n]{0,40}\b(?:render|video)\b"
    ),
    absent(NODE_DENIED),
)
_RULE_HELPED = all_of(
    any_of(NODE_DENIED, _UNSEEN),
    remedy(
        r"\budev\b[^\n]{0,40}\brules?\b|\bkernel==\W?(?:kfd|renderd)|\b\d\d-(?:kfd|amdgpu)\S{0,20}\.rules"
    ),
)
_FOR_A_GROUP = text(
    r"(?:restricted|limited|belongs?|owned|open(?:ed)?|accessible) (?:only )?(?:to|by|for) (?:the )?(?:root:|group )(?:render|video)\b"
)
_BOOLEAN_HELPED = all_of(
    text(r"/dev\b|access|denied|\bgpus?\b"),
    unquoted(
        remedy(
            r"container_use_devices\W{1,4}(?:on|1|true)|setsebool[^\n]{0,20}container_use_d|\blabel[=:](?:disable|type)"
        )
    ),
)

RULES = (
    Rule(
        kind="render-gid-mismatch",
        symptom="denied",
        needs=any_of(NODE_DENIED, _UNSEEN, _OLD_ROCMINFO, fact(group_lacking), fact(another_group_given), GROUP_MISSED, _NAME_NOT_IN_IMAGE, _GROUP_HELPED, OPEN_UNSAID),
        unless=any_of(NODE_AVC, fact(_mapped)),
        signs=(
            Sign(4, "a node may not be opened: EACCES", NODE_DENIED),
            Sign(4, "the node's group is not among the process's groups", fact(group_lacking)),
            Sign(5, "access is lacking, and the group of the nodes mended it", _GROUP_HELPED),
            Sign(3, "a render node cannot be opened, and nobody says why", OPEN_UNSAID),
            Sign(4, "another group was given than the node's", fact(another_group_given)),
            Sign(4, "a node is said to be for one group alone", all_of(_FOR_A_GROUP, absent(fact(group_lacking)))),
            Sign(2, "no GPU is seen", _UNSEEN),
            Sign(2, "the process is not root inside", fact(user_named)),
            Sign(3, "the nodes belong to a group of this host", any_of(told(r"(?:node|owner|nodes|kfd|ls)[\w./* ]*: [^\n]{0,60}root[:/ ]{1,2}(?:render|video|\d+)|renderd\S* root:render"), fact(lambda seen: bool(gated_nodes(seen))))),
            Sign(2, "a group was given by name: names count in the image, numbers on the host", flag(r"--group-add=(?:video|render)$")),
            Sign(7, "a group was given by a name that the image does not have", _NAME_NOT_IN_IMAGE),
            Sign(2, "groups were given by number, and no GPU is seen", flag(r"--group-add=\d+$")),
            Sign(3, "the render group has another number on this host", text(r"(?:different|other|another|wrong)[^\n]{0,20}\bgids?\b|\brender[ _]gid\b|\bgids?\b[^\n]{0,20}(?:differ|mismatch|do(?:es)? not match)")),
            Sign(3, "with every right it works", _PRIVILEGED_WORKS),
            Sign(1, "an old rocminfo calls a plain permission problem OUT_OF_RESOURCES", _OLD_ROCMINFO),
            Sign(1, "SMI works, which opens no node", any_of(told(r"rocm_smi|smi_works"), log(r"^\d\s+[\d.]+c\s"))),
            Sign(2, "somebody opened the nodes to all, or gave the group", unquoted(any_of(anywhere(r"chmod[\w ]*(?:666|777|a\+rw)"), remedy(r"group[-_ ]?add|supplementalgroups|render gid|gid of")))),
            Sign(4, "a tool says that the user lacks the group of the nodes", GROUP_MISSED),
            Sign(1, "a tool misses a group", text(r"not (?:a )?member of|check for video group membership|missing the following required groups")),
            Sign(-6, "ids are mapped: the engine is rootless or remaps users", any_of(_ROOTLESS, _NOBODY)),
            Sign(-4, "the engine is Podman, which is rootless as a rule", text(r"\bpodman\b|distrobox|toolbx|buildah")),
            Sign(-5, "the engine runs in a virtual machine", text(HYPERVISED)),
            Sign(-5, "everybody or nobody but the owner may open it", node(KFD, lambda mode, _owner, _group: mode is not None and mode & GROUP_READ_WRITE != GROUP_READ_WRITE)),
            Sign(-6, "only root, or root's own group, may open the node", _ROOTS_ALONE),
            Sign(-4, "the process holds the groups", fact(all_groups_held)),
            Sign(-4, "a mask of devices is set", all_of(absent(NODE_DENIED), any_of(variable(r"(?:ROCR|HIP|CUDA)_VISIBLE_DEVICES"), text(r"_visible_devices")))),
            Sign(-5, "torch is no ROCm build", text(r"\+cu\d+|\+cpu\b|version\.hip\W{1,8}none|nvidia driver")),
            Sign(-2, "SELinux is enforcing", SELINUX),
            Sign(-2, "kfd and the render nodes belong to different groups", all_of(fact(gids_differ), absent(fact(group_lacking)))),
            Sign(-5, "the process holds the group of kfd or of the render nodes, and not both", fact(one_of_two_held)),
            Sign(-2, "the group was given after the session began", all_of(NODE_DENIED, anywhere(r"newgrp|usermod|just added"))),
            Sign(-6, "the database has the group for the user already", fact(newer_in_the_database)),
            Sign(-4, "another errno than EACCES", opened("EPERM|EINVAL|ENOMEM|ENOENT")),
            Sign(-2, "rocminfo says that the user is a member", all_of(NODE_DENIED, text(r"is (?:a )?member of"), absent(text(r"not (?:a )?member of")))),
            Sign(-5, "WSL has no such nodes", anywhere(r"/dev/dxg|\bwsl")),
        ),
        settles=any_of(fact(group_lacking), all_of(NODE_DENIED, any_of(fact(user_named), _PRIVILEGED_WORKS, flag(r"--group-add"), text(r"not (?:a )?member of")))),
        undecided="the numbers: compare `stat -c '%g %n' /dev/kfd /dev/dri/renderD*` on the host with `Groups:` in /proc/PID/status of the process",
    ),
    Rule(
        kind="rootless-groups",
        symptom="denied",
        needs=any_of(NODE_DENIED, _UNSEEN, _NOBODY, _CRUN_HELPED, text(r"crun|runc|insufficient permissions|keep-groups")),
        signs=(
            Sign(4, "ids are mapped: the engine is rootless or remaps users", _ROOTLESS),
            Sign(3, "the node's owner or group is not mapped: it shows as nobody", _NOBODY),
            Sign(3, "the process's ids are mapped", fact(_mapped)),
            Sign(2, "the engine is Podman or builds on it", text(r"\bpodman\b|distrobox|toolbx|toolbox|buildah|rocm-podman-support")),
            Sign(2, "a node may not be opened: EACCES", any_of(NODE_DENIED, text(r"insufficient permissions"))),
            Sign(4, "a runtime that keeps the groups mended it", _CRUN_HELPED),
            Sign(3, "even root inside may not open the node", all_of(NODE_DENIED, text(r"root is (?:not )?(?:a )?member of|root@|container_root: true|uid=0"))),
            Sign(-5, "the groups are held and the node may be opened by all", opened("EINVAL|ENOMEM|EPERM")),
            Sign(-2, "SELinux refused", NODE_AVC),
            Sign(-6, "a limit is reached, and no node is named", all_of(text(rf"{AGAIN}|{NO_SPACE}|oom-killed|\brlimit"), absent(NODE_DENIED))),
            Sign(-3, "the engine runs in a virtual machine", text(HYPERVISED)),
        ),
        settles=any_of(_ROOTLESS, _NOBODY, fact(_mapped)),
        undecided="whether ids are mapped: `cat /proc/self/uid_map` inside (\"0 0 4294967295\" is no mapping)",
    ),
    Rule(
        kind="host-udev-perms",
        symptom="denied",
        needs=any_of(_ROOTS_ALONE, _RULE_HELPED, _RULE_LACKING),
        signs=(
            Sign(5, "no rule gives the node to a group", _RULE_LACKING),
            Sign(5, "a rule of udev mended it", _RULE_HELPED),
            Sign(7, "only root, or root's own group, may open the node: no group of GPUs can help", _ROOTS_ALONE),
            Sign(-5, "another errno than EACCES", opened("EPERM|EINVAL|ENOMEM")),
            Sign(-4, "ids are mapped: root outside shows as somebody else", any_of(_NOBODY, fact(_mapped))),
            Sign(-4, "kfd was passed on without a group, and the render nodes with theirs", fact(passed_without_group)),
        ),
    ),
    Rule(
        kind="kfd-render-gid-differ",
        symptom="denied",
        needs=fact(gids_differ),
        unless=opened("EINVAL|ENOMEM|EPERM"),
        signs=(
            Sign(6, "kfd and the render nodes belong to different groups", all_of(fact(gids_differ), text(r"/dev/kfd|\bkfd\b"))),
            Sign(4, "the process holds the group of one of them alone", fact(one_of_two_held)),
            Sign(1, "kfd may not be opened", opened("EACCES", KFD)),
            Sign(-5, "a group is lacking for the render nodes too", opened("EACCES", r"/dev/dri/.*")),
            Sign(-6, "the process holds all of these groups", all_of(fact(all_groups_held), absent(fact(one_of_two_held)))),
        ),
    ),
    Rule(
        kind="stale-session-groups",
        symptom="denied",
        needs=all_of(
            any_of(NODE_DENIED, _ENGINE_DENIED, _FROM_NEXT_LOGIN),
            any_of(
                fact(newer_in_the_database),
                all_of(
                    text(r"is (?:a )?member of|newgrp|log(?:ged)? ?(?:out|in)|usermod|\bid -g\b|stale|session|re-?login"),
                    absent(text(r"not (?:a )?member of")),
                ),
            ),
        ),
        unless=fact(_mapped),
        signs=(
            Sign(5, "the database has groups for the user that the process does not hold", fact(newer_in_the_database)),
            Sign(2, "the engine's socket may not be used", _ENGINE_DENIED),
            Sign(3, "a group counts from the next session on, and that helped", _FROM_NEXT_LOGIN),
            Sign(4, "the database has the user in the group, and the open is refused", all_of(text(r"is (?:a )?member of"), NODE_DENIED)),
            Sign(4, "the group was given after the session began", anywhere(r"usermod|newgrp|log(?:ged)? ?(?:out|in|off)|\bid -g\b|new session|re-?login|stale|just added|added [^\n]{0,30}group|gpasswd|reboot")),
            Sign(-4, "ids are mapped: the engine is rootless or remaps users", any_of(_ROOTLESS, _NOBODY)),
            Sign(-3, "SELinux is enforcing", SELINUX),
            Sign(-4, "the process's groups lack the node's", all_of(fact(group_lacking), absent(fact(newer_in_the_database)))),
        ),
        settles=any_of(fact(newer_in_the_database), anywhere(r"usermod|newgrp|log(?:ged)? ?(?:out|in|off)|\bid -g\b|new session|re-?login|stale|just added")),
        undecided="which groups the process itself holds: `id -G` in that session, compared with `id -G USER`",
    ),
    Rule(
        kind="selinux-denied",
        symptom="denied",
        needs=any_of(NODE_AVC, _BOOLEAN_HELPED, all_of(SELINUX_OFF_HELPED, any_of(NODE_DENIED, _UNSEEN)), all_of(SELINUX, any_of(NODE_DENIED, _UNSEEN, absent(LABELLED_FILES)))),
        signs=(
            Sign(7, "SELinux refused access to a device node", NODE_AVC),
            Sign(3, "SELinux is enforcing", SELINUX),
            Sign(5, "without SELinux's enforcement it works", SELINUX_OFF_HELPED),
            Sign(4, "SELinux's boolean for devices, or another label, mended it", _BOOLEAN_HELPED),
            Sign(2, "a node may not be opened, or no GPU is seen", any_of(NODE_DENIED, _UNSEEN)),
            Sign(2, "the boolean for devices is off, or a label was taken away", unquoted(anywhere(r"container_use_devices|label[=:]disable|setenforce 0|dri_device_t|permissive"))),
            Sign(1, "the mode allows it", node(GPU_NODES, lambda mode, _owner, _group: mode is not None and mode & 0o006 == 0o006)),
            Sign(-3, "the process's groups lack the node's", fact(group_lacking)),
        ),
    ),
)  # fmt: skip
