"""The proposers. Each drafts tokens together with the distributions that it drew them from."""
