"""Derived tables: what the records mean. One function for each table, by window functions over the records.

``effects.py`` gives each record the moment at which it takes effect (transactions, snapshots). Each table
makes points of them, from which moment on something is so; ``history.py`` turns points into intervals for
all tables. Open intervals become points again (``open_rows.py``), so that new records continue where older
ones ended. All tables of one query end at the same offsets.

``cluster`` is the first key of every table. An interval of offsets includes its start but not its end, which
is null while the interval lasts. Records count when they take effect: records of a metadata transaction at
its end, records of an aborted or open transaction never.

From the records of a partition to its intervals there is one exchange and one sort. An ``explode`` or
another order in between would make Spark sort again, which takes longer than all windows. So a point itself
says until when it holds (``until``), and rare records that concern many partitions become rows of each
partition before the sort.
"""
