"""One file a verb, each thin: options in, session, output."""
