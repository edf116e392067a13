"""Makes the plans that these tests share importable by them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
