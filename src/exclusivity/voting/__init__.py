"""Votes of the members of fitted ensembles."""
