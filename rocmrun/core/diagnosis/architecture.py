"""Code for the GPU: targets that an image lacks, and overrides that claim another GPU."""

import re

from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    remedy,
    text,
    told,
    variable,
)
from rocmrun.core.diagnosis.versions import target_newer_than_rocm
from rocmrun.core.diagnosis.words import ATTENTION, CRASH, FAULT, NO_GPU

_FAILED_TO_RUN = (
    r"invalid device function|hiperrornobinaryforgpu|hiperrorinvaliddevicefunction|hiperrorinvalidkernelfile|hiperrorsharedobjectinitfailed|hiperrornotfound|no kernel image|unable to find code object|no compatible code objects?|no binary for gpu"
    r"|tensilelibrary\S{0,60}[^\n]{0,80}(?:illegal|no such|not found|could not|cannot)|cannot read [^\n]{0,160}tensile|illegal seek|could not load [^\n]{0,80}tensile|(?:no|missing) (?:code objects?|kernels?) for gfx"
)
# hipErrorInvalidDeviceFunction, hipErrorInvalidImage, hipErrorNoBinaryForGpu, hipErrorInvalidKernelFile: what has only numbers.
_NUMBERED = r"\bhip(?: ?error|module\w{1,20}|getlasterror|launchkernel)\b[^\n]{0,60}?(?:error|code|status|returned|failed)?\W{0,4}(?:\bcode )?\b(?:98|200|209|218)\b(?![.:%/]?\d)(?! ?(?:[mg]i?b|ms|us|%))"
# A program's own list of targets, in which this one is not.
_NOT_LISTED = (
    r"cannot find co in the bundle|device kernel image is invalid|couldn't find binary for (?:file|ptr)"
    # rocBLAS, hipBLASLt
    r"|could not initialize tensile library|no paths matched [^\n]{0,160}gfx|no rocblas support for gfx"
    # ollama, TensorFlow, aiter, Text Generation Inference
    r"|amdgpu is not supported \(supported types|the supported amdgpu versions are|unknown gpu architecture: gfx|rocm capability \d{1,2} \d{1,2} is not supported"
    # clang and LLVM
    r"|unknown target cpu 'gfx|unsupported hip gpu architecture|cannot select: intrinsic %llvm\.amdgcn|hip_error_nobinaryforgpu|invalid target id 'gfx|'gfx\w{2,8}' is not a recognized processor|cannot find rocm device library for gfx"
    # the runtime's own
    r"|device id 0x\w{1,4} is not supported in libhsakmt|hsa_override_gfx_version may be needed"
)
_NO_CODE = text(
    rf"{_FAILED_TO_RUN}|{_NUMBERED}|{_NOT_LISTED}"
    r"|(?:gfx\w+|(?<!model )\barch\w*)[^\n]{0,60}(?:not (?:in|among|supported|compiled|built)|unsupported|is not supported)|not (?:compiled|built) (?:for|with) [^\n]{0,40}(?:gfx|arch)|not compatible with the current pytorch|hipblaslt[^\n]{0,60}unsupported arch"
    r"|\b(?:no|without|lacks?|missing) (?:\w+ ){0,2}gfx\w{2,8} (?:kernels?|code|support|files?|binar\w{1,4}|targets?)|\b(?:no|without|lacks?|missing) (?:\w+ ){1,3}for gfx\w{2,8}|gfx\w{2,8}\b[^\n]{0,40}\bno longer supported|unsupported (?:target|gpu|arch\w*)\b[^\n]{0,20}\bgfx\w|does(?: not|n't) support [^\n]{0,20}\bgfx\w|support for gfx\w{2,8} (?:was |is |has been )?(?:dropped|removed|missing)"
)
_OF_ROCM_OR_TORCH = r"hipblaslt|rocblas|tensile|get_arch_list|current pytorch"
_ISA = text(r"invalid_isa|0x100f|instruction set architecture is invalid")
_GFX = r"gfx(?:[789][0-9][0-9a-f]|1[0-2][0-9a-f]{2})\b"
_UNREADABLE = text(
    r"invalid hsa_override_gfx_version|hsa_override_gfx_version(?:_\d)? \S{0,40} ?is invalid"
)
_OVERRIDE = any_of(
    variable(r"HSA_OVERRIDE_GFX_VERSION(?:_\d+)?"),
    told(r"^override"),
    text(
        r"hsa_override_gfx_version(?:[= :]+| (?:is |was )?(?:set )?to )\S*\d|hsa_override_gfx_version\b[^\n]{0,20}\bset to\b|\boverrid\w{1,4} (?:it )?(?:to|with) [^\n]{0,30}\b(?:gfx|isa\b)"
    ),
)
# What claiming another GPU mends is code that is there for that one alone.
_OVERRIDE_HELPED = all_of(
    remedy(r"hsa_override_gfx_version\W{0,4}\d"),
    absent(_OVERRIDE),
    any_of(_NO_CODE, text(rf"{CRASH}|{FAULT}|{NO_GPU}")),
)
# The code is there, and ran on another device than it is for.
_OTHER_DEVICE_HELPED = remedy(r"(?:hip|rocr|cuda)_visible_devices\W{0,4}\d")
# Without it the fault went away.
_REMOVED = any_of(
    remedy(r"\b(?:remov|unset|without|drop|delet|clear)\w{0,4}\b[^\n]{0,30}hsa_override"),
    text(
        r"\b(?:remov|unset|without|clear)\w{0,4}\b[^\n]{0,30}hsa_override\w*[^\n]{0,40}\b(?:works|worked|fixes|fixed|helps|helped|is fine)\b"
    ),
)

# What a build was made for, and which GPU there is.
_TARGETS = r"(?:get_arch_list|pytorch_rocm_arch|amdgpu_targets|\bgpu_targets|hip_architectures|\bgpu_archs)[^\n.]{0,300}"
_GPU = r"^(?:\w{1,20}[._ ])?(?:gpus?|device|card|target)\b[^\n]{0,80}?\b(gfx\w{2,8})\b|(?:run|runs|running|found device|on a|card|gpu)\b[^\n]{0,20}\b(gfx\w{2,8})\b"


def _built_for(seen: Evidence, *, this_gpu: bool) -> bool:
    """Whether a list of targets is told and a GPU beside it, which is in the list or not."""
    listed: set[str] = set()
    named: set[str] = set()
    for body in (seen.log, seen.told):
        listed |= {
            gfx for m, _ in body.matches(_TARGETS) for gfx in re.findall(r"gfx\w{2,8}", m[0])
        }
        named |= {gfx for m, _ in body.matches(_GPU) for gfx in m.groups() if gfx}
    return bool(listed and named) and (named <= listed if this_gpu else not named & listed)


def _undotted(seen: Evidence) -> bool:
    return any(
        re.match(r"HSA_OVERRIDE_GFX_VERSION", name)
        and not re.fullmatch(r"\d+\.\d+\.\d+[\s\w]*.*", value.strip())
        for name, (value, _) in seen.env.items()
    )


def _another_family(seen: Evidence) -> bool:
    """Whether the override names another major version than every GPU that is told."""
    claimed = {
        int(found[1])
        for name, (value, _) in seen.env.items()
        if re.match(r"HSA_OVERRIDE_GFX_VERSION", name)
        and (found := re.match(r"\D{0,2}(\d{1,2})\.\d", value))
    }
    keys = rf"^(?:\w+_)?(?:gpus?|gfx|arch|device|target)\w*: [^\n]*?({_GFX})"
    named = [match[1] for match, _ in seen.told.matches(keys)] or list(seen.gfx)
    return bool(claimed and named) and claimed.isdisjoint(int(gfx[3:-2]) for gfx in named)


def _emptied(seen: Evidence) -> bool:
    return any(
        re.match(r"HSA_OVERRIDE_GFX_VERSION", name) and not value.strip()
        for name, (value, _) in seen.env.items()
    )


RULES = (
    Rule(
        kind="arch-not-in-image",
        symptom="arch",
        needs=any_of(_NO_CODE, fact(lambda seen: _built_for(seen, this_gpu=False)), _OVERRIDE_HELPED, all_of(target_newer_than_rocm, any_of(text(CRASH), text(FAULT)))),
        unless=all_of(_OVERRIDE, _ISA),
        signs=(
            Sign(6, "a library or torch has no code for this GPU", _NO_CODE),
            Sign(6, "the build was made for other targets than the GPU's", all_of(fact(lambda seen: _built_for(seen, this_gpu=False)), absent(_NO_CODE))),
            Sign(4, "it works where another GPU is claimed, whose code is there", all_of(_OVERRIDE_HELPED, absent(_NO_CODE))),
            Sign(-4, "on another device it works", _OTHER_DEVICE_HELPED),
            Sign(-6, "the library is the host's, which was bound without its files", text(r"/\.singularity\.d/libs/rocblas")),
            Sign(1, "the GPU's target is named", fact(lambda seen: bool(seen.gfx))),
            Sign(2, "this ROCm is older than the first for which AMD lists the target", target_newer_than_rocm),
            Sign(-6, "it is one operator's own list of targets", any_of(text(rf"gfx\w+[^\n]{{0,60}}(?:not |in|un)(?:supported|valid)[^\n]{{0,40}}(?:{ATTENTION})"), all_of(text(ATTENTION), absent(text(rf"{_FAILED_TO_RUN}|{_NUMBERED}|{_NOT_LISTED}")), absent(text(_OF_ROCM_OR_TORCH))))),
            Sign(-3, "a processor's own GPU is there too, for which the code may be missing", all_of(text(r"kernel image is invalid"), text(r"\bi-?gpu\b|integrated"))),
            Sign(-3, "an override claims another GPU", all_of(_OVERRIDE, absent(text(r"illegal seek|get_arch_list")))),
        ),
        undecided="which library lacks it: `python3 -c 'import torch; print(torch.cuda.get_arch_list())'`, and the files in /opt/rocm/lib/rocblas/library",
    ),
    Rule(
        kind="hsa-override-wrong",
        symptom="arch",
        needs=any_of(_UNREADABLE, all_of(fact(_emptied), text(rf"{NO_GPU}|out_of_resources")), all_of(any_of(_OVERRIDE, _ISA, _REMOVED), any_of(_NO_CODE, _ISA, text(CRASH), text(FAULT), text(r"hang|nan\b|garbage|wrong result|shows gfx"), text(r"\b(?:forc|overrid|override)\w*\b[^\n]{0,80}\b(?:wrong|harmful)\b"), all_of(fact(_another_family), text(rf"{NO_GPU}|fall(?:s|ing)? ?back|gpu resets?"))))),
        signs=(
            Sign(4, "HSA_OVERRIDE_GFX_VERSION claims another GPU", _OVERRIDE),
            Sign(2, "it went away without the override", _REMOVED),
            Sign(7, "the runtime cannot read the override, and takes no GPU for the one that is there", _UNREADABLE),
            Sign(4, "no GPU that is told is of the family that it claims", fact(_another_family)),
            Sign(3, "it is said to be another one than the GPU's", all_of(_OVERRIDE, absent(fact(_another_family)), text(r"\b(?:different|another|other|wrong|incompatible) (?:gfx )?(?:version|target|isa|family)s?\b[^\n]{0,20}\b(?:than|hardware|gpu)|\bincompatible gfx|\b(?:forc|overrid|override)\w*\b[^\n]{0,80}\b(?:wrong|unnecessary|not needed|harmful)\b"))),
            Sign(3, "it is set to nothing, which is not the same as not set", fact(_emptied)),
            Sign(-10, "it fails without the override too", anywhere(r"without[^\n]{0,20}(?:override|hsa_override\w*)[^\n]{0,120}\b(?:same|still|too)\b|\b(?:same|still)\b[^\n]{0,60}without[^\n]{0,20}override")),
            Sign(4, "code of another instruction set was run", _ISA),
            Sign(3, "a kernel faulted", text(FAULT)),
            Sign(2, "code is missing all the same, or it crashes", any_of(_NO_CODE, text(CRASH))),
            Sign(2, "the tool shows another target than the GPU has", anywhere(r"(?:rocminfo|runtime\w*|shows|reports)[^\n]{0,30}gfx\w+|left over|right_value|wrong family|another card")),
            Sign(2, "its form is not MAJOR.MINOR.STEPPING", fact(_undotted)),
            Sign(-4, "a processor's own GPU is named too", text(r"\bi-?gpu\b|integrated|vega 8\b")),
        ),
        settles=any_of(_OVERRIDE, _UNREADABLE, _REMOVED),
    ),
)  # fmt: skip
