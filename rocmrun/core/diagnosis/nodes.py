"""Device nodes in the container: not passed, another number, not allowed by the device cgroup, too many, hidden."""

import re

from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    KFD,
    RENDER,
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    opened,
    remedy,
    text,
    told,
    variable,
)
from rocmrun.core.diagnosis.words import (
    APU,
    CRASH,
    NO_GPU,
    NO_NODE,
    NO_NODE_BEFORE,
    PASSED_IS_MISSING,
    WSL,
)

_MASKS = r"(?:ROCR|HIP|CUDA)_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL"
_MASK_NAMED = r"(?:rocr|hip|cuda)_visible_devices|gpu_device_ordinal"
# KFD asks the device cgroup for a GPU's render node before it shows what the GPU is.
_TOPOLOGY_REFUSED = text(
    r"/kfd/topology/nodes/\d{1,4}/\w+[^\n]{0,40}(?:operation not permitted|\beperm\b)"
)
# KFD's own answer to a program of 32 bits is EPERM too.
_OF_32_BITS = text(r"32-bit processes are not supported by amdkfd")
_NOT_PERMITTED = any_of(
    opened("EPERM"),
    # Of any device: what the kernel's own rules for a node refuse is EACCES.
    text(
        r"^(?![^\n]{0,300}\b(?:mknod|u?mount|ch(?:own|mod|grp)|losetup)\b)[^\n]{0,300}/dev/(?!shm\b|mem\b|kmem\b|port\b|std(?:in|out|err)\b|pts\b|tty\b|null\b)[a-z][\w/.-]{1,60}\W[^\n]{0,60}(?:operation not permitted|\beperm\b)"
    ),
)
_REBOOT = anywhere(
    r"created (?:earlier|before)|before (?:a |the )?(?:host )?re-?boot|after (?:a |the )?(?:host )?re-?boot|since (?:the )?(?:re)?boot|old (?:container|major)|stale|major(?: number)?s? (?:\w+ )?(?:changed|differ|dynamic|mismatch)|host_major|major:minor"
)
_MAJOR_CHANGED = anywhere(
    r"\b(?:another|other|different|new|old|stale|wrong) major\b|\bmajor(?: number)?\b[^\n]{0,30}(?:changed|moved|no longer|stale|is another|from \d{1,3} to \d{1,3})"
)
_WORKED_BEFORE = text(
    r"\blater\b|suddenly|stopped working|worked (?:before|earlier|fine|until)|was fine|after (?:a while|some time|hours|days|an? update|apt|unattended|upgrade)|intermittent|until\b|lost (?:access|gpu)"
)
_APU_IN_TEXT = re.compile(APU)


def _two_majors(seen: Evidence) -> bool:
    told = {int(match[1]) for match, _ in seen.told.matches(r"^\w*major\w*: (\d{1,3})$")}
    return len(told | {n.major for n in seen.nodes if n.path == "/dev/kfd" and n.major}) > 1


def _rules_majors(seen: Evidence) -> set[int]:
    """Return the major numbers in rules of a device cgroup, of those that the kernel gives away at boot."""
    return {
        int(match[1])
        for body in (seen.log, seen.told)
        for match, _ in body.matches(r"\bc (\d{1,3}):(?:\*|\d{1,3}) r?w?m?\b")
        if 234 <= int(match[1]) <= 254 or 384 <= int(match[1]) <= 511
    }


def _rule_of_another_major(seen: Evidence) -> bool:
    """Whether the rules name such a number, and kfd has another one."""
    majors = {n.major for n in seen.nodes if n.path == "/dev/kfd" and n.major is not None}
    rules = _rules_majors(seen)
    return bool(majors and rules) and majors.isdisjoint(rules)


def _two_with_an_apu(seen: Evidence) -> bool:
    return len(seen.gfx) > 1 and any(_APU_IN_TEXT.fullmatch(gfx) for gfx in seen.gfx)


def _hides_all(seen: Evidence) -> bool:
    masks = [value for name, (value, _) in seen.env.items() if re.fullmatch(_MASKS, name)]
    return any(
        not value.strip()
        or value.strip().startswith("-1")
        or (not value.strip()[0].isdigit() and "gpu-" not in value.lower())
        for value in masks
    )


def _stacked(seen: Evidence) -> bool:
    set_ = {name for name in seen.env if re.fullmatch(_MASKS, name)}
    lower = {"ROCR_VISIBLE_DEVICES"} & set_
    return (
        bool(lower)
        and len(set_) > 1
        and any(value.strip(" \"'") != "0" for name, (value, _) in seen.env.items() if name in set_)
    )


_PROCESSORS_OWN = text(
    r"\bi-?gpu\b|integrated (?:gpu|graphics)|raphael|renoir|cezanne|vega 8\b|(?:ryzen|athlon|a\d{1,2}-\d{4}\w?)\b[^\n]{0,40}\bwith (?:amd )?radeon|granite ridge|\bapu\b[^\n]{0,40}(?:and|plus|\+)"
)
_HIDING_HELPS = anywhere(
    r"hide the i-?gpu|disabl\w{1,3}[^\n]{0,20}(?:i-?gpu|igp\b|integrated)|(?:i-?gpu|igp|integrated (?:gpu|graphics))\b[^\n]{0,30}\bdisabled|(?:hip|cuda|rocr)_visible_devices"
)
_OFF_HELPED = remedy(
    r"(?:disabl\w{1,3}|switch\w{0,3} off|turn\w{0,3} off)[^\n]{0,20}(?:i-?gpu|igp\b|integrated)|(?:i-?gpu|igp|integrated (?:gpu|graphics))\b[^\n]{0,30}\b(?:disabled|off)\b"
)
_NOT_INSIDE = r"/dev/kfd\b[^\n]{0,60}(?:no such file|not found|does not exist|missing|absent|no such node|(?:not|n't)(?: be)? (?:present|there\b|mapped|passed|bound|created|visible|exposed))|\bno /dev/kfd\b[^\n]{0,40}\b(?:in|inside) (?:the |my |this )?(?:container|pod)|\b(?:container|pod|inside)\b[^\n]{0,60}\b(?:no|without|lacks|(?:have|has) no) /dev/kfd\b|\bneither (?:/dev/)?kfd nor\b|kfd driver not loaded\.\s{1,3}if running in a container"
_BAD_INDEX = text(
    r"invalid device ordinal|hiperrorinvaliddevice\b|device ordinal[^\n]{0,30}(?:invalid|out of range)|device >= 0 && device < num_gpus"
)

# Whoever retells it names what was lacking as what helped.
_PASSED_HELPED = all_of(
    text(NO_GPU),
    any_of(
        remedy(
            r"--device[= ]\S{0,20}/dev/kfd\b(?![^\n]{0,200}(?:--group-add|--privileged))|^[^\n]{0,60}\badd\w*[^\n]{0,20} /dev/kfd\b"
        ),
        text(r"\badd(?:ed|ing)? [^\n]{0,20}/dev/kfd\b[^\n]{0,30}\b(?:fix|help|work|solve)"),
    ),
)
_DRI_ALONE = any_of(
    text(r"\bonly (?:maps |passes |mounts )?/dev/dri\b(?![^\n]{0,20}/dev/kfd)"),
    told(r"devices?\b[^\n]{0,60}\b(?:without|but not|and not|lacks?|not) /dev/kfd"),
    all_of(
        text(NO_GPU),
        flag(r"--device=/dev/dri\b"),
        absent(flag(r"--device=/dev/kfd|--device=/dev(?::|$)")),
    ),
)

_KFD_HELPED = all_of(
    flag(r"--device=/dev/dri\b"),
    absent(flag(r"--device=/dev/kfd|--device=/dev(?::|$)")),
    remedy(
        r"(?:^[\w.]+: \W{0,2}|\b(?:add|adds|added|pass|passed|map|mapped|mount|device)\b[^\n]{0,40})/dev/kfd\b"
    ),
)
_NONE_PASSED = all_of(
    text(NO_GPU),
    any_of(
        told(r"^(?:[\w.]*\.)?devices?: (?:\[\]|none|null|empty)"),
        all_of(
            text(r"\b(?:docker|podman|nerdctl)\b[^\n]{0,40}\brun\b[^\n]{0,200} [\w./:-]*rocm"),
            fact(lambda seen: bool(seen.flags)),
            absent(
                flag(
                    r"--device|--privileged|--gpus|amd\.com/gpu|--(?:v|mount|volume)=/dev|--runtime"
                )
            ),
        ),
    ),
)

_PASSED_AND_MISSING = all_of(flag(r"--device=/dev/kfd"), text(PASSED_IS_MISSING))

RULES = (
    Rule(
        kind="kfd-not-mapped",
        symptom="kfd absent",
        needs=any_of(opened("ENOENT", f"{KFD}|{RENDER}|/dev/dri"), text(_NOT_INSIDE), _DRI_ALONE, _KFD_HELPED, _NONE_PASSED, _PASSED_HELPED),
        unless=any_of(text(rf"{NO_NODE}[^\n]{{0,160}}/dev/(?:kfd|dri)|{NO_NODE_BEFORE}/dev/(?:kfd|dri)"), text(r"config_hsa_amd|\bdkms|kernel driver in use|rock module is not loaded|unknown symbol|key was rejected"), text(WSL)),
        signs=(
            Sign(4, "/dev/kfd is not there inside", any_of(opened("ENOENT", KFD), text(_NOT_INSIDE))),
            Sign(5, "the DRM nodes were passed, and /dev/kfd was not", any_of(_DRI_ALONE, _KFD_HELPED)),
            Sign(-3, "it was passed, and the engine's side is said to lack it", _PASSED_AND_MISSING),
            Sign(4, "no GPU is seen, and no node was passed", _NONE_PASSED),
            Sign(5, "no GPU is seen, and passing /dev/kfd mended it", _PASSED_HELPED),
            Sign(2, "a render node is not there inside", opened("ENOENT", RENDER)),
            Sign(3, "the host's driver is loaded", text(r"rock module (?:version \S+ )?is loaded|lsmod[^\n]{0,40}amdgpu|amdgpu[^\n]{0,20}loaded")),
            Sign(-4, "NVIDIA's way was taken to pass GPUs", flag(r"^--gpus|--runtime=nvidia")),
            Sign(2, "no --device was given for it", all_of(fact(lambda seen: bool(seen.flags)), absent(flag(r"--device=/dev/kfd|--device=/dev\b|amd\.com/gpu")))),
            Sign(2, "the container was made with a /dev of its own", text(r"apptainer|singularity|--contain\b|bubblewrap|bwrap|--no-privs|distrobox")),
            Sign(2, "the node is on the host", told(r"^(?:host|on_host|host_[\w.]+)\b[^\n]{0,60}(?:/dev/kfd|kfd)[^\n]{0,30}(?:exist|present|there|yes|0[67])|devices: (?:\[\]|none|null|empty)")),
        ),
        settles=any_of(text(r"rock module (?:version \S+ )?is loaded|apptainer|singularity|\bcontainer|docker|podman|inside|kubectl|\bpod\b"), fact(lambda seen: bool(seen.flags))),
        undecided="whether the node is missing in the container alone: `ls -l /dev/kfd` on the host",
    ),
    Rule(
        kind="stale-device-major",
        symptom="not permitted",
        needs=any_of(_NOT_PERMITTED, opened("ENXIO"), fact(_two_majors), all_of(text(rf"{NO_GPU}|\bkfd\b"), _MAJOR_CHANGED)),
        unless=_OF_32_BITS,
        signs=(
            Sign(3, "the node is there, and opening it is not permitted", _NOT_PERMITTED),
            Sign(5, "the node is there, and no driver has its number", opened("ENXIO")),
            Sign(6, "/dev/kfd has one number here and another one there", any_of(fact(_two_majors), _MAJOR_CHANGED)),
            Sign(4, "the device cgroup allows another number than the node has", fact(_rule_of_another_major)),
            Sign(4, "the container is older than the last boot, or the major number changed", _REBOOT),
        ),
    ),
    Rule(
        kind="cgroup-device-revoked",
        symptom="not permitted",
        needs=any_of(_NOT_PERMITTED, text(r"daemon-reload|systemd[^\n]{0,40}cgroup|native\.cgroupdriver|cgroup driver"), anywhere(r"native\.cgroupdriver")),
        signs=(
            Sign(3, "the node is there, and opening it is not permitted", _NOT_PERMITTED),
            Sign(3, "systemd manages the engine's cgroups and wrote its device rules anew", anywhere(r"daemon-reload|systemd[^\n]{0,40}cgroup|cgroup[- ]?driver|native\.cgroupdriver")),
            Sign(2, "it worked at first", _WORKED_BEFORE),
        ),
    ),
    Rule(
        kind="cgroup-device-denied",
        symptom="not permitted",
        needs=any_of(_NOT_PERMITTED, _TOPOLOGY_REFUSED),
        unless=_OF_32_BITS,
        signs=(
            Sign(4, "the node is there, and opening it is not permitted: the device cgroup does not allow it", _NOT_PERMITTED),
            Sign(4, "KFD hides a GPU whose render node the device cgroup does not allow", _TOPOLOGY_REFUSED),
            Sign(1, "the container is one whose device rules are written by hand", text(r"\blxc\b|proxmox|\blxd\b|incus|systemd-nspawn|\bpve\b")),
            Sign(3, "the rules that are shown do not name it", any_of(text(r"devices\.allow[^\n]{0,60}c 226|devicecgrouprules|device-cgroup-rule|devices\.list|not (?:in|allowed by) (?:the )?(?:device )?cgroup"), told(r"bind[- ]mount[^\n]{0,40}(?:/dev|only)|cgroup[\w.]*: [^\n]{0,60}(?:226|no |denied|not)"))),
            Sign(-3, "it worked at first", _WORKED_BEFORE),
            Sign(-2, "the container is older than the last boot", _REBOOT),
        ),
        undecided="which rule is missing: the major number of kfd in /proc/devices, compared with the container's device rules",
    ),
    Rule(
        kind="cpx-partition-render-nodes",
        needs=text(r"\b[cdtq]px\b|compute_partition|partition"),
        signs=(
            Sign(5, "the GPUs are partitioned", text(r"\b[cdtq]px\b|compute_partition\W|memory_partition\W")),
            Sign(2, "partitions share one PCI address, and tools show the first alone", text(r"partition[^\n]{0,40}n/a|by-path|only (?:indices|index|the first|primary|gpu)|= 0$|renderd?\*? ?\|? ?wc|\b64\b|logical|attachable|\.[1-7]$|:00\.[1-7]\b")),
        ),
        settles=text(r"by-path|n/a|\.[1-7]\b|indices|share"),
        undecided="which render node belongs to which partition: `rocmrun host`",
    ),
    Rule(
        kind="igpu-interference",
        symptom="crash",
        needs=all_of(
            any_of(_OFF_HELPED, text(CRASH), text(r"\bcrash(?:es|ed)?\b|found 2 rocm devices|hang|invalid device function|no kernel image|kernel image is invalid|errorinvalidimage|wrong (?:gpu|device)|device 0")),
            any_of(fact(_two_with_an_apu), _PROCESSORS_OWN, _HIDING_HELPS),
        ),
        signs=(
            Sign(4, "two targets are there, and one is a processor's own GPU", fact(_two_with_an_apu)),
            Sign(4, "a processor's own GPU is enumerated too", _PROCESSORS_OWN),
            Sign(2, "it crashes", any_of(text(CRASH), text(r"\bcrash(?:es|ed)?\b"))),
            Sign(1, "hiding it helps", _HIDING_HELPS),
            Sign(3, "without the processor's own GPU it works", _OFF_HELPED),
            Sign(2, "another device was what helped", all_of(_PROCESSORS_OWN, remedy(r"(?:hip|rocr|cuda)_visible_devices\W{0,4}\d"))),
            Sign(-3, "an override is set", variable("HSA_OVERRIDE_GFX_VERSION.*", r"\d")),
            Sign(-3, "the GPU was reset", text(r"gpu reset|ring \S+ timeout|fence wait")),
            Sign(-4, "one target alone is named, and no processor's own GPU", all_of(fact(lambda seen: len(seen.gfx) == 1), absent(any_of(_PROCESSORS_OWN, text(r"i-?gpu|integrated|\bapu\b"))))),
        ),
        undecided="which device faulted: pass one render node alone, `rocmrun probe PROFILE --gpu discrete`",
        settles=fact(_two_with_an_apu),
    ),
    Rule(
        kind="hip-visible-devices-empty",
        symptom="no gpu",
        needs=any_of(variable(_MASKS), text(_MASK_NAMED), all_of(any_of(_BAD_INDEX, text(NO_GPU)), remedy(_MASK_NAMED))),
        signs=(
            Sign(7, "a program refuses this variable", text(rf"please use (?:either )?\S{{0,10}}_visible_devices (?:instead|or )|conflict\w*[^\n]{{0,12}}_visible_devices|(?:{_MASK_NAMED})[^\n]{{0,60}}(?:not supported|unsupported|invalid|must|conflict|inconsistent)")),
            Sign(5, "an index is not among the devices that are left", _BAD_INDEX),
            Sign(3, "no GPU is left", text(NO_GPU)),
            Sign(3, "another mask, or none, mended it", all_of(text(NO_GPU), remedy(_MASK_NAMED))),
            Sign(2, "a mask of devices is set", any_of(variable(_MASKS), text(_MASK_NAMED))),
            Sign(3, "a mask names nothing: empty, -1 or no number", fact(_hides_all)),
            Sign(3, "masks are stacked: the second counts what the first leaves", fact(_stacked)),
            Sign(2, "the GPUs are there", text(r"rocminfo[^\n]{0,40}(?:lists|shows|finds|works)|name:\s+gfx")),
            Sign(-4, "a node cannot be opened", opened("EACCES|EPERM|ENOENT|EINVAL|ENOMEM")),
        ),
    ),
    Rule(
        kind="smi-restricted-view",
        needs=text(r"rocm-smi|amd-smi|rocm_smi|\bsmi\b"),
        signs=(
            Sign(4, "SMI shows other GPUs than HIP", text(r"(?:rocm|amd)-?_?smi[^\n]{0,80}(?:fewer|incomplete|only|missing|more gpus|not all|all gpus|every gpu|stops|shows? \d|(?:displays?|lists?|reports?|shows?|sees?) (?:both|all|two|three|four|eight|\d+) (?:amd )?gpus)|showtopo|smi[^\n]{0,40}(?:lists|shows) (?:all|only|fewer)")),
            Sign(3, "only some render nodes were passed", any_of(flag(r"--device=/dev/dri/renderd"), text(r"non-?contiguous|subset of|only some|\b(?:cgroup|isolat\w+)\b[^\n]{0,40}\b(?:one|single|a) gpu"))),
            Sign(2, "HIP counts other GPUs", text(r"hip[^\n]{0,40}(?:sees|finds|lists|counts)|device_count")),
            Sign(-4, "a partition mode is set", text(r"\b[cdtq]px\b")),
        ),
    ),
)  # fmt: skip
