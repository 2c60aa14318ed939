"""Who may use mounted files and programs of others: labels, capabilities, setuid, modes."""

from rocmrun.core.diagnosis.denials import (
    CAPABILITY_HELPED,
    LABELLED_FILES,
    MOUNT_REFUSED,
    NODE_AVC,
    NODE_DENIED,
    SELINUX,
    SELINUX_OFF_HELPED,
    user_named,
)
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    remedy,
    text,
    told,
    unquoted,
)
from rocmrun.core.diagnosis.words import DENIED, EVERY_RIGHT_WORKS

_DROPS_ALL = r"capabilit\w*[^\n]{0,40}drop\W{1,5}all"
# A label on the mount was what mended it.
_LABEL_HELPS = any_of(
    remedy(r"/[\w.$(){}/-]*:(?:ro,|rw,)?z\b|(?:^|\s)\W?:z\b|\bchcon\b|relabel"),
    text(
        r"\b(?:with|add(?:ed|ing)?|using) \W?:z\b[^\n]{0,30}\b(?:works?|fix|helps?|lists|reads|fine)|\bwithout (?:the |an? )?\W?:z\b[^\n]{0,80}\bdenied|\b(?:works?|fixed|helps?)\b[^\n]{0,30} \W?:z\b"
    ),
)
_FILE_REFUSED = text(
    rf"{DENIED}|permissions are insufficient|insufficient permissions|\bpermission (?:troubles?|problems?|issues?)"
)

# Podman gives a container its own label wherever SELinux is there, and none to a privileged one.
_LABELLED_BY_PODMAN = all_of(
    text(r"\bpodman\b"),
    flag(r"^(?:-v|--volume|--mount)="),
    absent(flag(r":z\b|,z\b|label=disable|--privileged")),
    unquoted(anywhere(EVERY_RIGHT_WORKS)),
)
_ENFORCED_THERE = all_of(
    text(
        r"^(?!\w*image|from\b)[^\n]{0,60}\b(?:fedora|rhel|red ?hat|centos|rocky|alma ?linux|oracle linux)\b"
    ),
    unquoted(anywhere(EVERY_RIGHT_WORKS)),
)
_PRIVILEGES_HELPED = all_of(
    text(r"\bsudo\b|\bsu\b|setuid"),
    remedy(r"no[-_ ]new[-_ ]priv|allowprivilegeescalation"),
)
# Podman and Docker relabel what is mounted with :z, where they may.
_RELABEL_REFUSED = text(
    r"selinux relabeling of \S{1,200} is not allowed|lsetxattr\(label=[^\n]{1,300}(?:not permitted|not supported|denied)"
)
# Root without DAC_OVERRIDE and CHOWN is like anybody else with files of others.
_ROOT_REFUSED = rf"{DENIED}|\b(?:chown|chmod|chgrp)\b[^\n]{{0,60}}(?:\bfail|not permitted)"

RULES = (
    Rule(
        kind="selinux-mount",
        symptom="mount",
        needs=any_of(LABELLED_FILES, _RELABEL_REFUSED, all_of(any_of(SELINUX, SELINUX_OFF_HELPED, _LABEL_HELPS, _ENFORCED_THERE, _LABELLED_BY_PODMAN), _FILE_REFUSED)),
        signs=(
            Sign(7, "SELinux refused access to a file or directory", LABELLED_FILES),
            Sign(7, "the path may not be given the label that a container may read", _RELABEL_REFUSED),
            Sign(1, "a path may not be read", _FILE_REFUSED),
            Sign(4, "the distribution enforces SELinux, and with every right it works", _ENFORCED_THERE),
            Sign(4, "without SELinux's enforcement it works", SELINUX_OFF_HELPED),
            Sign(3, "Podman labels containers, and with every right it works", all_of(_LABELLED_BY_PODMAN, absent(_ENFORCED_THERE))),
            Sign(5, "a label on the mount mended it", _LABEL_HELPS),
            Sign(1, "a mounted path may not be read", text(rf"{DENIED}[^\n]{{0,60}}'?/|/\S+[^\n]{{0,20}}{DENIED}")),
            Sign(2, "SELinux is enforcing", SELINUX),
            Sign(3, "a label is named", anywhere(r"relabel|chcon|container_file_t|user_home_t|label[=:]disable")),
            Sign(-5, "it is a device node", any_of(NODE_AVC, NODE_DENIED)),
        ),
    ),
    Rule(
        kind="cap-drop-dac-override",
        symptom="mount",
        needs=all_of(text(_ROOT_REFUSED), any_of(flag(r"--cap-drop=all"), anywhere(rf"dac_override|cap[-_ ]?drop|capeff|cap_drop|{_DROPS_ALL}"))),
        signs=(
            Sign(3, "a file or directory may not be used, or given to another", text(_ROOT_REFUSED)),
            Sign(3, "capabilities were dropped", any_of(flag(r"--cap-drop=all"), anywhere(rf"{_DROPS_ALL}|cap[-_ ]?drop|cap_drop|capeff[^\n]{0,20}0000000000000000"))),
            Sign(1, "the process is root inside, and the path is another's", text(r"container_user: root|\broot\b|host user owned|\buid[= ]0\b")),
            Sign(3, "DAC_OVERRIDE is named", anywhere(r"dac_override")),
            Sign(3, "with the capabilities it works", CAPABILITY_HELPED),
            Sign(-6, "the process is not root inside, so the capability is not what it lacks", fact(user_named)),
            Sign(-3, "it is a device node", NODE_DENIED),
            Sign(-5, "a mount is what is refused, which is another capability's", MOUNT_REFUSED),
        ),
    ),
    Rule(
        kind="no-new-privileges-setuid",
        needs=any_of(_PRIVILEGES_HELPED, text(r"effective uid is not 0|no[ -]new[ -]privileges|no_new_privs|must be suid|must be setuid|setuid|\bsuid\b|nonewprivileges|unable to (?:change|set) [^\n]{0,20}(?:gid|uid)|sudo: ")),
        signs=(
            Sign(6, "sudo cannot become another user: setuid has no effect", text(r"no new privileges|must be (?:owned by uid 0 and have the )?setuid|setresuid\([^\n]{0,60}(?:not permitted|eperm)|su: cannot set (?:groups|user)|setgroups[^\n]{0,30}not permitted|unable to change to (?:root|runas) [gu]id")),
            Sign(4, "programs that change the user are said not to", text(r"\b(?:sudo|suid|setuid)\b[^\n]{0,60}\b(?:cannot|can't|do(?:es)?(?: not|n't)|no effect|fails?)\b")),
            Sign(4, "sudo runs without root's rights: no-new-privileges, or a file system without setuid", text(r"effective uid is not 0|\bsu: must be suid to work|doas: not installed setuid")),
            Sign(4, "sudo fails", text(r"\bsudo\b[^\n:]{0,60}\b(?:fails?|failed|cannot|can't|does not work|doesn't work|refuses?)\b")),
            Sign(-3, "setuid has no effect there for another reason", any_of(told(r"(?<!not )\bnosuid\b"), text(r"qemu-user|\bemulated\b|binfmt"))),
            Sign(2, "no-new-privileges is set", any_of(flag(r"no-new-privileges"), anywhere(r"no[-_ ]new[-_ ]priv|nonewprivs\W{1,4}1|nonewprivileges\b\W{1,4}(?:\w+ )?true|allowprivilegeescalation\W{1,3}false"))),
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
                rf"|(?:\.safetensors|\.gguf|\.pt|\.pth|config\.json|tokenizer\S{{0,20}}\.json|\.parquet|\.onnx)[^\n]{{0,30}}{DENIED}|{DENIED}[^\n]{{0,120}}(?:\.safetensors|\.gguf|\.pth?|config\.json|tokenizer\S{{0,20}}\.json|\.parquet|\.onnx)|safetensorerror: {DENIED}|\bstatfs /\S{{1,200}}: {DENIED}"
            )),
            Sign(4, "the working directory may not be entered", text(rf"chdir to cwd[^\n]{{0,120}}{DENIED}")),
            Sign(2, "it is a mount", any_of(flag(r"^(?:-v|--volume|--mount)="), told(r"mount|volume|bind"))),
            Sign(-4, "it is a cache", text(rf"{DENIED}[^\n]{{0,80}}(?:\.cache|\.triton|miopen|site-packages|models--)|(?:\.cache|\.triton|miopen|models--)\S{{0,160}} ?{DENIED}")),
            Sign(-5, "it is a device node", NODE_DENIED),
            Sign(-4, "capabilities were dropped, and the process is root inside", all_of(flag(r"--cap-drop=all"), absent(fact(user_named)))),
            Sign(-3, "SELinux refused", LABELLED_FILES),
            Sign(-2, "SELinux is enforcing, which looks the same", SELINUX),
        ),
    ),
)  # fmt: skip
