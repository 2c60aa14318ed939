"""Whose process it is: a home directory that is none, and a user without a name."""

from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import any_of, fact, flag, remedy, text, told
from rocmrun.core.diagnosis.refused import REFUSED, refused

# A home that was never made, and the homes of accounts that have none.
NO_ACCOUNT = text(r"(?:cache folder|default path) \(/(?:nonexistent|var/empty|dev/null)/")
NO_HOME = any_of(
    refused(r"/(?:home|users|var/home)/[^/.][^/]*$|/(?:nonexistent|var/empty|dev/null)\b"),
    text(r"no such file or directory\W{1,4}/nonexistent\b"),
    NO_ACCOUNT,
)
_HOME_TOLD_ODD = text(
    r"^home: (?:/|unset|none)(?:\s|$|\()|\bhome\b[^\n]{0,20}\b(?:defaults? to|is|becomes|is set to|falls? back to) [`'\"]?/(?![\w.-])|[`'\"]/[`'\"] (?:as|for) (?:its |the |\$)?home\b"
    r"|\b(?:cannot|can't|could not|unable to|may not|fails? to|forbidden|not allowed to)\b[^\n]{0,40}[`'\" ]/\.(?!dockerenv|singularity|/)[a-z]|\bno home (?:directory )?(?:is )?set\b"
)
# What asks where the home directory is, and is told nowhere: Go, Python, git, and what is written in them.
_NO_HOME_NAMED = text(
    r"\$home is not defined|neither \$xdg_cache_home nor \$home|\$home not set|could not (?:determine|find) (?:the |your )?home dir(?:ectory)?\b|can't determine home directory|issue with resolving the home directory"
)
NO_HOME_TOLD = text(
    r"\b\$?home\b (?:is|=|points to|falls back to|defaults to) ?(?:set to )?['\"`]?/['\"`]?(?=[\s,.;)]|$)|\bhome\b (?:is |was )?(?:not set|unset|empty)\b|\b(?:has|have|with) no home(?: dir\w*)?\b"
)
AT_THE_ROOT = text(
    r"(?:write in your cache folder|the default path) \(/\.|"
    rf"{REFUSED}[^\n]{{0,40}}['\"`\s:=(\[]//?\.(?!dockerenv)[a-z]\w+\b|['\"`\s:=(\[]//?\.(?!dockerenv)[a-z][\w-]+\b[^\n]{{0,80}}{REFUSED}"
)
_NO_NAME = (
    r"getpwuid|uid not found|i have no name!|cannot find name for (?:user|group) id|no user exists for uid|no passwd entry|(?:user ?id|uid) \d+ (?:not found|does not exist|is unknown)|unknown user ?id|unable to (?:determine|find|get) (?:the )?(?:current )?user ?name|no user ?name (?:is )?set|lookup current user|user: (?:lookup|unknown) (?:user|userid)|current user[^\n]{0,40}not found|failed to get (?:the )?(?:current )?user(?:name)?\b|getpass\.getuser"
    # git, sudo, PostgreSQL, Node, D-Bus, Java
    r"|(?:\buids?\b|\buser\b)[^\n]{0,60}\b(?:no entry|not) in (?:the )?(?:/etc/)?passwd\b|unable to look up current user in the passwd|you do not exist in the passwd database|could not look up (?:effective|local) user id|local user with id \d+ does not exist|uv_os_get_passwd returned enoent|could not get password database information for uid|nullpointerexception: invalid null input: name"
)


def _odd_home(seen: Evidence) -> bool:
    home = seen.env.get("HOME")
    return home is not None and home[0].strip() in {"", "/", "/nonexistent", "/dev/null"}


RULES = (
    Rule(
        kind="home-not-writable",
        symptom="cache",
        needs=any_of(AT_THE_ROOT, NO_HOME, _NO_HOME_NAMED, NO_HOME_TOLD, _HOME_TOLD_ODD, fact(_odd_home)),
        signs=(
            Sign(7, "HOME is the root directory: a path in it begins with /.", AT_THE_ROOT),
            Sign(7, "the home directory itself is not there", NO_HOME),
            Sign(6, "no home directory is named", _NO_HOME_NAMED),
            Sign(4, "it is said that there is no home, or that it is /", NO_HOME_TOLD),
            Sign(3, "HOME is not set, or /", any_of(fact(_odd_home), _HOME_TOLD_ODD, told(r"home unset|no home"))),
            Sign(3, "another HOME helped", remedy(r"\bhome=/|\bhome director")),
            Sign(2, "something may not be written", text(REFUSED)),
        ),
    ),
    Rule(
        kind="uid-without-passwd-entry",
        needs=text(_NO_NAME),
        signs=(
            Sign(6, "the user has no name in the image: no passwd entry, USER or LOGNAME", text(_NO_NAME)),
            Sign(1, "the user was given by number", flag(r"^(?:--user|-u)=\d+")),
            Sign(-4, "it is rocminfo, which fails for another reason too", text(r"check for video group membership")),
        ),
    ),
)  # fmt: skip
