"""Docker's stored logins and registries' challenges."""

import base64

import pytest

from rocmrun.core.credentials import (
    Challenge,
    Credentials,
    helper_for,
    login_of_helper,
    parse_challenges,
    stored_login,
)


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


ME = Credentials(username="me", password="p:w")


@pytest.mark.parametrize(
    ("key", "domain"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("index.docker.io", "docker.io"),
        ("ghcr.io", "ghcr.io"),
        ("https://ghcr.io", "ghcr.io"),
        ("https://ghcr.io/v2/", "ghcr.io"),
        ("127.0.0.1:5055", "127.0.0.1:5055"),
    ],
)
def test_a_login_is_found_under_every_key_docker_has_written(key: str, domain: str) -> None:
    """With or without scheme and path."""
    assert stored_login({"auths": {"other.io": auth("x:y"), key: auth("me:p:w")}}, domain) == ME


@pytest.mark.parametrize(
    "auths",
    [
        None,
        {},
        {"other.io": auth("me:pw")},
        {"ghcr.io": {}},
        {"ghcr.io": {"auth": "!!"}},
        {"ghcr.io": "x"},
        {"ghcr.io": auth("nocolon") | {"auth": base64.b64encode(b"\xff").decode()}},
        {"ghcr.io.evil.io": auth("me:pw")},
    ],
)
def test_no_usable_login_is_none(auths: object) -> None:
    """Also what a credential store leaves behind: an empty entry."""
    assert stored_login({"auths": auths}, "ghcr.io") is None


def test_other_forms_of_a_login() -> None:
    """Name and password in the clear, and identity tokens."""
    plain = {"auths": {"a.io": {"username": "me", "password": "p:w"}}}
    token = {"auths": {"a.io": {"auth": "", "identitytoken": "T"}}}

    assert stored_login(plain, "a.io") == ME
    assert stored_login(token, "a.io") == Credentials(identity_token="T")


@pytest.mark.parametrize(
    ("config", "helper"),
    [
        ({"credsStore": "desktop"}, "desktop"),
        ({"credHelpers": {"ghcr.io": "gh"}, "credsStore": "desktop"}, "gh"),
        ({"credHelpers": {"other.io": "gh"}}, None),
        ({"credsStore": "../evil"}, None),
        ({"credsStore": ""}, None),
        ({}, None),
    ],
)
def test_helpers(config: dict[str, object], helper: str | None) -> None:
    """One for the host comes before the store for all; a name is never a path."""
    assert helper == helper_for(config, "ghcr.io")


def test_docker_hubs_helper_goes_by_its_old_address_or_its_name() -> None:
    """Both are in use."""
    for key in ("https://index.docker.io/v1/", "docker.io"):
        assert helper_for({"credHelpers": {key: "x"}}, "docker.io") == "x"


def test_answers_of_helpers() -> None:
    """ "<token>" as the name marks an identity token."""
    assert login_of_helper({"Username": "me", "Secret": "p:w"}) == ME
    assert login_of_helper({"Username": "<token>", "Secret": "T"}) == Credentials(
        identity_token="T"
    )
    assert login_of_helper({"Username": "me", "Secret": ""}) is None
    assert login_of_helper({}) is None


def test_secrets_do_not_show() -> None:
    """Not in a traceback, not in a log."""
    assert "p:w" not in repr(ME)
    assert ME.basic == "Basic " + base64.b64encode(b"me:p:w").decode()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Basic realm="Registry Realm"', [Challenge(scheme="basic", realm="Registry Realm")]),
        (
            'Bearer realm="https://a/t",service="s, x",scope="repository:a/b:pull,push"',
            [
                Challenge(
                    scheme="bearer",
                    realm="https://a/t",
                    service="s, x",
                    scope="repository:a/b:pull,push",
                )
            ],
        ),
        (
            'Basic realm="x", Bearer realm="https://a/t" , service=s',
            [
                Challenge(scheme="bearer", realm="https://a/t", service="s"),
                Challenge(scheme="basic", realm="x"),
            ],
        ),
        ("bearer REALM=https://a/t", [Challenge(scheme="bearer", realm="https://a/t")]),
        ("Basic", [Challenge(scheme="basic")]),
        ("Negotiate", []),
        ("", []),
    ],
)
def test_challenges(header: str, expected: list[Challenge]) -> None:
    """Bearer first, quoted commas kept, what cannot be answered left out."""
    assert expected == list(parse_challenges(header))
