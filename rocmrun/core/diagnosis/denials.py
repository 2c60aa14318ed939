"""What several families ask about a refusal: of a node or of a file, by SELinux, to whom."""

import re

from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.looks import any_of, opened, remedy, text, unquoted
from rocmrun.core.diagnosis.words import DENIED

NODE_DENIED = any_of(
    opened("EACCES"),
    text(
        rf"/dev/(?:kfd|dri)[^\n]{{0,60}}{DENIED}|permissions not set up properly[^\n]{{0,80}}\brender group"
        r"|(?:cannot|can't|could not|unable to) (?:access|use|open) \W?/dev/(?:dri/)?(?:kfd|renderd\d+)\b(?![^\n]{0,80}(?:no such|not found|not exist|invalid|not permitted|allocate|busy|eperm|enoent|einval|enomem|errno))|/dev/(?:dri/)?(?:kfd|renderd\d+)\b[^\n]{0,40}\b(?:is )?not (?:accessible|readable|writable)\b"
        r"|\b(?:no|without|lacks?) (?:access|permissions?|rights?) (?:to|on|for) (?:the )?(?:/dev/(?:kfd|dri)\b|(?:/dev/dri/|/dev/)?(?:kfd|renderd\d))"
    ),
)
# FFmpeg and what is built on it open a render node, and keep the errno to themselves.
OPEN_UNSAID = text(
    r"failed to open \W?/dev/dri/renderd\d+\W? as drm device|no va display found for (?:any|device|default)"
)
# mount(2) is refused with EPERM for want of a capability, and with EACCES by a profile.
MOUNT_REFUSED = text(
    rf"(?:\b(?:u?mount|remount|pivot_root|mount --make-\w+)\b[^\n]{{0,120}}|failed to make / (?:r?slave|r?private|r?shared): ){DENIED}"
)
# Rights that were given back, or not taken away: what was refused needed one of them.
CAPABILITY_HELPED = remedy(
    r"\bwithout (?:the |`)?(?:option )?cap[-_ ]?drop|\bremov\w*[^\n]{0,20}cap[-_ ]?drop|cap[-_ ]?add\b[^\n]{0,40}\b(?:chown|dac_override|fowner)|without_cap_?drop\W{1,4}(?:works|ok|yes)"
)
# A tool that looked the groups up; by name, in the image or on the host that it runs on.
GROUP_MISSED = text(
    r"\b(?:user|uid|you(?:'re| are))\b[^\n]{0,40}\bnot (?:in|part of) (?:the )?\W?(?:render|video)\b|\b(?:user|process)\b[^\n]{0,20}\bnot in (?:that|the|its) (?:same )?(?:numeric )?group\b|^(?:fail|error|warn\w*)\W{1,4}not in (?:the )?render group"
)
# Nobody should repeat it, and it tells what refused.
SELINUX_OFF_HELPED = unquoted(
    any_of(
        text(
            r"setenforce 0\b[^\n]{0,40}\b(?:works?|helps?|fix)|\b(?:works?|helps?|fixed)\b[^\n]{0,40}(?:setenforce 0\b|\bpermissive\b)|\bpermissive\b[^\n]{0,30}\bworks?\b"
        ),
        remedy(r"setenforce 0\b|selinux[^\n]{0,20}(?:permissive|disabled)"),
    )
)
SELINUX = text(
    r"avc:\s{1,3}denied|selinux[\w.]*\W{1,3}(?:is )?(?:enforcing|enabled|preventing)|enforcing mode\s{1,20}enforcing|container_use_devices|getenforce\W{1,3}enforcing"
)
NODE_AVC = text(
    r"avc:\s{1,3}denied[^\n]{0,400}(?:tclass=chr_file|dri_device_t|xserver_misc_device_t|hsa_device_t|device_t|name=\W?(?:kfd|renderd))|selinux is preventing [^\n]{1,200} on the chr_file\b"
)
LABELLED_FILES = text(
    r"avc:\s{1,3}denied[^\n]{0,400}tclass=(?:dir|file|lnk_file|sock_file)|selinux is preventing [^\n]{1,200} on the (?:file|dir|directory|lnk_file|sock_file)\b"
)


def user_named(seen: Evidence) -> bool:
    """Whether the process is told to be somebody else than root."""
    for name, line in seen.flags:
        if re.match(r"(?:-u|--user)=(?!0\b|root)", name) and line is not None:
            return True
    return bool(
        seen.find(
            r"container_user: [^\n]{0,40}non-?root|(?:container|compose|service|unit|daemon|run)_user: (?!root\b|(?:uid )?0\b)\w|^user: [1-9]\d*\b|^(?:container_|run_)?(?:uid|user|run_as|runas): (?:uid )?[1-9]\d{2,9}\b|run_?as_?(?:user|non_?root)\W{1,4}(?:true|[1-9])|adduser|useradd|\buser (?!root|0\b)[a-z$][\w$-]*\s*$|--user[ =](?!0\b|root)|[a-z_][\w-]*@[\w-]+:~?[^\n]{0,40}\$ (?:rocminfo|python|/opt)|non-?root|uid=[1-9]\d*|image[\w.]*: [^\n]{0,60}\buser [a-z]"
        )
    )
