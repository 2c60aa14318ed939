"""What is private by its form, wherever it stands: addresses, ids, hosts, owners, prompts."""

import ipaddress
import re
from collections.abc import Callable

from rocmrun.core.public_words import is_public
from rocmrun.core.redacted_paths import ALIAS, EVERYBODYS, Alias, redacted_path

Replace = Callable[[re.Match[str], frozenset[str], Alias], str]

# Hosts whose name says nothing of who uses them.
_PUBLIC_HOSTS = (
    "docker.io", "docker.com", "ghcr.io", "quay.io", "gcr.io", "nvcr.io", "registry.k8s.io", "mcr.microsoft.com",
    "public.ecr.aws", "github.com", "githubusercontent.com", "gitlab.com", "huggingface.co", "hf.co", "pytorch.org",
    "amd.com", "radeon.com", "ubuntu.com", "debian.org", "kernel.org", "nvidia.com",
    "ollama.com", "ollama.ai", "vllm.ai", "python.org", "freedesktop.org", "openai.com",
)  # fmt: skip
# Ends of host names; those that files and attributes end in too count where two names stand before them.
_ENDS = (
    "com|org|net|io|dev|ai|edu|gov|biz|cloud|local|localdomain|internal|intern|intra|intranet|lan|corp|onion|arpa|de|uk"
    "|fr|nl|eu|ch|fi|dk|cz|pl|ie|us|ca|jp|cn|kr|tw|au|nz|br|za|ru|example|invalid|test"
)
_WEAK_ENDS = "info|app|tech|home|private|cluster|pt|in|at|it|es|no|se|be|is|mil|int|hpc|site"
_LABEL = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\."
_HOST = rf"(?:(?:{_LABEL}){{1,8}}(?:{_ENDS})|(?:{_LABEL}){{2,8}}(?:{_WEAK_ENDS}))"


def _whole(kind: str) -> Replace:
    return lambda match, _words, alias: alias(kind, match[0])


def _inner(kind: str, *, always: bool = False) -> Replace:
    """Replace what the group "private" holds, unless it is a public word; *always*: even then."""

    def replace(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
        private = match["private"]
        public = is_public(private, words) or (kind == "host" and is_public_host(private))
        if public and not always:
            return match[0]
        start, end = (place - match.start() for place in match.span("private"))
        return match[0][:start] + alias(kind, private) + match[0][end:]

    return replace


def _slurm(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    host = match["private"] or match["other"]
    return match[0] if is_public(host, words) else match[0].replace(host, alias("host", host))


def is_public_host(host: str) -> bool:
    """Whether *host* is one that everybody knows."""
    lower = host.lower().partition(":")[0]
    return lower in {"localhost", "localhost.localdomain", "host.docker.internal"} or any(
        lower == public or lower.endswith(f".{public}") for public in _PUBLIC_HOSTS
    )


def _is_here(host: str) -> bool:
    """Whether a host of a URL is everybody's: a public one, or an address that every machine has."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return is_public_host(host)
    return address.is_loopback or address.is_unspecified


def _host(match: re.Match[str], _words: frozenset[str], alias: Alias) -> str:
    return match[0] if is_public_host(match[0]) else alias("host", match[0])


def _url(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    host, port, path, query = (
        match["host"],
        match["port"] or "",
        match["path"] or "",
        match["query"],
    )
    shown = host if ALIAS.fullmatch(host) or _is_here(host) else alias("host", host)
    return (
        f"{match['scheme']}{shown}{port}{redacted_path(path, words, alias)}"
        f"{'?<query>' if query else ''}"
    )


def _login(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    user, host = match["user"], match["host"]
    start = match[0].removesuffix(f"{user}@{host}")
    shown_host = host if ALIAS.fullmatch(host) or is_public(host, words) else alias("host", host)
    return f"{start}{user if user in EVERYBODYS else alias('user', user)}@{shown_host}"


def _passwd(match: re.Match[str], _words: frozenset[str], alias: Alias) -> str:
    user, person = match["user"], match["host"]
    if not person.strip(", ") or user in EVERYBODYS:
        return match[0]
    return f"{alias('user', user)}{match[0][len(user) : -len(person)]}{alias('user', person)}"


def _image(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    reference = match["private"]
    return match[0].removesuffix(reference) + redacted_image(reference, words, alias)


def _registry(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    return redacted_image(match[0], words, alias)


def redacted_image(reference: str, words: frozenset[str], alias: Alias) -> str:
    """Return an image's reference; of one that is not public, what can tell a version stays."""
    name, at, digest = reference.partition("@")
    host, slash, rest = name.partition("/")
    if not slash or ("." not in host and ":" not in host and host != "localhost"):
        host, slash, rest = "", "", name
    repository, colon, tag = rest.partition(":")
    shown = (
        host
        if is_public_host(host) or not host or ALIAS.match(host) or host.startswith("127.")
        else alias("registry", host)
    )
    parts = [
        part if is_public(part, words) else alias("image", part) for part in repository.split("/")
    ]
    own = shown != host or "/".join(parts) != repository
    tag = tag if is_public(tag, words) else alias("tag", tag)
    digest = alias("digest", digest) if own and digest else digest
    return f"{shown}{slash}{'/'.join(parts)}{colon}{tag}{at}{digest}"


def _ip(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    return _address(match[0], words, alias)


def _address(text: str, _words: frozenset[str], alias: Alias) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    return text if address.is_loopback or address.is_unspecified else alias("ip", text)


def _dotted(match: re.Match[str], words: frozenset[str], alias: Alias) -> str:
    version = _OF_A_VERSION.search(match.string, max(0, match.start() - 24), match.start())
    return match[0] if version else _address(match[0], words, alias)


_OF_A_VERSION = re.compile(r"(?i)(?:version|ver|driver|release|rocm|plugin|firmware)\W{0,3}v?\Z")
_NOT_IN_NAME = r"(?<![\w.-])"
# In this order: what holds others comes before them.
RULES: tuple[tuple[re.Pattern[str], Replace], ...] = (
    # What users ask a model is nobody's business; servers log it.
    (re.compile(r"(?im)(?P<key>\b(?:prompt|messages|content|input_text|query|completion)[\"']?\s{0,2}[:=]\s{0,2})(?:(?P<quote>[\"'])(?:\\.|(?!(?P=quote)).){1,20000}(?:(?P=quote)|$)|\[[^\n]{1,20000}\])"),
     lambda match, _words, _alias: f"{match['key']}\"<text>\""),
    (re.compile(r"(?i)(?<![a-z])(?:uuid|guid|serial(?: ?(?:number|no))?|unique ?_?id|hive ?_?id|machine-?id|boot-?id|invocation_?id|hwid|(?:asset|service) ?tag)\b[\"')\]]{0,2}\s{0,20}[:=]?\s{0,20}[\"']?(?P<private>(?=[A-Za-z-]*\d)[0-9A-Za-z][0-9A-Za-z-]{4,63})"), _inner("id", always=True)),
    (re.compile(r"\bGPU-[0-9a-fA-F]{8,16}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?\b"), _whole("gpu")),
    (re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), _whole("id")),
    (re.compile(r"(?i)(?<!sha256:)(?<![0-9a-z_])[0-9a-f]{32,128}(?![0-9a-z_])"), _whole("id")),
    (re.compile(r"\b[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b(?!\.service|/)"), _whole("email")),
    (re.compile(r"(?i)(?<![\w:-])(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4,18}[0-9a-f]{2}(?![\w:-])"), _whole("mac")),
    (re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)(?:[^/\s@'\"]{1,300}@)?(?P<host>\[[0-9a-fA-F:.%]{2,60}\]|[A-Za-z0-9_.-]{1,253})(?P<port>:\d{1,5})?(?P<path>/[^\s?#'\"<>)\]},]*)?(?P<query>[?#](?:<secret>|[^\s'\"<>)\]},])*)?"), _url),
    (re.compile(rf"(?<![\w./-])(?:{_HOST}|(?=[0-9.-]{{0,40}}[a-z])[a-z0-9][a-z0-9.-]{{0,62}}:\d{{2,5}}|localhost)(?::\d{{2,5}})?(?:/[\w.-]{{1,128}}){{1,6}}(?::[\w.-]{{1,128}})?(?:@sha256:[0-9a-f]{{6,64}})?"), _registry),
    (re.compile(rf"{_NOT_IN_NAME}{_HOST}(?![\w-]|\.\w)"), _host),
    (re.compile(r"\bip(?:-\d{1,3}){4}(?![\w-])"), _whole("host")),
    (re.compile(r"(?i)(?<![a-z])node_?(?:list|s)[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<private>[a-z][\w-]{0,62}\[[\d,-]{1,200}\])"), _inner("host", always=True)),
    # A shell's prompt, ssh and its question; a line of passwd with the person's name.
    (re.compile(r"(?<![\w.@-])(?P<user>[a-z_][\w.-]{0,31})@(?P<host>[a-z][a-z0-9.-]{0,62})(?=[: ][^\n@]{0,80}?[\]$#%](?:\s|$)|'s password)"), _login),
    (re.compile(r"\b(?:ssh|scp|sftp|mosh) (?:-\S{1,40} (?:\d{1,5} )?){0,4}(?P<user>[A-Za-z_][\w.-]{0,31})@(?P<host>[A-Za-z0-9][\w.-]{0,62})"), _login),
    (re.compile(r"(?m)^(?P<user>[a-z_][\w.-]{0,31}):[x*!]?:\d{1,10}:\d{1,10}:(?P<host>[^:\n]{0,200})(?=:/)"), _passwd),
    (re.compile(r"(?:pull access denied for|manifest for|No such image:|Unable to find image|Error: No such object:) ['\"]?(?P<private>[\w./:@-]{2,300}[\w])"), _image),
    (re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)"), _dotted),
    (re.compile(r"(?i)(?<![\w:.])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])"), _whole("ip")),
    (re.compile(r"(?i)(?<![\w:.])[0-9a-f]{3,4}:(?:[0-9a-f]{1,4}:){0,6}:(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?(?![\w:])"), _ip),
    (re.compile(r"(?<!\w)(?:[A-Za-z]:|\\{2,4}[\w.$-]{1,63}(?=\\))(?:\\{1,2}(?:[\w .$()+-]{1,100}(?=\\)|[\w.$()+-]{1,100})){1,20}"), _whole("path")),
    # syslog and journald: time, host, program.
    (re.compile(r"(?m)^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:?\d\d)) (?P<private>[A-Za-z][\w.-]{1,62}) (?=[\w./-]{1,60}(?:\[\d+\])?: )"), _inner("host")),
    # RCCL's and MPI's prefix, Slurm, torch's rendezvous, kubectl.
    (re.compile(r"(?<![\w.-])(?P<private>[A-Za-z][\w.-]{1,62}):\d{1,7}:\d{1,7} \[\d{1,3}\] (?:NCCL|RCCL)"), _inner("host")),
    (re.compile(r"(?m)^\[(?P<private>[A-Za-z][\w.-]{1,62}):\d{2,7}\]"), _inner("host")),
    (re.compile(r"\bsrun: error: (?P<private>[A-Za-z][\w.-]{1,62}): task|\*\*\* (?:JOB|STEP) [\d.]{1,20} ON (?P<other>[A-Za-z][\w.-]{1,62})"), _slurm),
    (re.compile(r"(?i)\b(?:connect(?:ed|ing|ion)? (?:to|from)|to resolve|resolving|listening on|reach)(?: host)? [\['\"]{0,2}(?P<private>[A-Za-z][\w-]{1,62}(?:\.[\w-]{1,62}){0,6})(?=[\]'\"]{0,2}(?::\d{2,5}|[\]'\"]))"), _inner("host")),
    (re.compile(r"\[pod/(?P<private>[\w.-]{1,253})(?=/)"), _inner("name")),
    (re.compile(r"(?i)\b(?:host(?:_?name)?|node_?name|node(?:_?id)?|nodelist|master_addr|server|fqdn|domain)[\"']?\s{0,12}[=:]\s{0,2}[\"']?(?P<private>[A-Za-z][\w-]{2,62}(?:\.[\w-]{1,62}){0,6})"), _inner("host")),
    # Owners in a listing, names beside numbers, whoever something ran as, and whom commands are about.
    (re.compile(r"(?:\bby (?=[\w.-]{1,32}\(uid=)|\bsudo:\s{1,8}(?=[\w.-]{1,32} : )|\busermod -a?G \S{1,100} |\badduser |\buseradd |\bgpasswd -a |\bgetent passwd |\bsu - |\bchown (?:-\w{1,4} )?)(?P<private>[a-z_][\w.-]{1,31})"), _inner("user")),
    (re.compile(r"(?m)(?<=[bcdlsp-][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-])[.+@]?\s+\d+\s+(?P<private>[A-Za-z_][\w.-]{1,31})(?=\s)"), _inner("user")),
    (re.compile(r"(?m)(?<=[bcdlsp-][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-])[.+@]?\s+\d+\s+\S+\s+(?P<private>[A-Za-z_][\w.-]{1,31})(?=\s)"), _inner("user")),
    (re.compile(r"(?<![\w.])(?<=[=,])\d{1,10}\((?P<private>[A-Za-z_][\w.-]{1,63})\)"), _inner("user")),
    (re.compile(r"(?i)(?<![a-z])(?:user(?:_?name)?|logname|login|owner|author|sudo_user|(?:runs|running|logged in) as|for user|session of)[\"']?(?:\s{0,2}[=:]\s{0,2}|(?<=as|er|of)\s)[\"']?(?P<private>[A-Za-z_][\w.-]{2,31})(?=[\"',;)\s]|\Z)"), _inner("user")),
    (re.compile(r"(?:--?(?:model|tokenizer|served-model-name|revision|adapter|lora-modules|download-dir|name|volume|label|hostname)|(?:model|tokenizer|served_model_name|model_name|model_path|model_id|repo_id|adapter)[\"']?)\s{0,2}[=: ]\s{0,2}[\"'\[]{0,2}(?P<private>[\w.-]{2,96}(?:/[\w.-]{1,96})?)(?![\w/])"), _inner("name")),
    (re.compile(r"(?<![\w/<])(?![A-Za-z]+(?![A-Za-z0-9+/]))[A-Za-z0-9+/]{40,}={0,2}(?![\w/>])"),
     lambda match, _words, alias: match[0] if match[0].startswith("/") or not re.search(r"\d", match[0]) else alias("blob", match[0])),
)  # fmt: skip
