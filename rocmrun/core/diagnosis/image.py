"""The image: a torch of another vendor, replaced wheels, libraries, headers and tools that are not in it."""

from rocmrun.core.diagnosis import starts
from rocmrun.core.diagnosis.compilers import (
    CUDA_HEADER_MISSING,
    CUDA_TOOLKIT_MISSING,
    CUDA_TOOLKIT_TOLD,
    DEVELOPMENT_PACKAGES,
    NO_C_COMPILER,
    NO_COMPILER_TOLD,
    NO_HEADER,
    NO_NINJA,
    ROCM_TOOL_MISSING,
    ROCM_TOOL_TOLD,
)
from rocmrun.core.diagnosis.digests import two_digests
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.libraries import (
    CUDA_LIBRARY_MISSING,
    CUDA_LIBRARY_TOLD,
    OLD_SYSTEM_LIBRARY,
    ROCM_LIBRARY,
    ROCM_LIBRARY_MISSING,
    ROCM_LIBRARY_TOLD,
)
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    log,
    remedy,
    text,
    told,
)
from rocmrun.core.diagnosis.telling import lacking
from rocmrun.core.diagnosis.versions import library_of_another_rocm
from rocmrun.core.diagnosis.words import DENIED, NO_GPU, TAG_MOVED

_LINKED_AS_ANOTHER = text(
    rf"\bln -sf? \S{{0,80}}{ROCM_LIBRARY}\S{{0,10}} \S{{0,80}}{ROCM_LIBRARY}\.\d"
)
_PYTHON = r"(?:/[\w.+-]{1,60}){0,8}/?python(?:3(?:\.\d{1,2})?)?"
_AMD_GPU = text(r"\bgfx\d|radeon|instinct|\bamd\b|\bmi\d{2,3}x?\b|\brx ?\d{3,4}|\b\d{4} ?xtx?\b")
_OTHER_VENDOR = text(
    r"\+cu\d{2,3}\b|version\.hip\W{1,8}none|\bhip\W{1,4}none\b|found no nvidia driver|torch not compiled with (?:cuda|rocm|hip)|not compiled with (?:rocm|hip) support|\b(?:torch|wheels?|packages?|binar(?:y|ies))\b[^\n]{0,40}(?:\bnot|n't) (?:been )?(?:compiled|built) (?:with|for|against) (?:rocm|hip)\b|\bcuda(?:'s)? (?:py)?torch\b[^\n]{0,20}\b(?:instead of|rather than|even (?:when|though|if)|although|despite)\b[^\n]{0,30}\brocm\b|nvidia driver on your system|\b\d+\.\d+\S* none$|torch_hip[\w.]*: none|no nvidia driver|\b(?:torch|wheels?)\b[^\n]{0,30}\bcuda\b[^\n]{0,30}\b(?:even (?:when|though|if)|although|despite|instead of|rather than)\b[^\n]{0,20}\brocm\b|cuda driver version is insufficient for cuda|(?:py)?torch\b[^\n]{0,40}\b(?:is|gives|has|got|installs?)\b (?:me )?(?:only )?(?:the |a )?(?:cpu|cuda|nvidia)(?:-only)? (?:version|build|variant|wheel)\b(?! of)|\btorch (?:with|for) cuda\b[^\n]{0,30}\bnot (?:with |for )?rocm|\b(?:grab|install|pull|download|fetch|ship)\w*\b[^\n]{0,30}\b(?:(?:py)?torch[ -](?:cuda|cpu)\b|(?:cuda|nvidia)[ -](?:only )?(?:py)?torch\b|(?:cuda|nvidia) (?:components?|packages?|librar\w+) of (?:py)?torch)|pytorch was compiled without cuda support|libcudart functions unavailable"
)
# An extension that was built for CUDA says which torch it wanted, and which one is there.
_BUILT_FOR_CUDA = text(
    r"\bbuilt for\b[^\n]{0,80}(?:\+cu\d|\bcuda\b)[^\n]{0,80}\(you have [^\n)]{0,40}\+rocm|pytorch \d\S{0,20} with cuda \d{3,5} \(you have \d\S{0,20}\+rocm"
)
# What comes with ROCm's own compiler, whoever else has a clang.
_OWN_COMPILER_ELSEWHERE = text(
    r"'__clang_\w{1,60}\.h' file not found|hip ?-?clang compiler not found|(?:llvm|rocm|hip)[\w./+-]{0,60}/clang(?:\+\+)?\W{1,4}(?:no such file|not found)|can't exec \W?\S{0,80}(?:llvm|rocm|hip)\S{0,40}/clang"
)
_SPACE_SAID = text(
    r"(?<!/)\b(?:paths?|director(?:y|ies)|folders?|names?)\b[^\n]{0,30}\b(?:has|have|with|contains?) (?:an? )?(?:white ?)?spaces?\b(?! left)|\b(?:a |white ?)spaces? in (?:the |its |your |my |this )?(?:\w+ )?(?:path|directory|folder|name)"
)
_SPACE_SHOWN = text(
    r"(?:sys\.prefix|\bprefix|venv|install(?:ed)?(?:_dir|_path)?|python|\bpath|cwd|directory|location)[\w. ]*\W{1,4}['\"]?(?:/[\w.()&+-]+)*/[\w.()&+-]+ +[\w.()&+-](?:(?! /)[^\n'\":(]){0,40}(?<! )/|file \"[^\"\n]* [^\"\n]*/(?:site|dist)-packages|/[\w.-]+ [\w.-]+/[^\n]{0,80}(?:site-packages|lib/python|venv)"
)
# `pip show torch`: wheels for ROCm and for the CPU have a local part, "+rocm7.2".
_DEFAULT_INDEX = all_of(text(r"^name: torch\nversion: \d+\.\d+(?:\.\d+)?$"), _AMD_GPU)
# An index of ROCm's wheels mended what spoke of CUDA.
_ROCM_INDEX_HELPED = all_of(
    text(r"\bcuda\b|nvidia"),
    remedy(
        r"\btorch\b[^\n]{0,120}(?:whl/(?:nightly/)?rocm|repo\.radeon\.com/rocm|rocm\.nightlies)"
    ),
    absent(text(r"hip error|invalid device function|no kernel image")),
)
_BRINGS_ANOTHER = text(
    r"install\w{0,6}[^\n]{0,40}\b(?:cuda|nvidia|cpu)(?:-only)? (?:versions?|builds?|wheels?|variants?) of (?:py)?torch\b|(?:updat|upgrad|reinstall|uninstall)\w{0,4}[^\n]{0,80}\b(?:py)?torch[ -](?:cpu|cuda)\b|(?:py)?torch\b[^\n]{0,30}\b(?:gets?|got|is|was|are|were) (?:replaced|overwritten|re-?installed|swapped)|\b(?:triggers?|causes?|forces?) (?:a |the )?(?:py)?torch (?:to )?re-?install|\binstall\b[^\n]{0,60}\b(?:tries to|wants to|attempts to|will|keeps?)\b[^\n]{0,20}\b(?:download|install|replac)\w*\b[^\n]{0,30}\b(?:other|another|different|newer|older)\b[^\n]{0,20}\btorch\b|(?:replac|overwrit)\w{1,4} (?:the |my |our )?(?:installed |existing |rocm )?(?:py)?torch\b"
)
# An installation or an update came between the torch that worked and this one.
_REPLACED = text(
    r"re-?install\w*[^\n]{0,20}\btorch|(?:install|updat|upgrad)\w+[^\n]{0,80}(?:switch\w*|chang\w*|replac\w*|overw\w+)[^\n]{0,30}(?:cuda|nvidia|cpu|torch)|switch\w* to cuda"
    r"|(?:work(?:ed|ing|s)|was fine|used to work)[^\n]{0,40}\b(?:until|till|before)\b[^\n]{0,40}\b(?:install|updat|upgrad|requirements)|\bafter (?:a |an |the |my |last )?(?:pip3?|uv|conda) (?:pip )?(?:install|sync|upgrade)"
)
_PIP = anywhere(
    r"pip3? install|uv (?:pip|sync|add)|resolv(?:er|ed)|requirements|constraint|default[- ]index|pypi|attempting uninstall: torch|successfully (?:un)?installed [^\n]{0,200}torch-|poetry|conda install|found existing installation: torch|cause_step|dependent package"
)


_COMPILES_NOW = all_of(remedy(DEVELOPMENT_PACKAGES), text(r"compil|\bbuild|header|fatal error"))
# pip builds in an environment of its own, in which there is no torch whatever is installed.
_BUILT_APART = text(
    r"getting requirements to build|preparing metadata|pip-build-env|build_?isolation|--no-build-isolation|subprocess-exited-with-error|get_requires_for_build|build backend"
)
_NO_TORCH = text(
    r"no module named '?torch'?(?![\w.'])|no package metadata was found for torch\s*$|package\(s\) not found: torch\s*$"
)
_TORCH = r"\btorch(?:==|[-: (]{1,3})v?(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?(?:\+\w[\w.]{0,30})?)"


def _rocm_torch_and_another(seen: Evidence) -> bool:
    """Whether a torch of ROCm is told, and one that is none."""
    told_ = {match[1] for body in (seen.log, seen.told) for match, _ in body.matches(_TORCH)}
    of_rocm = {version for version in told_ if "+rocm" in version}
    return bool(of_rocm) and bool(told_ - of_rocm)


_EXCHANGED = all_of(
    fact(_rocm_torch_and_another),
    any_of(_PIP, anywhere(r"pip list|\bpip\b|\buv\b|\bconda\b")),
    absent(_BUILT_FOR_CUDA),
)

RULES = (
    Rule(
        kind="not-rocm-build",
        symptom="torch build",
        needs=any_of(_OTHER_VENDOR, _DEFAULT_INDEX, _ROCM_INDEX_HELPED),
        signs=(
            Sign(4, "this torch came from the default index, which has none for ROCm", _DEFAULT_INDEX),
            Sign(6, "this torch is no ROCm build", _OTHER_VENDOR),
            Sign(4, "it speaks of CUDA, and a torch of ROCm's index mended it", all_of(_ROCM_INDEX_HELPED, absent(_OTHER_VENDOR))),
            Sign(1, "it fails as a CUDA build does without NVIDIA", text(r"nvidia driver|not compiled with cuda|libcuda")),
            Sign(1, "the GPU is AMD's", _AMD_GPU),
            Sign(-3, "an installation put it there", _REPLACED),
            Sign(-8, "it is an extension that wanted another torch", _BUILT_FOR_CUDA),
            Sign(-2, "a wheel was replaced", text(r"attempting uninstall: torch|successfully uninstalled torch|found existing installation: torch")),
        ),
        settles=any_of(_AMD_GPU, text(rf"{NO_GPU}|nvidia driver|not compiled with|libcuda|rocm|\bhip\b")),
        undecided="whether anything fails for it: with a GPU of another vendor this torch is right",
    ),
    Rule(
        kind="python-torch-wheel-overwrote-rocm",
        symptom="torch build",
        needs=any_of(text(r"\+cpu\b|\+cu\d{2,3}\b|version\.hip\W{1,8}none"), _DEFAULT_INDEX, all_of(_OTHER_VENDOR, _REPLACED), _BRINGS_ANOTHER, _EXCHANGED, text(r"uninstall(?:ed|ing)?:? torch|found existing installation: torch")),
        signs=(
            Sign(4, "this torch is the CPU's build", text(r"\+cpu\b")),
            Sign(4, "this torch came from the default index, which has none for ROCm", _DEFAULT_INDEX),
            Sign(2, "this torch is no ROCm build", _OTHER_VENDOR),
            Sign(4, "a package manager replaced it", any_of(_PIP, _REPLACED)),
            Sign(5, "a torch of ROCm was there, and another one came", _EXCHANGED),
            Sign(2, "what is installed brings a torch of another vendor", _BRINGS_ANOTHER),
            Sign(-1, "nothing says for whose GPU", all_of(_BRINGS_ANOTHER, _PIP, absent(_AMD_GPU), absent(_OTHER_VENDOR), absent(_REPLACED))),
            Sign(3, "it did not come so: an installation put it there", all_of(_OTHER_VENDOR, _REPLACED)),
            Sign(2, "a ROCm build was there or expected", anywhere(r"^expected\W[^\n]{0,60}rocm|uninstall[^\n]{0,60}\+rocm|(?:before|was|expected|had|from)[^\n]{0,30}\+rocm|torch-\S{1,30}\+rocm")),
            Sign(-8, "it is an extension that wanted another torch", _BUILT_FOR_CUDA),
            Sign(-5, "what came is of ROCm as well", text(r"successfully installed [^\n]{0,300}\btorch-\d\S{0,12}\+rocm")),
            Sign(-3, "the image came so", anywhere(r"last_good|rebuilt|moving|^tag: ")),
        ),
        undecided="whether a package replaced it or the image came with it: `docker history --no-trunc IMAGE | grep -i pip`",
        settles=any_of(_PIP, _REPLACED),
    ),
    Rule(
        kind="tag-moved",
        symptom="torch build",
        needs=any_of(fact(two_digests), text(r"digest|\btags?\b|:latest|nightly|re-?pull|re-?built|moving"), anywhere(r"last_good|^good: [^\n]{0,40}\bimage\b")),
        signs=(
            Sign(6, "the tag names another image than before", text(TAG_MOVED)),
            Sign(4, "two digests are told for one name", fact(two_digests)),
            Sign(3, "an image of that name worked before", anywhere(r"last_good|^good: [^\n]{0,40}\bimage\b|worked (?:yesterday|last week|before)|after (?:a )?(?:re-?)?pull|overnight|since (?:the )?(?:last )?pull")),
            Sign(2, "the tag is one that moves", text(r":latest\b|nightly|(?:moving|floating|mutable) tag|\bthe latest [^\n]{0,20}\bimage\b")),
            Sign(3, "a digest in place of the tag helped", all_of(text(r"regress|broke|fail|crash|differ"), remedy(r"\b(?:pin\w*|by|to (?:a|the|its))\b[^\n]{0,20}\bdigest"))),
            Sign(-4, "what is in the image now is known to be wrong", _OTHER_VENDOR),
            Sign(-3, "the registry has no such tag", all_of(text(r"manifest unknown|not found"), absent(text(TAG_MOVED)))),
        ),
    ),
    Rule(
        kind="missing-rocm-libs",
        needs=any_of(text(rf"{ROCM_LIBRARY_MISSING}|{ROCM_LIBRARY_TOLD}"), _LINKED_AS_ANOTHER),
        signs=(
            Sign(7, "a library of ROCm is not found", text(ROCM_LIBRARY_MISSING)),
            Sign(5, "a library of ROCm is said to be missing", all_of(text(ROCM_LIBRARY_TOLD), absent(text(ROCM_LIBRARY_MISSING)))),
            Sign(-6, "the system's library is too old, and ROCm's is there", text(OLD_SYSTEM_LIBRARY)),
            Sign(1, "it is a library of another ROCm", library_of_another_rocm),
            Sign(-7, "it is found, and wants another libc than the image has", text(r"version \W?glibc\w*_[\d.]+\W? not found")),
            Sign(5, "a link gives a library of ROCm the name of another version", _LINKED_AS_ANOTHER),
            Sign(-4, "it lies where only root may look", text(r"/root/")),
        ),
    ),
    Rule(
        kind="missing-python",
        needs=text(r"python"),
        signs=(
            Sign(7, "an engine, an init, a shell or a program finds no Python to start", text(rf"{starts.not_found(_PYTHON)}|the probe needs python, and ")),
            Sign(4, "it is said that the image has no Python", text(lacking(rf"{_PYTHON}(?: interpreter)?"))),
            Sign(4, "a script's first line names a program that is not there", text(r"cannot execute: required file not found")),
            Sign(-4, "it is the shortcut of Windows to its shop", text(r"microsoft store")),
        ),
    ),
    Rule(
        kind="missing-torch",
        needs=any_of(told(r"^missing_module: torch$"), text(r"\bbuild: torch[,:] [^\n]{0,200}\(python \d[\w.+]{0,20}\) has no torch$"), _NO_TORCH),
        signs=(
            Sign(7, "the probe's Python finds no module torch", any_of(text(r"\bbuild: torch[,:] [^\n]{0,200} has no torch$"), told(r"^missing_module: torch$"))),
            Sign(6, "a Python finds no module torch", _NO_TORCH),
            Sign(-5, "it is an environment that pip makes for a build alone", _BUILT_APART),
            Sign(1, "another Python of the image has one", told(r"^(?:torch|python)_elsewhere: /")),
        ),
    ),
    Rule(
        kind="cuda-only-extension",
        needs=any_of(text(rf"{CUDA_LIBRARY_MISSING}|undefined symbol[^\n]{{0,160}}(?:cuda|cublas|cudnn)|{CUDA_TOOLKIT_MISSING}|{CUDA_HEADER_MISSING}|{CUDA_LIBRARY_TOLD}|{CUDA_TOOLKIT_TOLD}"), _BUILT_FOR_CUDA),
        signs=(
            Sign(7, "an extension wants a library of CUDA", text(CUDA_LIBRARY_MISSING)),
            Sign(5, "a library or compiler of CUDA is said to be missing", all_of(text(rf"{CUDA_LIBRARY_TOLD}|{CUDA_TOOLKIT_TOLD}"), absent(text(CUDA_LIBRARY_MISSING)))),
            Sign(-6, "the system's library is too old, and CUDA's is there", text(OLD_SYSTEM_LIBRARY)),
            Sign(6, "an extension wants a symbol of CUDA", text(r"undefined symbol[^\n]{0,160}(?:cuda|cublas|cudnn)")),
            Sign(5, "an extension wants CUDA's compiler", text(CUDA_TOOLKIT_MISSING)),
            Sign(6, "what is compiled wants a header of CUDA", text(CUDA_HEADER_MISSING)),
            Sign(6, "it says that it was built for a torch of CUDA", _BUILT_FOR_CUDA),
            Sign(-3, "it is bitsandbytes", text(r"bitsandbytes")),
            Sign(-6, "it is NVIDIA's hook of the engine", text(r"nvidia-container")),
        ),
    ),
    Rule(
        kind="image-missing-headers",
        symptom="compile",
        needs=any_of(text(rf"no such file|hiprtc_error_compilation|{NO_HEADER}|{NO_C_COMPILER}|{NO_NINJA}|{NO_COMPILER_TOLD}"), _COMPILES_NOW),
        signs=(
            Sign(6, "a header is not in the image", text(NO_HEADER)),
            Sign(6, "no C compiler is in the image, or not what it links with", text(NO_C_COMPILER)),
            Sign(5, "ninja or make, which starts the compiler, is not in the image", text(NO_NINJA)),
            Sign(4, "a compiler or headers are said to be missing", all_of(text(NO_COMPILER_TOLD), absent(text(rf"{NO_C_COMPILER}|{NO_HEADER}")))),
            Sign(4, "a package with a compiler or headers mended it", _COMPILES_NOW),
            Sign(1, "a compile at run time failed", text(r"hiprtc_error_compilation|error generated when compiling|buildhip|compile failed")),
            Sign(-6, "what is missing belongs to ROCm's compiler, which is looked for in another directory", _OWN_COMPILER_ELSEWHERE),
            Sign(-5, "what is missing is CUDA's", text(CUDA_HEADER_MISSING)),
        ),
    ),
    Rule(
        kind="image-toolchain-path",
        symptom="compile",
        needs=any_of(text(rf"llvm_path|hip_clang_path|hip_path|rocm_path|rocm_home|device[- ]lib|amdgcn|{ROCM_TOOL_MISSING}|{ROCM_TOOL_TOLD}"), _OWN_COMPILER_ELSEWHERE),
        signs=(
            Sign(6, "a tool of ROCm's compiler is not where it is looked for", text(ROCM_TOOL_MISSING)),
            Sign(4, "a tool of ROCm is said to be missing", all_of(text(ROCM_TOOL_TOLD), absent(text(ROCM_TOOL_MISSING)))),
            Sign(6, "ROCm's compiler, or a header of its own, is not where it is looked for", _OWN_COMPILER_ELSEWHERE),
            Sign(3, "a variable names a directory that is not there", text(r"(?:llvm|hip|rocm|device_lib|hip_device_lib|hip_clang)_(?:path|home)\b[^\n]{0,120}(?:not|missing|wrong|no such|does not)")),
            Sign(1, "the variable is set in the image", told(r"(?:llvm|hip|rocm)_path")),
        ),
    ),
    Rule(
        kind="root-only-paths",
        needs=text(r"/root/"),
        signs=(
            Sign(5, "a library is not found, and what belongs to it lies below /root", all_of(log(r"cannot open shared object"), told(r"/root/"))),
            Sign(6, "a library or module lies below /root, which others may not enter", text(rf"/root/[^\n]{{0,160}}(?:\.so\b|\.py\b|lib\w*/)[^\n]{{0,60}}(?:cannot open shared object|no such file|{DENIED}|not found)|(?:cannot open shared object|can't open file|{DENIED})[^\n]{{0,60}}/root/[^\n]{{0,160}}(?:\.so\b|\.py\b|lib\w*/)")),
            Sign(3, "something below /root may not be used", text(rf"/root/[^\n]{{0,160}}{DENIED}|{DENIED}[^\n]{{0,120}}/root/")),
            Sign(2, "the process is not root inside", text(r"non-?root|--user|uid=[1-9]|container_user: (?!root)")),
            Sign(-3, "a program is what may not be started", text(r"exec: |exec \S{0,60}permission denied")),
            Sign(-4, "it is a cache", text(r"/root/\.(?:cache|triton|config|miopen|local(?!/(?:share/(?:uv|pipx|mise|pyenv)|bin|lib)))[^\n]{0,120}(?:writ|permission|cache)")),
        ),
    ),
    Rule(
        kind="path-with-space",
        symptom="arch",
        needs=any_of(_SPACE_SAID, _SPACE_SHOWN),
        signs=(
            Sign(5, "a directory on the way is said to have a space in its name", _SPACE_SAID),
            Sign(5, "Python is installed below a directory with a space in its name", _SPACE_SHOWN),
            Sign(3, "no kernel is found", text(r"no kernel image|invalid device function|nobinaryforgpu")),
        ),
    ),
)  # fmt: skip
