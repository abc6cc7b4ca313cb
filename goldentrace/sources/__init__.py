"""Foreign formats in, `goldentrace/1` events out: one module per format, a registry that detects by content."""
