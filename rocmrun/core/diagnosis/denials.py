"""What several families ask about a refusal: of a node or of a file, by SELinux, to whom."""

import re

from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.looks import any_of, opened, text
from rocmrun.core.diagnosis.words import DENIED

NODE_DENIED = any_of(
    opened("EACCES"),
    text(
        rf"/dev/(?:kfd|dri)[^\n]{{0,60}}{DENIED}|\b(?:no|without|lacks?) (?:access|permissions?|rights?) (?:to|on|for) (?:/dev/dri/|/dev/)?(?:kfd|renderd\d)"
    ),
)
SELINUX = text(
    r"avc:\s{1,3}denied|selinux[\w.]*\W{1,3}(?:is )?(?:enforcing|enabled|preventing)|enforcing mode\s{1,20}enforcing|container_use_devices|getenforce\W{1,3}enforcing"
)
NODE_AVC = text(
    r"avc:\s{1,3}denied[^\n]{0,400}(?:tclass=chr_file|dri_device_t|xserver_misc_device_t|hsa_device_t|device_t|name=\W?(?:kfd|renderd))"
)
LABELLED_FILES = text(r"avc:\s{1,3}denied[^\n]{0,400}tclass=(?:dir|file|lnk_file|sock_file)")


def user_named(seen: Evidence) -> bool:
    """Whether the process is told to be somebody else than root."""
    for name, line in seen.flags:
        if re.match(r"(?:-u|--user)=(?!0\b|root)", name) and line is not None:
            return True
    return bool(
        seen.find(
            r"container_user: [^\n]{0,40}non-?root|container_user: (?!root\b|(?:uid )?0\b)\w|run_?as_?(?:user|non_?root)\W{1,4}(?:true|[1-9])|adduser|useradd|\buser (?!root|0\b)[a-z$][\w$-]*\s*$|--user[ =](?!0\b|root)|[a-z_][\w-]*@[\w-]+:~?[^\n]{0,40}\$ (?:rocminfo|python|/opt)|non-?root|uid=[1-9]\d*|image[\w.]*: [^\n]{0,60}\buser [a-z]"
        )
    )
