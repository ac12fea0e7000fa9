from __future__ import annotations

import random

import pytest

from tuirig.rigs.settings import KNOBS, LONGEST, NONE, Setting, is_name, parse_setting

NAME_START = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random_setting(rng: random.Random) -> Setting:
    name = rng.choice(NAME_START) + "".join(
        rng.choice(NAME_START + "._-") for _ in range(rng.randrange(12))
    )
    length = rng.choice([None, rng.randint(1, LONGEST)])
    p_min = rng.choice([0.0, 1.0, rng.random(), round(rng.random(), 2), rng.random() * 1e-6])
    knobs = {"p_min": p_min, "n_min": float(rng.randint(0, length or LONGEST))}
    chosen = sorted(knob for knob in knobs.items() if rng.random() < 0.5)
    return Setting(name, length, tuple(chosen))


def test_what_is_written_reads_back() -> None:
    rng = random.Random(20)
    settings = {random_setting(rng) for _ in range(2000)}
    assert len(settings) > 1500
    for setting in settings - {Setting("none")}:
        assert parse_setting(str(setting)) == setting


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("none", NONE),
        ("q4_0:2", Setting("q4_0", 2)),
        (" q4_0:02 ", Setting("q4_0", 2)),
        ("cache", Setting("cache")),
        ("inside:5,p_min=0.3", Setting("inside", 5, (("p_min", 0.3),))),
        ("a:9,p_min=.5,n_min=2", Setting("a", 9, (("n_min", 2), ("p_min", 0.5)))),
        (f"a:{LONGEST}", Setting("a", LONGEST)),
    ],
)
def test_written_forms(text: str, setting: Setting) -> None:
    assert parse_setting(text) == setting


def test_knobs_are_written_in_one_order() -> None:
    one, other = "a:9,n_min=2,p_min=0.5", "a:9,p_min=0.50,n_min=2"
    assert str(parse_setting(one)) == str(parse_setting(other)) == one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a drafter's name"),
        (":2", "a drafter's name"),
        ("a b:2", "a drafter's name"),
        ("../x:2", "a drafter's name"),
        ("none:2", "a drafter's name"),
        ("none,p_min=0.5", "none takes no knobs"),
        ("a:", "from 1 to 64"),
        ("a:0", "from 1 to 64"),
        ("a:-1", "from 1 to 64"),
        ("a:65", "from 1 to 64"),
        ("a:2.5", "from 1 to 64"),
        ("a:٣", "from 1 to 64"),
        ("a:2,", "unknown knob ''"),
        ("a:2,p_min", "unknown knob 'p_min'"),
        ("a:2,p_max=1", "unknown knob 'p_max=1'"),
        ("a:2,p_min=1.1", "p_min is a number from 0 to 1"),
        ("a:2,p_min=-0.1", "p_min is a number from 0 to 1"),
        ("a:2,p_min=nan", "p_min is a number from 0 to 1"),
        ("a:2,p_min=0_1", "p_min is a number from 0 to 1"),
        ("a:2,p_min= 1", "p_min is a number from 0 to 1"),
        ("a:2,p_min=", "p_min is a number from 0 to 1"),
        ("a:2,n_min=1.5", "n_min is a whole number from 0 to 64"),
        ("a:2,n_min=3", "above the draft length"),
        ("a:2,p_min=0.1,p_min=0.2", "stands twice"),
    ],
)
def test_errors_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^.") as caught:
        parse_setting(text)
    assert message in str(caught.value)


def test_names() -> None:
    assert all(is_name(text) for text in ("q4_0", "a", "0", "iq4-nl", "a.b"))
    assert not any(
        is_name(text) for text in ("", "none", ".a", "-a", "a:b", "a,b", "a/b", "é", "a\n")
    )


def test_every_knob_has_a_range() -> None:
    assert all(low < high for low, high in KNOBS.values())
