"""Paths that hardening takes away: caches, temporary files, places to compile in, programs on PATH."""

import re

from rocmrun.core.diagnosis import starts
from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.denials import CAPABILITY_HELPED
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.homes import AT_THE_ROOT, NO_ACCOUNT, NO_HOME, NO_HOME_TOLD
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    log,
    remedy,
    text,
    told,
    unquoted,
    variable,
)
from rocmrun.core.diagnosis.refused import REFUSED, refused, refused_at, refused_paths
from rocmrun.core.diagnosis.telling import NOT_WRITTEN
from rocmrun.core.diagnosis.words import (
    CACHE,
    CRASH,
    DENIED,
    ENDED_137,
    NO_SPACE,
    OOM_KILLED,
    READ_ONLY,
)

_CACHE_REFUSED = refused_at(
    CACHE, rf"{CACHE}[^\n]{{0,160}}{REFUSED}|{REFUSED}[^\n]{{0,160}}{CACHE}"
)
# Whose cache it is, or where it lies: the word alone says neither.
_LIBRARY_REFUSED = text(
    rf"^(?=[^\n]*(?:/\S*cache|miopen|triton|inductor|numba|matplotlib|mplconfig|huggingface|hf_home|torch_extensions|vllm))[^\n]*{REFUSED}"
)
# Whoever retells it says which mode it is that something fails in.
_ROOT_TOLD_READ_ONLY = all_of(
    log(
        r"read-?only[ -](?:root ?)?(?:fs|file ?system)\b|\b(?:fs|file ?system|rootfs|root) is (?:mounted )?read-?only|readonlyrootfilesystem\W{1,4}(?:is |set )*(?:to )?(?:true|enabled)"
    ),
    log(
        r"crash\w*|fail\w*|\berrors?\b|not permitted|cannot|can't|unable|(?:does not|doesn't|won't|will not) (?:start|run|work)"
    ),
)
# Whether the root of the container is mounted read-only, /tmp with it.
_ROOT_READ_ONLY = any_of(
    flag(r"^--read-only"),
    told(r"read_?only_?root(?:_?file_?system|fs)?\W{1,4}true|^read_?only: true"),
)
_ROOT_TOLD = text(
    r"\bwrit\w{1,4}\b[^\n]{0,30} /(?:app|usr|srv|workspace|code|etc|var|opt)\b[^\n]{0,60}\bread-?only\b|\bread-?only root ?(?:fs|file ?system)?\b[^\n]{0,80}\bwrit\w{1,4} (?:to |in )?/(?:app|usr|srv|workspace|code|etc|var|opt)\b"
)
# What a library keeps for its user, whatever it is called; at the root directory it is HOME that is wrong.
_HIDDEN = all_of(
    refused(r"/[^/]+(?:/[^/]+)*/\.(?!cache\b)[a-z][\w-]*(?:/|$)"), absent(_CACHE_REFUSED)
)
_PACKAGES = r"(?:site|dist)-packages/"
_NOT_MADE = rf"(?:permission denied|errno 13\b|read-only file ?system|errno 30\b|no such file or directory|not writ(?:able|eable)|{NOT_WRITTEN})"
_JIT = rf"{_NOT_MADE}[^\n]{{0,60}}{_PACKAGES}[^\n]{{0,100}}(?:jit|aiter|build|csrc|kernels?|cubins?|hsaco|\.lock|codegen|_cache|compiled|autotune)|{_PACKAGES}[^\n]{{0,120}}(?:jit|aiter|build|csrc|kernels?|cubins?|hsaco|codegen|compiled|autotune)[^\n]{{0,80}}{_NOT_MADE}"
_SQLITE = text(
    r"unable to open database file|disk i/o error|attempt to write a readonly database|readonly database|database (?:is )?locked|sqlite[^\n]{0,60}(?:error|fail)"
)
# Files that MIOpen keeps for its user, and cannot write.
_MIOPEN_FILE = text(
    r"file is unwritable: |failed to store record to find-db|cannot open database file:|error creating file <[^\n>]{1,300}> for locking"
)
# Whoever retells it names no path, and which place for the cache helped.
_OTHER_CACHE_HELPED = all_of(
    text(
        r"\b(?:cannot|can't|could not|couldn't|fails? to|unable to) (?:be )?(?:writ|build|built|creat|compil|stor|sav)"
    ),
    remedy(r"\bcache\b[^\n]{0,40}\bwrit(?:able|eable)|\bwrit(?:able|eable)\b[^\n]{0,40}\bcache"),
)
# What says so in words of its own: transformers, fontconfig, triton.
_CACHE_SAID = text(
    r"check cache directory permissions|no writable cache directories|could not create or locate cache dir"
)
_CACHE_VARIABLE = re.compile(
    r"CACHE|HF_HOME|MIOPEN_USER_DB|MPLCONFIGDIR|TORCH_EXTENSIONS_DIR|TORCH_HOME|NUMBA"
)
# A path in the installed packages that a library, and not an installer, wants to make.
_INTO_PACKAGES = any_of(
    refused(rf".*{_PACKAGES}"),
    text(
        rf"\bwrit\w{{1,4}} (?:in)?to [^\n]{{0,40}}(?:site|dist)-packages\b[^\n]{{0,80}}{_NOT_MADE}"
    ),
)
_INSTALLER = text(
    r"could not install packages|\bpip3? (?:install|wheel)|installing collected|attempting uninstall|\buv (?:pip|sync|add)|(?:conda|mamba|poetry) (?:install|add)|easy_install|setup\.py install"
)
# Whoever retells it names the directory, and whose rights on it helped.
_PACKAGES_OPENED = all_of(
    text(r"(?:site|dist)-packages\b"),
    text(r"non-?root|arbitrary (?:openshift )?uids?|\buid\b|another user"),
    unquoted(remedy(r"group-?write|writ(?:able|eable)|\bown(?:er|ed|ership)|chown|chgrp")),
)
# Of a program or a script, and of nothing that is only read.
_MODE_HELPED = all_of(
    text(r"\bpermission"),
    text(r"\bscript|entry-?point|\bbinar(?:y|ies)\b|\bexecut\w+"),
    unquoted(remedy(r"chmod (?:[ua]?\+r?x|0?[75]55)\b")),
)
# The engine makes a missing source of a mount on the host, and nothing of it is in the container.
_MOUNT_SOURCE = text(r"creating mount source path")
_CACHE_IN_MEMORY = any_of(
    told(r"cache[\w.]*: [^\n]{0,60}(?:\bmemory\b|tmpfs|/dev/shm)"),
    variable(r"\w*CACHE\w*|HF_HOME|TORCH_HOME|TORCH_EXTENSIONS_DIR", r"/dev/shm"),
)
# Where images keep programs; a cache that a library makes is below HOME or /tmp.
_OWN_TREE = (
    rf"{READ_ONLY}[^\n]{{0,40}}['\" ]/(?:app|usr|srv|workspace|code|etc|opt/(?!rocm))/?[^\n]*"
)
# What is made below /tmp and refused there; a cache that lies there is another's.
_TMP_READ_ONLY = all_of(
    text(READ_ONLY),
    refused(rf"/(?:var/)?tmp(?:/(?![^\n]*{CACHE})[^\n]*)?$"),
    absent(_CACHE_REFUSED),
)
_NO_TMP = (
    rf"temp_directory_path|no usable temporary directory|(?:no such file or directory|not a directory|does not exist|cannot create|cannot access)\W{{1,4}}/tmp(?:['\"/ ]|$)|/tmp['\"]?: cannot open: no such|/tmp['\"]? is (?:read-only|not writable)|/tmp['\"]?\W{{0,3}}(?:: )?(?:no such file|not a directory|does not exist|is missing)|tmpdir[^\n]{{0,60}}(?:missing|does not exist|no such|not a directory|not writable|invalid)|mk[sd]temp[^\n]{{0,60}}(?:no such file|fail)|no \S{{0,4}}/tmp"
    # mktemp, shells, compilers, Go, Node, perl, MIOpen
    rf"|mktemp: [^\n]{{1,200}}(?:no such file|{READ_ONLY}|{DENIED})|cannot create temp file for here-document|unable to make temporary file|cannot create temporary file in |creating work dir: (?:stat|mkdir) /[^\n]{{0,60}}(?:no such file|{READ_ONLY}|{DENIED})|(?:no such file or directory|{READ_ONLY}|permission denied), mkdtemp|parent directory \(/(?:var/)?tmp/?\) (?:does not exist|is not writable)|failed to create temp file: /"
)
_MEMORY_DIRECTORY = variable("TMPDIR", r"/dev/shm")
_PROGRAM = r"(?!/tmp/)(?!/dev/)[\w./+-]{1,160}"
_SHELL_RAN_TMP = rf"\b(?:ba|da|z)?sh: (?:(?:line )?\d{{1,4}}: )?(?:/var)?/tmp/\S{{1,160}}: {DENIED}"
_CARGO_REFUSED = all_of(
    text(r"could not execute process `/(?:var/)?tmp/[^\n]{0,200}\(never executed\)"), text(DENIED)
)


def _below_a_cache(seen: Evidence) -> bool:
    """Whether what was refused lies in a directory that a variable names as a cache."""
    places = [
        value.strip().rstrip("/").lower()
        for name, (value, _) in seen.env.items()
        if _CACHE_VARIABLE.search(name) and value.strip().startswith("/")
    ]
    return any(
        place and re.search(rf"['\" \[(]{re.escape(place)}/", match[0])
        for place in places
        for match, _ in seen.log.matches(rf"^[^\n]*{REFUSED}[^\n]*$")
    )


def _looked_for_along_path(seen: Evidence) -> Quotes | None:
    """Return the lines that refuse a program by its bare name, and nothing else that is done with a file."""
    found = [
        each.line
        for each in refused_paths(seen)
        if re.match(
            r"(?!rlimit_)(?!.*\.(?:so|py|pyc|whl|json|txt|lock|db|log|tmp)\b)[\w.+-]+$", each.path
        )
        and not re.search(
            r"\b(?:insert|open|stat|create|remove|access|read|write|copy|move|delete|touch|make|change|load)\b",
            each.line.lower.partition(each.path)[0],
        )
    ]
    return tuple(found[:3]) or None


RULES = (
    Rule(
        kind="readonly-cache",
        symptom="cache",
        needs=any_of(fact(_below_a_cache), _CACHE_REFUSED, _HIDDEN, _SQLITE, _MIOPEN_FILE, _CACHE_SAID, _OTHER_CACHE_HELPED, text(r"no locator available|cannot cache function|mplconfigdir|miopenstatusunknownerror|miopen[^\n]{0,40}(?:permission|read-only)|temporary cache directory|triton_cache_dir|cache_dir|write in your cache")),
        signs=(
            Sign(8, "it lies in a directory that a variable names as a cache", fact(_below_a_cache)),
            Sign(6, "a directory for compiled kernels or downloads cannot be written", _CACHE_REFUSED),
            Sign(6, "a hidden directory of a home may not be made", _HIDDEN),
            Sign(4, "a library warns that its cache cannot be written, and may go on", text(r"problem when trying to write in your cache")),
            Sign(4, "a database file cannot be written", _SQLITE),
            Sign(5, "MIOpen cannot write a file that it keeps for its user", _MIOPEN_FILE),
            Sign(6, "a library says that its cache cannot be written", _CACHE_SAID),
            Sign(2, "it is MIOpen's", text(r"miopen")),
            Sign(6, "numba finds no place to keep what it compiled", text(r"no locator available(?! for file '<)|cannot cache function(?![^\n]{0,200}'<)")),
            Sign(6, "matplotlib finds no directory that it may write", text(r"matplotlib[^\n]{0,200}(?:not a writable|temporary cache|mplconfigdir)|mplconfigdir[^\n]{0,80}writable")),
            Sign(3, "MIOpen gave up without a reason", all_of(text(r"miopenstatusunknownerror|miopenstatusinternalerror"), absent(text(r"miopen error: \S{0,200}\.cpp:\d+: (?![^\n]{0,80}(?:sqlite|database|\bdb\b|cache|permission))[a-z]")))),
            Sign(2, "nothing could be kept, and another place for the cache helped", _OTHER_CACHE_HELPED),
            Sign(3, "a writable directory helps", any_of(remedy(r"writable|cache_dir|user_db_path"), remedy(r"miopen_(?:user_db|custom_cache)"))),
            Sign(-10, "HOME is the root directory", AT_THE_ROOT),
            Sign(-4, "there is no home", NO_HOME_TOLD),
            Sign(-10, "the account has no home", NO_ACCOUNT),
            Sign(-4, "it is inside the installed packages", text(_JIT)),
            Sign(-10, "it is a path of the host that the engine was to make", _MOUNT_SOURCE),
            Sign(-4, "there is no temporary directory", text(_NO_TMP)),
            Sign(-4, "it is full, not read-only", text(rf"{CACHE}[^\n]{{0,120}}{NO_SPACE}|{NO_SPACE}[^\n]{{0,120}}{CACHE}")),
        ),
    ),
    Rule(
        kind="readonly-rootfs",
        symptom="cache",
        needs=any_of(text(READ_ONLY), _ROOT_TOLD, _ROOT_TOLD_READ_ONLY),
        signs=(
            Sign(4, "something fails where the root is read-only", all_of(_ROOT_TOLD_READ_ONLY, absent(any_of(_ROOT_TOLD, text(READ_ONLY))))),
            Sign(5, "the image's own file system is read-only", text(READ_ONLY)),
            Sign(5, "the path is in the program's own tree", text(_OWN_TREE)),
            Sign(4, "it is said that a path of the image is read-only, or its root", all_of(_ROOT_TOLD, absent(text(READ_ONLY)))),
            Sign(1, "--read-only is set", any_of(_ROOT_READ_ONLY, told(r"read_?only|readonlyrootfilesystem"))),
            Sign(1, "the root is read-only, and no path is named", all_of(_ROOT_READ_ONLY, absent(refused(r".")), absent(_LIBRARY_REFUSED))),
            Sign(-10, "it is a path of the host that the engine was to make", _MOUNT_SOURCE),
            Sign(-8, "it is macOS, whose own root is read-only, and no container", text(r"/users/|\bmacos\b|\bdarwin\b")),
            Sign(3, "the path lies directly below the root directory", refused(r"/[^/.][^/]*$")),
            Sign(-6, "it lies in a directory that a variable names as a cache", fact(_below_a_cache)),
            Sign(-4, "it is a cache, or a home", any_of(all_of(_CACHE_REFUSED, any_of(_LIBRARY_REFUSED, refused(r"."), absent(_ROOT_READ_ONLY))), AT_THE_ROOT, NO_HOME)),
            Sign(-7, "it is inside the installed packages", text(_JIT)),
            Sign(-4, "it is the directory for temporary files", any_of(text(_NO_TMP), _TMP_READ_ONLY)),
        ),
    ),
    Rule(
        kind="jit-in-site-packages",
        symptom="cache",
        needs=any_of(text(_JIT), _INTO_PACKAGES, _PACKAGES_OPENED),
        signs=(
            Sign(7, "kernels are compiled into the installed packages, which cannot be written", text(_JIT)),
            Sign(5, "a library wants to make a file in the installed packages, which cannot be written", all_of(_INTO_PACKAGES, absent(text(_JIT)))),
            Sign(5, "it fails for whoever is not root, and rights on the installed packages helped", all_of(_PACKAGES_OPENED, absent(text(_JIT)))),
            Sign(-8, "an installer wants to", _INSTALLER),
            Sign(-3, "a shared library is missing there", text(rf"{_PACKAGES}[^\n]{{0,120}}\.so[^\n]{{0,60}}cannot open shared object")),
        ),
    ),
    Rule(
        kind="tmp-noexec",
        needs=any_of(text(r"failed to map segment from shared object"), text(r"\bnoexec\b"), text(rf"bad interpreter: permission denied|{_SHELL_RAN_TMP}"), all_of(text(rf"/tmp/[^\n]{{0,120}}{DENIED}|{DENIED}[^\n]{{0,40}}/tmp/"), text(r"exec")), _CARGO_REFUSED),
        signs=(
            Sign(5, "a library cannot be mapped as code", text(r"failed to map segment from shared object")),
            Sign(3, "the file system is mounted noexec", anywhere(r"\bnoexec\b")),
            Sign(5, "a script may be read and not executed", text(r"bad interpreter: permission denied")),
            Sign(4, "a program in a temporary directory may not be executed", any_of(_CARGO_REFUSED, text(rf"exec[^\n]{{0,60}}/tmp/[^\n]{{0,80}}{DENIED}|{DENIED}[^\n]{{0,60}}'?/tmp/[^\n]{{0,60}}(?:\.sh|conftest|a\.out|exec)|(?<!open )/tmp/\S{{0,80}}: {DENIED}"))),
            Sign(1, "it was compiled at run time", text(r"/tmp/|torchinductor|triton|\.so\b|tmpfs|comgr|torch_extensions")),
            Sign(-3, "memory is limited: the same text comes then", text(r"rlimit_as|ulimit -v|virtual memory")),
        ),
        settles=any_of(anywhere(r"noexec"), text(r"(?<!fork/exec )(?<!`)/tmp/(?![^\n]{0,60}bad interpreter)|tmpfs|torchinductor|torch_extensions|\.cache")),
        undecided="whether it is noexec or a limit of memory: `grep noexec /proc/mounts; ulimit -v` inside",
    ),
    Rule(
        kind="tmp-missing",
        needs=any_of(text(rf"temporary directory|tmpdir|mkstemp|mkdtemp|tempfile|/tmp\b|{_NO_TMP}"), _MEMORY_DIRECTORY),
        signs=(
            Sign(6, "there is no temporary directory that can be used", any_of(text(_NO_TMP), _TMP_READ_ONLY)),
            Sign(-4, "a disk is full: no file can be made to try the directory", any_of(text(NO_SPACE), remedy(r"\b(?:disk|free|more|some) (?:up )?(?:\w+ )?space\b"))),
            Sign(4, "TMPDIR lies in shared memory", _MEMORY_DIRECTORY),
            Sign(1, "the runtime fails with errors that are not true", all_of(_MEMORY_DIRECTORY, text(rf"out ?of ?memory|invalidvalue|{CRASH}"))),
        ),
        settles=text(rf"{_NO_TMP}|/tmp"),
        undecided="whether comgr's temporary files fail: run once with AMD_COMGR_EMIT_VERBOSE_LOGS=1 AMD_COMGR_REDIRECT_LOGS=stderr",
    ),
    Rule(
        kind="cache-tmpfs-oom",
        symptom="no space",
        needs=text(rf"{NO_SPACE}|oom|killed|{ENDED_137}"),
        signs=(
            Sign(6, "a cache is full", text(rf"{CACHE}[^\n]{{0,160}}{NO_SPACE}|{NO_SPACE}[^\n]{{0,160}}{CACHE}")),
            Sign(5, "no space is left, and the cache lies in memory", all_of(text(NO_SPACE), _CACHE_IN_MEMORY)),
            Sign(3, "the cache is a volume in memory", text(r"medium\W{1,4}memory[^\n]{0,80}cache|cache[^\n]{0,80}medium\W{1,4}memory")),
            Sign(2, "what is full lies in memory", all_of(text(NO_SPACE), text(r"/tmp\b[^\n]{0,20}\b(?:as|is|on|in)(?: an?)? tmpfs"))),
            Sign(2, "the cache lies in memory", text(r"tmpfs|emptydir|cache[\w.]*: [^\n]{0,40}(?:memory|tmpfs)")),
            Sign(2, "the limit of memory was reached while the cache grew", all_of(text(rf"{OOM_KILLED}|{ENDED_137}|\bkilled\b(?!\W{{1,3}}0)|oom-kill"), text(r"(?:tmpfs|medium\W{1,4}memory|emptydir[^\n]{0,30}memory)[^\n]{0,80}cache|cache[^\n]{0,80}(?:tmpfs|medium\W{1,4}memory|emptydir[^\n]{0,30}memory)|shmem|downloading shards"))),
            Sign(-5, "it is shared memory", all_of(text(r"posix_fallocate|/dev/shm|shared memory"), absent(_CACHE_IN_MEMORY))),
            Sign(-5, "it is the engine's disk", text(r"failed to register layer|/var/lib/(?:docker|containerd)|overlay2|writing blob")),
        ),
    ),
    Rule(
        kind="path-eacces-nonroot",
        symptom="mount",
        needs=any_of(text(rf"{DENIED}|{starts.refused(_PROGRAM)}"), _MODE_HELPED),
        signs=(
            Sign(5, "something may not be run, and its mode was what helped", _MODE_HELPED),
            Sign(6, "a program on PATH, or the entrypoint, may not be executed or entered", text(
                rf"exec(?!utable stack)[^\n]{{0,12}}(?:user process|format)?[^\n]{{0,80}}\"?/?[\w./-]*\"?:? (?:stat [^\n]{{0,80}}: )?{DENIED}|execv\w*\([^\n]{{0,200}}\beacces|exec: \"[^\"]{{1,200}}\"[^\n]{{0,80}}{DENIED}|(?:/usr/(?:local/)?s?bin|/opt|/root|/entrypoint|/docker-entrypoint|/app|/venv|/home)[^\s:'\"]{{0,160}}(?:\.sh|/bin/[\w.-]+|entrypoint)['\"]?: {DENIED}|{DENIED}: '(?:/usr|/opt|/root|/app|/venv)[^'\n]{{0,160}}/bin/[^'\n]+'|(?:ba|da|z)?sh: (?![^\n]{{0,20}}cannot open)[^\n]{{0,40}}/[^\n:]{{1,160}}: {DENIED}|cannot execute[^\n]{{0,40}}{DENIED}|unable to start container process[^\n]{{0,200}}{DENIED}"
            )),
            Sign(6, "an engine, an init or a program may not execute what it is to start", text(starts.refused(_PROGRAM))),
            Sign(6, "the engine may not execute what it is to start", all_of(text(r"starting container process|start container process|oci runtime"), text(rf"\"(?!/dev/)[./][\w./+-]{{0,160}}\\?\": {DENIED}"))),
            Sign(6, "a program was looked for along PATH, and a directory there may not be entered", _looked_for_along_path),
            Sign(4, "a shell may not read the script that it is given", text(rf"\bsh: [^\n]{{0,20}}cannot open (?!/tmp/)[^\n]{{1,160}}: {DENIED}")),
            Sign(1, "the process is not root inside", any_of(flag(r"^(?:--user|-u)=(?!0|root)"), text(r"non-?root|uid=[1-9]|runasuser: [1-9]|securitycontext\.runasuser: [1-9]"))),
            Sign(-6, "with the capabilities it works", CAPABILITY_HELPED),
            Sign(-5, "it is the working directory", text(r"chdir to cwd")),
            Sign(-4, "it lies in a directory for temporary files, which may be mounted noexec", text(rf"exec (?:/var)?/tmp/\S{{0,160}} ?{DENIED}|exec (?:/var)?/tmp/\S{{0,160}}: {DENIED}|{_SHELL_RAN_TMP}")),
            Sign(-5, "it is a device node", text(rf"/dev/[^\n]{{0,60}}{DENIED}")),
            Sign(-4, "the file system is mounted noexec", anywhere(r"noexec")),
            Sign(-4, "it is a cache, or the installed packages", any_of(_CACHE_REFUSED, text(_JIT))),
        ),
    ),
)  # fmt: skip
