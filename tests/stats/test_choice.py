import pytest

from tuirig.stats.choice import (
    ALL,
    Candidate,
    Objective,
    choose,
    choose_per_kind,
    compare_within,
    parse_objective,
)
from tuirig.stats.comparison import Start, Variance, Verdict, compare

KINDS = ("code", "advice", "story", "explanation", "list", "summary")
QUIET = [Variance(0.002**2, 50.0)]


def prompts_of(per_kind: int, kinds: tuple[str, ...] = KINDS) -> dict[str, str]:
    return {f"{kind}-{i}": kind for kind in kinds for i in range(per_kind)}


def candidate(
    setting: str,
    drafted: int | None,
    gains: dict[str, float] | float,
    *,
    memory: float | None = None,
    per_kind: int = 2,
    starts: int = 2,
) -> Candidate:
    speeds: Start = {
        prompt: (50.0 + i) * (gains if isinstance(gains, float) else gains[kind])
        for i, (prompt, kind) in enumerate(prompts_of(per_kind).items())
    }
    return Candidate(setting, drafted, memory, (speeds,) * starts)


NONE = candidate("none", 0, 1.0)


def test_the_highest_ratio_wins() -> None:
    options = [NONE, candidate("q4_0:1", 1, 1.5), candidate("q4_0:2", 2, 1.7)]
    choice = choose(options, prompts_of(2), history=QUIET)
    assert choice is not None
    assert (choice.setting, choice.best, choice.reference) == ("q4_0:2", "q4_0:2", "none")
    assert choice.gain.ratio == pytest.approx(1.7)
    assert choice.gain.verdict is Verdict.FASTER
    assert choice.tied == ("q4_0:2",)
    assert choice.reason == "highest ratio"
    assert {name: c.verdict for name, c in choice.comparisons} == {
        "none": Verdict.SLOWER,
        "q4_0:1": Verdict.SLOWER,
    }


def test_a_tie_goes_to_fewer_drafted_tokens() -> None:
    options = [NONE, candidate("q4_0:3", 3, 1.705), candidate("q4_0:2", 2, 1.7)]
    choice = choose(options, prompts_of(2), history=QUIET)
    assert choice is not None
    assert (choice.setting, choice.best) == ("q4_0:2", "q4_0:3")
    assert choice.gain.ratio == pytest.approx(1.7)
    assert choice.reason == "level with q4_0:3, drafts fewer tokens"


def test_then_to_less_memory_where_known() -> None:
    options = [
        NONE,
        candidate("q8_0:2", 2, 1.705, memory=2915.0),
        candidate("q4_0:2", 2, 1.7, memory=2875.0),
        candidate("bf16:2", 2, 1.702),
    ]
    choice = choose(options, prompts_of(2), history=QUIET)
    assert choice is not None
    assert (choice.setting, choice.best) == ("q4_0:2", "q8_0:2")
    assert choice.reason == "level with q8_0:2, needs less memory"


def test_a_method_without_a_length_loses_ties() -> None:
    options = [NONE, candidate("ngram", None, 1.5), candidate("q4_0:7", 7, 1.499)]
    choice = choose(options, prompts_of(2), history=QUIET)
    assert choice is not None
    assert choice.setting == "q4_0:7"


def test_no_drafter_is_chosen_while_none_is_proven_faster() -> None:
    options = [NONE, candidate("q4_0:1", 1, 1.04, starts=1)]
    choice = choose(options, prompts_of(2))
    assert choice is not None
    assert (choice.setting, choice.best) == ("none", "q4_0:1")


def test_ties_are_not_chained() -> None:
    ladder = [candidate(f"q4_0:{n}", n, 1.0 + 0.007 * n) for n in (1, 2, 3)]
    choice = choose(ladder, prompts_of(2), history=QUIET)
    assert choice is not None
    # 1 is level with 2 and 2 with 3, but 1 is slower than 3.
    assert choice.setting == "q4_0:2"
    assert choice.reference == "q4_0:1"


def test_settings_without_a_start_are_never_chosen() -> None:
    options = [NONE, Candidate("q4_0:2", 2, None, ())]
    choice = choose(options, prompts_of(2))
    assert choice is not None
    assert choice.setting == "none"
    assert choose([Candidate("q4_0:2", 2, None, ())], prompts_of(2)) is None


def test_the_objective_decides() -> None:
    short = dict.fromkeys(KINDS, 1.3) | {"code": 1.5, "story": 1.4}
    long = dict.fromkeys(KINDS, 1.2) | {"code": 2.0, "story": 1.1}
    options = [NONE, candidate("inside:3", 3, short), candidate("inside:6", 6, long)]
    kinds = prompts_of(2)

    def chosen(objective: Objective) -> str:
        choice = choose(options, kinds, objective=objective, history=QUIET)
        assert choice is not None
        return choice.setting

    assert chosen(Objective((("code", 1.0),))) == "inside:6"
    assert chosen(Objective((("story", 1.0),))) == "inside:3"
    assert chosen(Objective((("code", 3.0), ("story", 1.0)))) == "inside:6"
    assert chosen(Objective((("code", 1.0), ("story", 9.0)))) == "inside:3"
    mixed = choose(
        options, kinds, objective=Objective((("code", 3.0), ("story", 1.0))), history=QUIET
    )
    assert mixed is not None
    assert mixed.gain.ratio == pytest.approx(2.0**0.75 * 1.1**0.25)


def test_every_kind_gets_its_choice_and_says_where_it_differs() -> None:
    short = dict.fromkeys(KINDS, 1.5) | {"code": 1.6, "list": 1.500}
    long = dict.fromkeys(KINDS, 1.4) | {"code": 2.0, "list": 1.506}
    options = [
        candidate("none", 0, 1.0, per_kind=6),
        candidate("inside:3", 3, short, per_kind=6),
        candidate("inside:6", 6, long, per_kind=6),
    ]
    kinds = prompts_of(6)
    overall = choose(options, kinds, objective=Objective((("story", 1.0),)), history=QUIET)
    assert overall is not None and overall.setting == "inside:3"

    found = {one.kind: one for one in choose_per_kind(options, kinds, overall, history=QUIET)}

    assert list(found) == list(KINDS)
    assert found["code"].choice is not None and found["code"].choice.setting == "inside:6"
    assert found["code"].differs
    assert found["list"].choice is not None and found["list"].choice.best == "inside:6"
    assert found["list"].choice.setting == "inside:3"
    assert [kind for kind, one in found.items() if one.differs] == ["code"]


def test_a_kind_with_too_few_prompts_gets_no_verdict() -> None:
    options = [NONE, candidate("q4_0:2", 2, 1.7)]
    overall = choose(options, prompts_of(2), history=QUIET)
    assert overall is not None
    found = choose_per_kind(options, prompts_of(2), overall, history=QUIET)
    assert {one.choice for one in found} == {None}
    assert found[0].reason == "2 of the 6 prompts that a verdict per kind needs"


def test_the_start_noise_of_all_candidates_is_pooled() -> None:
    steady = candidate("q4_0:2", 2, 1.7, starts=3)
    a, b = (candidate("q4_0:1", 1, 1.5, starts=1), candidate("q4_0:3", 3, 1.52, starts=1))
    alone = compare(a.starts, b.starts)
    pooled = compare_within([a, b, steady], a, b)
    assert alone.start_part is not None and pooled.start_part is not None
    assert (alone.start_part.degrees_of_freedom, pooled.start_part.degrees_of_freedom) == (2, 4)
    assert pooled.start_part.value == pytest.approx(alone.start_part.value / 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", ALL),
        ("energy", Objective(per="joule")),
        ("code", Objective((("code", 1.0),))),
        ("mix:code=3,story=1", Objective((("code", 3.0), ("story", 1.0)))),
    ],
)
def test_objectives_are_read_and_written_alike(text: str, expected: Objective) -> None:
    assert parse_objective(text, KINDS) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    ["", "prose", "mix", "mix:", "mix:code", "mix:code=x", "mix:code=0", "mix:prose=1",
     "mix:code=1,code=2", "mix:code=inf", "code:3"],
)  # fmt: skip
def test_a_wrong_objective_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"objective .*(expected|is not KIND=SHARE)"):
        parse_objective(text, KINDS)


def test_an_objective_needs_prompts_of_its_kinds() -> None:
    with pytest.raises(ValueError, match="no prompt of kind 'code'"):
        Objective((("code", 1.0),)).weighting(prompts_of(1, ("story",)))
