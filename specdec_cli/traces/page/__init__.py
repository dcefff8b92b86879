"""A trace as one HTML page that needs nothing else: no network and no other file."""

from specdec_cli.traces.page.building import to_page

__all__ = ["to_page"]
