"""``kraft-wire pipeline report``: one HTML file about the clusters that a lake knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, CommandError
from kraft_wire.cli.pipeline_extra import check_extra


def pipeline_report(
    *,
    target: str,
    out: Path,
    cluster: Annotated[Sequence[str], Parameter(negative=())] = (),
    most_clusters: int = 20,
) -> int:
    """Write one HTML file with plots: life lines of brokers, leadership changes, under-replicated minutes,
    failover times, churn. It needs no network to be looked at.

    Parameters
    ----------
    target
        Where `pipeline run` writes the tables: a folder, or an address that pyarrow knows.
    out
        The file to write; one that is there is replaced.
    cluster
        Only this cluster, by its id. May be given again and again.
    most_clusters
        How many clusters have plots, those that were in trouble for longest; all have a row in the summary.
    """
    check_extra()
    from kraft_wire.spark.report.lake_tables import LakeTables
    from kraft_wire.spark.report.page import page

    lake = LakeTables(target)
    known = lake.clusters()
    unknown = sorted(set(cluster) - set(known))
    if unknown:
        raise CommandError(
            f"there is nothing of {', '.join(unknown)}; there are {', '.join(known) or 'none'}"
        )
    chosen = [each for each in known if not cluster or each in cluster]
    text = page(map(lake.figures, chosen), most_clusters)
    out.write_text(text, "utf-8")
    print(f"{out}: {len(chosen)} of {len(known)} clusters, {len(text.encode()):,} bytes")
    return EXIT_OK
