"""What this installation and machine have, for a person and for a bug report."""
