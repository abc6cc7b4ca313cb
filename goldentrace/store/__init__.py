"""Files on disk: whole files written atomically, and the journal that a running agent appends to."""
