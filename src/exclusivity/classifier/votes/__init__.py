"""Votes of members and what they are worth: decisions, ballots, and how many broken features they survive."""

from exclusivity.classifier.votes.ballots import Ballots, RoughBallots, certain_ballots
from exclusivity.classifier.votes.certainty import DoubtOf, certain_votes, rough_slack, score_slack
from exclusivity.classifier.votes.certified import CertifiedVotes, check_top_k, radii_of, threats_of, winnable
from exclusivity.classifier.votes.decisions import (
    class_scores,
    finite,
    hard_decision,
    member_votes,
    runoff_decision,
    soft_decision,
    winning_codes,
)
from exclusivity.classifier.votes.rankings import Rankings
from exclusivity.classifier.votes.reach import UNDECIDED, grouped

__all__ = [
    "UNDECIDED",
    "Ballots",
    "CertifiedVotes",
    "DoubtOf",
    "Rankings",
    "RoughBallots",
    "certain_ballots",
    "certain_votes",
    "check_top_k",
    "class_scores",
    "finite",
    "grouped",
    "hard_decision",
    "member_votes",
    "radii_of",
    "rough_slack",
    "runoff_decision",
    "score_slack",
    "soft_decision",
    "threats_of",
    "winnable",
    "winning_codes",
]
