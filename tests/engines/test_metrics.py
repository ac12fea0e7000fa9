from __future__ import annotations

from tuirig.engines.base import Counters
from tuirig.engines.llamacpp.metrics import parse_metrics

BEFORE_ANY_REQUEST = """\
# HELP llamacpp:tokens_predicted_total Number of generation tokens processed.
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 0
llamacpp:tokens_predicted_seconds_total 0
# TYPE llamacpp:spec_decode_num_draft_tokens_total counter
llamacpp:spec_decode_num_draft_tokens_total 0
llamacpp:spec_decode_num_accepted_tokens_total 0
llamacpp:spec_decode_num_drafts_total 0
# TYPE llamacpp:predicted_tokens_seconds gauge
llamacpp:predicted_tokens_seconds 0
"""
AFTER = """\
llamacpp:tokens_predicted_total 1.6e+01
llamacpp:spec_decode_num_draft_tokens_total 14
llamacpp:spec_decode_num_accepted_tokens_total 7
llamacpp:spec_decode_num_drafts_total 7
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 5
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 2
llamacpp:requests_processing 0
"""


def test_before_any_request() -> None:
    assert parse_metrics(BEFORE_ANY_REQUEST) == Counters(
        predicted=0, drafts=0, drafted=0, accepted=0, per_position=()
    )


def test_after_a_drafted_reply() -> None:
    assert parse_metrics(AFTER) == Counters(
        predicted=16, drafts=7, drafted=14, accepted=7, per_position=(5, 2)
    )


def test_a_build_without_speculative_counters() -> None:
    assert parse_metrics("llamacpp:tokens_predicted_total 5\n") == Counters(predicted=5)
