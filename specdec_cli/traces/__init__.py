"""Traces: what was decided in each round of an answer, as JSON lines, in words and as a page."""
