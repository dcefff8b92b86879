"""`specdec models pull`: files from the model hub to their places on this machine."""

from specdec_cli.downloads.fetching import fetch

__all__ = ["fetch"]
