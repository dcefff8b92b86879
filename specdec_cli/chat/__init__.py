"""The REPL: what is typed, what it means, what is shown and kept. It reaches models through a `Conversation`."""
