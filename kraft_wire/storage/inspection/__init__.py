"""Check every file of a node's folder without changing any.

Nothing is written and no lock is taken, so the folder of a running controller can be inspected; what the
controller is writing meanwhile isn't reported as damage.
"""

from kraft_wire.storage.inspection.inspector import inspect, metadata_dir_of
from kraft_wire.storage.inspection.model import NOT_WHOLE, Finding, Inspection, Status

__all__ = ["NOT_WHOLE", "Finding", "Inspection", "Status", "inspect", "metadata_dir_of"]
