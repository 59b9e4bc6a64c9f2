"""``kraft-wire dump-log``: print the files of a metadata log in the lines of Kafka's DumpLogSegments."""

from __future__ import annotations

import re
import sys

from kraft_wire.cli.dump.batch_text import RecordText
from kraft_wire.cli.dump.index_text import IndexErrors, dump_offset_index, dump_time_index
from kraft_wire.cli.dump.segment import OffsetGaps, dump_segment
from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.output import print_lines

DEFAULT_MAX_BYTES = 2**31 - 1
_REPEATED_SLASH = re.compile("/{2,}")


def dump_log(
    *,
    files: str,
    cluster_metadata_decoder: bool = False,
    print_data_log: bool = False,
    deep_iteration: bool = False,
    skip_record_metadata: bool = False,
    verify_index_only: bool = False,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> int:
    """Print the contents of a metadata log's files, as Kafka's kafka-dump-log does.

    Reads segments (.log), snapshots (.checkpoint) and indexes (.index, .timeindex), also those of a running
    controller.

    For example:

        kraft-wire dump-log --cluster-metadata-decoder --files 00000000000000000000.log

    Parameters
    ----------
    files
        The files, separated by commas.
    cluster_metadata_decoder
        Print the content of every record as metadata, in Kafka's JSON form.
    print_data_log
        Print the content of every record, as text unless a decoder is given.
    deep_iteration
        Print a line for every record, not only for every batch. Implied by the two options above.
    skip_record_metadata
        Leave out offsets, times and sizes of records, and control records.
    verify_index_only
        Compare index files with their segments without printing the entries.
    max_bytes
        Stop reading a .log or .checkpoint file after this many bytes.
    """
    if max_bytes < 0:
        raise UsageError(f"--max-bytes {max_bytes}: give 0 or more")
    print_contents = cluster_metadata_decoder or print_data_log
    text = RecordText(
        with_metadata=not skip_record_metadata, with_contents=print_contents, decode=cluster_metadata_decoder
    )
    records = text if deep_iteration or print_contents else None
    gaps, index_errors = OffsetGaps(), IndexErrors()
    for name in files.split(","):
        path = _REPEATED_SLASH.sub("/", name)
        print_lines([f"Dumping {path}"])
        if path.endswith((".log", ".checkpoint")):
            print_lines(dump_segment(path, records, gaps, max_bytes))
        elif path.endswith(".index"):
            print_lines(dump_offset_index(path, index_errors, quiet=verify_index_only))
        elif path.endswith(".timeindex"):
            print_lines(dump_time_index(path, index_errors, quiet=verify_index_only))
        else:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
    for line in (*index_errors.lines(), *gaps.lines()):
        print(line, file=sys.stderr)
    return EXIT_OK
