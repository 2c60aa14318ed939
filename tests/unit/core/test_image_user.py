"""What a USER of an image stands for, also when the image's files are odd."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.image_user import look_up_user, misleading_groups, numeric_ids
from rocmrun.errors import PlanRefused

PASSWD = """root:x:0:0:root:/root:/bin/sh
# a comment
jovyan:x:1000:100::/home/jovyan:/bin/bash
broken:x:many:1:::
huge:x:99999999999999999999:1:::
hugegroup:x:1:2147483648:::
short:x
superscript:x:²:1:::
"""
GROUP = "root:x:0:\nusers:x:100:jovyan\nrender:x:992\nbroken:x:\nvast:x:2147483648:\n"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("jovyan", (1000, 100)),
        ("jovyan:render", (1000, 992)),
        ("jovyan:5", (1000, 5)),
        ("1000", (1000, 100)),
        ("1000:users", (1000, 100)),
        ("4711:users", (4711, 100)),
        ("4711", (4711, 0)),
        ("root", (0, 0)),
    ],
)
def test_names_are_looked_up_in_the_images_own_files(user: str, expected: tuple[int, int]) -> None:
    assert look_up_user(user, PASSWD, GROUP) == expected


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("nobody", '"nobody", which its /etc/passwd does not know'),
        ("broken", "does not know"),
        ("short", "does not know"),
        ("superscript", "does not know"),
        ("²", "does not know"),
        (":5", "does not know"),
        ("huge", "99999999999999999999 is no id: the highest is 2147483647"),
        ("hugegroup", "2147483648 is no id"),
        ("jovyan:vast", "2147483648 is no id"),
        ("jovyan:99999999999999999999", "is no id"),
        ("4294967296", "is no id"),
        ("jovyan:video", '/etc/group does not know "video"'),
        ("jovyan:broken", '/etc/group does not know "broken"'),
    ],
)
def test_a_name_that_nobody_knows_is_refused_with_the_way_out(user: str, said: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        look_up_user(user, PASSWD, GROUP)

    assert said in caught.value.message
    assert 'user = "1000:1000"' in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("1000", (1000, 1000)),
        ("1000:5", (1000, 5)),
        ("0", (0, 0)),
        ("2147483647", (2147483647, 2147483647)),
        ("0000000000001000", (1000, 1000)),
        ("jovyan", None),
        ("1000:", None),
        (":5", None),
        ("1:2:3", None),
        ("²", None),
        ("", None),
    ],
)
def test_numbers_need_no_file(user: str, expected: tuple[int, int] | None) -> None:
    """A number without a group is its own group: group root is never a default."""
    assert numeric_ids(user) == expected


@pytest.mark.parametrize("user", ["2147483648", "1000:99999999999999999999", "9" * 5000])
def test_a_number_that_the_engine_would_look_up_as_a_name_is_refused(user: str) -> None:
    with pytest.raises(PlanRefused, match="the highest is 2147483647"):
        numeric_ids(user)


@given(st.text(max_size=20), st.text(max_size=80), st.text(max_size=80))
def test_whatever_an_image_says_is_answered_or_refused(user: str, passwd: str, group: str) -> None:
    try:
        uid, gid = look_up_user(user, passwd, group)
    except PlanRefused:
        return
    assert uid >= 0
    assert gid >= 0


def test_a_group_that_is_named_like_a_number_is_found() -> None:
    """The engine would give the group of that name: here root's."""
    text = "root:x:0:\n992:x:0:\nvideo:x:44:\n44:x:44:\nbroken\n"

    assert misleading_groups((44, 992), text) == (
        'the image has a group named "992" with the number 0',
    )
