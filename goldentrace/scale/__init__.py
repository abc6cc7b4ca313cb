"""Many traces at once: what holds over a corpus rather than over one run."""
