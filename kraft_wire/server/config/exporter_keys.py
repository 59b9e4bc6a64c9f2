"""Read a controller's exporters. Controllers without any don't pay for their modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraft_wire.configs.own_keys import EXPORTER_PREFIX, EXPORTERS_KEY
from kraft_wire.server.config.reader import ConfigReader

if TYPE_CHECKING:
    from kraft_wire.exporters.settings import ExporterSettings


def exporters(reader: ConfigReader) -> tuple[ExporterSettings, ...]:
    """Return the exporters in the order of their names' key."""
    names = reader.get_list(EXPORTERS_KEY)
    keys = reader.beginning_with(EXPORTER_PREFIX)
    if not names and not keys:
        return ()
    from kraft_wire.exporters.installed import find_kinds
    from kraft_wire.exporters.settings import read_exporters, types_in

    kinds, missing = find_kinds(types_in(keys))
    found, problems = read_exporters(names, keys, kinds)
    for problem in (*missing, *problems):
        reader.problem(problem)
    return found
