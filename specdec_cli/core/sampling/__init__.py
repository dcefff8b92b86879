"""The sampling chain: from a row of logits, and what came before it, to the distribution of the next token.

`chain` runs it, `samplers` is the table of all samplers, `order` their names, `ranges` the ranges of their options.
"""
