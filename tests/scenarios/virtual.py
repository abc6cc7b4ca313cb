"""Runs an agent on the virtual clock: its waits take no time, its gaps are exact.

    python virtual.py agents/charger.py

The wall clock stays the real one, because the tool server's journal, which is joined with what the agent recorded, and
the dates of Retry-After are on that. Time-outs of sockets stay real too.
"""

import runpy
import sys
import time

from goldentrace.replay.clock import VirtualClock

IO_GRACE_S = 3.0  # an answer on a busy machine may take that long; a wait on sockets that stay silent costs it in full

real = time.time, time.time_ns
program = sys.argv.pop(1)
with VirtualClock(io_grace_s=IO_GRACE_S).install():
    time.time, time.time_ns = real
    runpy.run_path(program, run_name="__main__")
