"""References parse by the distribution grammar, with docker.io's defaults, and say what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.reference import PATH_LIMIT, Reference, parse_reference
from rocmrun.errors import ReferenceInvalid

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"

PARSED = [
    # text, domain, path, tag, digest, canonical
    ("python", "docker.io", "library/python", None, None, "docker.io/library/python:latest"),
    ("python:3.12", "docker.io", "library/python", "3.12", None, "docker.io/library/python:3.12"),
    ("rocm/pytorch:x", "docker.io", "rocm/pytorch", "x", None, "docker.io/rocm/pytorch:x"),
    (
        "docker.io/python",
        "docker.io",
        "library/python",
        None,
        None,
        "docker.io/library/python:latest",
    ),
    ("index.docker.io/a/b:c", "docker.io", "a/b", "c", None, "docker.io/a/b:c"),
    ("index.docker.io/a", "docker.io", "library/a", None, None, "docker.io/library/a:latest"),
    ("docker.io/library/a", "docker.io", "library/a", None, None, "docker.io/library/a:latest"),
    ("library/a:1", "docker.io", "library/a", "1", None, "docker.io/library/a:1"),
    ("localhost/a:1", "localhost", "a", "1", None, "localhost/a:1"),
    ("localhost:5000/a", "localhost:5000", "a", None, None, "localhost:5000/a:latest"),
    (
        "localhost:5000",
        "docker.io",
        "library/localhost",
        "5000",
        None,
        "docker.io/library/localhost:5000",
    ),
    ("127.0.0.1:5055/demo:1", "127.0.0.1:5055", "demo", "1", None, "127.0.0.1:5055/demo:1"),
    ("[::1]:5000/a/b:t", "[::1]:5000", "a/b", "t", None, "[::1]:5000/a/b:t"),
    ("[fe80::AB]/a", "[fe80::AB]", "a", None, None, "[fe80::AB]/a:latest"),
    ("UPPER/x", "UPPER", "x", None, None, "UPPER/x:latest"),
    ("ghcr.io/a/b/c/d:v1", "ghcr.io", "a/b/c/d", "v1", None, "ghcr.io/a/b/c/d:v1"),
    ("a.b/c", "a.b", "c", None, None, "a.b/c:latest"),
    ("host:80/c", "host:80", "c", None, None, "host:80/c:latest"),
    (
        "a__b/c-d--e.f:T_x.y-z",
        "docker.io",
        "a__b/c-d--e.f",
        "T_x.y-z",
        None,
        "docker.io/a__b/c-d--e.f:T_x.y-z",
    ),
    (f"a/b@{DIGEST}", "docker.io", "a/b", None, DIGEST, f"docker.io/a/b@{DIGEST}"),
    (f"a/b:t@{DIGEST}", "docker.io", "a/b", "t", DIGEST, f"docker.io/a/b:t@{DIGEST}"),
    (f"r.io:1/a:t@{DIGEST}", "r.io:1", "a", "t", DIGEST, f"r.io:1/a:t@{DIGEST}"),
    (f"x/{HEX}", "docker.io", f"x/{HEX}", None, None, f"docker.io/x/{HEX}:latest"),
]


@pytest.mark.parametrize(("text", "domain", "path", "tag", "digest", "canonical"), PARSED)
def test_parses(
    text: str, domain: str, path: str, tag: str | None, digest: str | None, canonical: str
) -> None:
    """Domain, path, tag and digest come apart as the distribution grammar says."""
    reference = parse_reference(text)

    assert Reference(domain=domain, path=path, tag=tag, digest=digest) == reference
    assert canonical == reference.canonical


REFUSED = [
    ("", "empty"),
    (" a", "blanks"),
    ("a b", "blanks"),
    ("a\n", "blanks"),
    ("https://ghcr.io/a/b", "https://"),
    (DIGEST, "without a name"),
    (HEX, "without a name"),
    ("a:", "'' is not a tag"),
    ("a:-x", "'-x' is not a tag"),
    (f"a:{'x' * 129}", "is not a tag"),
    ("a/B", "lower case"),
    ("a/Bc:t", "lower case"),
    ("Python", "lower case"),
    ("a//b", "'' is not a part"),
    ("a/", "'' is not a part"),
    ("/a", "'' is not a part"),
    ("docker.io/", "no repository"),
    ("localhost:5000/", "no repository"),
    ("a/-b", "'-b' is not a part"),
    ("a/b_", "'b_' is not a part"),
    ("a/b___c", "is not a part"),
    ("a..b", "is not a part"),
    ("-host.io/a", "not a registry host"),
    ("[::g]:1/a", "not a registry host"),
    ("h.io:port/a", "not a registry host"),
    ("a@", "64 hex digits"),
    ("a@sha256:12", "64 hex digits"),
    (f"a@sha256:{HEX.upper()}", "64 hex digits"),
    (f"a@{DIGEST}@{DIGEST}", "64 hex digits"),
    (f"a@sha512:{HEX}{HEX}", "locked by sha256"),
    ("x/" + "a" * 255, "longer than 255"),
    ("café", "is not a part"),
    ("a:é", "is not a tag"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refuses(text: str, says: str) -> None:
    """What is no reference is refused with the part that is wrong."""
    with pytest.raises(ReferenceInvalid, match=says.replace("(", r"\(")):
        parse_reference(text)


def test_a_wrong_case_names_the_right_spelling() -> None:
    """The hint can be pasted."""
    with pytest.raises(ReferenceInvalid) as caught:
        parse_reference("ghcr.io/ROCm/Thing:Tag")

    assert caught.value.hint == "did you mean ghcr.io/rocm/thing:Tag?"


FAMILIAR = [
    ("docker.io/library/python:3", "python:3"),
    ("docker.io/rocm/pytorch:x", "rocm/pytorch:x"),
    ("docker.io/foo.bar/x:1", "docker.io/foo.bar/x:1"),
    ("docker.io/localhost/x:1", "docker.io/localhost/x:1"),
    ("docker.io/library/a/b:1", "library/a/b:1"),
    (f"docker.io/library/sha256:{HEX}", f"docker.io/library/sha256:{HEX}"),
    ("ghcr.io/library/a:1", "ghcr.io/library/a:1"),
    ("a", "a:latest"),
]


@pytest.mark.parametrize(("text", "familiar"), FAMILIAR)
def test_familiar_is_short_where_it_can_be(text: str, familiar: str) -> None:
    """The defaults are left out unless the rest would then mean another image."""
    assert familiar == parse_reference(text).familiar


@pytest.mark.parametrize(
    ("text", "moving"),
    [
        ("a", True),
        ("a:latest", True),
        ("a:nightly", True),
        ("a:main", True),
        ("a:master", True),
        ("a:stable", True),
        ("a:nightly-20260101", False),
        ("a:1.0", False),
        (f"a:latest@{DIGEST}", False),
        (f"a@{DIGEST}", False),
    ],
)
def test_moving(text: str, *, moving: bool) -> None:
    """Rolling tags and no tag move; a digest never does."""
    assert moving is parse_reference(text).moving


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("localhost:5000/a", True),
        ("localhost/a", True),
        ("127.0.0.1:5055/a", True),
        ("127.8.9.1/a", True),
        ("[::1]:5000/a", True),
        ("[::1]/a", True),
        ("[::2]/a", False),
        ("10.0.0.1:5000/a", False),
        ("localhost.evil.io/a", False),
        ("a", False),
    ],
)
def test_loopback(text: str, *, loopback: bool) -> None:
    """Only this machine's own addresses count as loopback."""
    assert loopback is parse_reference(text).loopback


def test_at_a_digest_the_tag_is_gone() -> None:
    """What is pulled is the repository at a digest."""
    assert f"docker.io/a/b@{DIGEST}" == parse_reference("a/b:t").at(DIGEST).canonical


_label = st.from_regex(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?", fullmatch=True)
_hosts = st.one_of(
    st.just("docker.io"),
    st.just("localhost"),
    st.builds("{}.{}".format, _label, _label),
    st.builds("{}:{}".format, _label, st.integers(min_value=1, max_value=65535)),
    st.sampled_from(["[::1]", "[fe80::1]:5000", "127.0.0.1:5055", "index.docker.io"]),
)
_component = st.from_regex(r"[a-z0-9]{1,6}(?:(?:[._]|__|-{1,3})[a-z0-9]{1,4}){0,2}", fullmatch=True)
_paths = (
    st.lists(
        st.one_of(_component, st.sampled_from(["library", "localhost", HEX])),
        min_size=1,
        max_size=4,
    )
    .map("/".join)
    .filter(lambda path: len(path) <= PATH_LIMIT)
)
_tags = (
    st.none() | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}", fullmatch=True) | st.just(HEX)
)
_digests = st.none() | st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)


@given(_hosts, _paths, _tags, _digests)
def test_round_trip(host: str, path: str, tag: str | None, digest: str | None) -> None:
    """The canonical and the familiar spelling parse back to the same image, and are fixed points."""
    text = f"{host}/{path}" + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")

    reference = parse_reference(text)
    canonical = parse_reference(reference.canonical)

    assert reference.canonical == canonical.canonical
    assert reference.canonical == parse_reference(reference.familiar).canonical
    assert (reference.name, reference.digest) == (canonical.name, canonical.digest)
    assert reference.familiar == canonical.familiar


@given(st.text(alphabet="aB0.:/@[]-_ s", max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """Nothing but ReferenceInvalid ever comes out, and what parses has a stable canonical form."""
    try:
        reference = parse_reference(text)
    except ReferenceInvalid:
        return

    assert reference.canonical == parse_reference(reference.canonical).canonical
