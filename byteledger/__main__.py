"""python -m byteledger"""

import sys

from .cli import main

try:
    sys.exit(main())
except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
    sys.stderr.close()
    sys.exit(1)
