"""``kraft-wire pipeline report``: write one HTML file about the clusters in a lake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, CommandError
from kraft_wire.cli.pipeline import check_extra


def pipeline_report(
    *,
    target: str,
    out: Path,
    cluster: Annotated[Sequence[str], Parameter(negative=())] = (),
    most_clusters: int = 20,
) -> int:
    """Write one HTML file with plots: brokers' lifelines, leadership changes, under-replicated minutes,
    failover times, churn. The file needs no network.

    For example:

        kraft-wire pipeline report --target lake --out report.html

    Parameters
    ----------
    target
        The target of `pipeline run`: a folder, or an address that pyarrow knows.
    out
        The file to write. An existing file is replaced.
    cluster
        The id of a cluster to report on, instead of all clusters. Can be given several times.
    most_clusters
        The most clusters to plot, those with the longest trouble first. The summary has a row for each.
    """
    check_extra("spark", "pyarrow")
    from kraft_wire.lake.report.page import page
    from kraft_wire.lake.report.tables import LakeTables

    lake = LakeTables(target)
    known = lake.clusters()
    unknown = sorted(set(cluster) - set(known))
    if unknown:
        raise CommandError(
            f"{target} has no cluster {', '.join(unknown)}; it has {', '.join(known) or 'none'}"
        )
    chosen = [each for each in known if not cluster or each in cluster]
    text = page(map(lake.figures, chosen), most_clusters)
    out.write_text(text, "utf-8")
    print(f"{out}: {len(chosen)} of {len(known)} clusters, {len(text.encode()):,} bytes")
    return EXIT_OK
