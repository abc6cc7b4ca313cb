"""Standing in for the provider: a scripted model, in process and behind the real wire formats, and a virtual clock.

Must not judge a run: what was asked and answered becomes events, and rules and diff judge those.
"""
