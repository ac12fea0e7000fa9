from __future__ import annotations

import pytest

from tuirig.rigs.drafting import (
    DRAFT_LENGTH_FLAG,
    NeedsFile,
    length_flag,
    needs_file,
    speculative_types,
)


@pytest.mark.parametrize(
    ("spec", "flag", "needs"),
    [
        ("draft-simple", DRAFT_LENGTH_FLAG, NeedsFile.YES),
        ("draft-mtp", DRAFT_LENGTH_FLAG, NeedsFile.OPTIONAL),
        ("draft-eagle3", DRAFT_LENGTH_FLAG, NeedsFile.YES),
        ("draft-dflash", DRAFT_LENGTH_FLAG, NeedsFile.YES),
        ("draft-dspark", DRAFT_LENGTH_FLAG, NeedsFile.YES),
        ("ngram-simple", "--spec-ngram-simple-size-m", NeedsFile.NO),
        ("ngram-map-k", "--spec-ngram-map-k-size-m", NeedsFile.NO),
        ("ngram-map-k4v", "--spec-ngram-map-k4v-size-m", NeedsFile.NO),
        ("ngram-mod", "--spec-ngram-mod-n-max", NeedsFile.NO),
        ("ngram-cache", None, NeedsFile.NO),
        ("draft-of-a-newer-build", DRAFT_LENGTH_FLAG, NeedsFile.OPTIONAL),
        # a list: the draft model's length before the n-gram method's, whatever the order
        ("ngram-mod,draft-mtp", DRAFT_LENGTH_FLAG, NeedsFile.OPTIONAL),
        ("draft-simple, ngram-mod", DRAFT_LENGTH_FLAG, NeedsFile.YES),
        ("ngram-cache,ngram-mod", "--spec-ngram-mod-n-max", NeedsFile.NO),
    ],
)
def test_what_a_type_needs(spec: str, flag: str | None, needs: NeedsFile) -> None:
    types = speculative_types(spec)
    assert length_flag(types) == flag
    assert needs_file(types) is needs


@pytest.mark.parametrize("spec", ["", " ", "draft-mtp,", "none", "draft-mtp,draft-mtp"])
def test_lists_that_are_none(spec: str) -> None:
    with pytest.raises(ValueError, match=r"empty|none|twice"):
        speculative_types(spec)


def test_only_plain_drafters_share_the_vocabulary() -> None:
    assert speculative_types("draft-simple")[0].needs_same_vocabulary
    assert not speculative_types("draft-mtp")[0].needs_same_vocabulary
