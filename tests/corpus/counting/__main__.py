"""Write the list anew: `python -m tests.corpus.counting FOLDER`, FOLDER being that of the real traces."""

import sys
from pathlib import Path

from tests.corpus.counting.files import LIST, write_list

LIST.write_text(write_list(Path(sys.argv[1])))
