"""Checking on a user's own pair that speculation changes nothing."""
