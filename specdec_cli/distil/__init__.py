"""Making a small draft for a big model: from the target's own answers to a GGUF file, and how good that is."""
