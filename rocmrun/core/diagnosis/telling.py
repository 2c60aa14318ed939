"""What a person who tells instead of pasting says for "it is not there" and "it may not be written", as patterns (lower case)."""

_LACKS = r"(?:no|without|missing|lacks?|lacking|needs|(?:do|does|did)(?: not|n't) (?:have|contain|include|ship))"
_GONE = r"(?:missing|absent|(?:not|n't) (?:there|installed|available|present|shipped|included|in the (?:image|container)|on (?:the )?path)|(?:do|does)(?: not|n't) (?:exist|have)|not exist)"
# What a compiler or a library has, and which may be missing while it is there.
_OF_IT = r"(?:flags?|warnings?|options?|errors?|versions?|support|plugins?|bindings?)\b"
# Behind the path, or before it.
NOT_WRITTEN = r"(?:(?:can(?: ?not|'t)|could not|may not|must not) (?:be )?(?:writ(?:e|ten)|creat(?:e|ed))|unwritable|permissionerror)"


def lacking(thing: str) -> str:
    """Return a pattern for: *thing* (a pattern of its own) is said to be missing."""
    return (
        rf"\b{_LACKS} (?:the |an? |any |its )?(?:\w+ )?{thing}(?![\w/-])(?! {_OF_IT})"
        rf"|{thing}(?![\w/-])[^\n,;.]{{0,30}}\b(?:is|are|was|were|isn't|aren't|itself)?\b ?{_GONE}\b"
        rf"|{thing}(?![\w/-]), which [^\n,;.]{{0,60}}\b{_GONE}\b"
    )
