"""The pairs of models.toml: what is here, what fits, whether two models go together; and changing the user's own."""
