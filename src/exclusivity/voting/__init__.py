"""Votes: preferences of members, rules that count them, certificates, and members of fitted ensembles."""

from exclusivity.voting.rules import RULES, VotingRule

__all__ = ["RULES", "VotingRule"]
