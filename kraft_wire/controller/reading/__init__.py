"""The APIs for ordinary consumers, which may read the metadata log and nothing else."""

from typing import Final

NO_OFFSET: Final = -1
