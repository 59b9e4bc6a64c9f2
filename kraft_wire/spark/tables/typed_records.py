"""Make the typed tables from the table of all records, by its column ``json``, with Spark."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructField, StructType

from kraft_wire.protocol.schema import Field, defaults_of
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.spark.tables.inputs import spark_schema
from kraft_wire.tabular.arrow_types import PLACE, column_name
from kraft_wire.tabular.table_names import RECORDS, record_class

_PLACE: Final = [field.name for field in PLACE]


class RecordsTables:
    """All tables, made from a DataFrame that is the table ``records``."""

    def __init__(self, records: DataFrame) -> None:
        self._records = records

    def read(self, table: str, *columns: str) -> DataFrame:
        rows = self._records if table == RECORDS else typed_rows(self._records, table)
        return rows.select(*columns)


def typed_rows(records: DataFrame, table: str) -> DataFrame:
    """Return the rows of a typed table, with all its columns."""
    message = record_class(table)
    types = {field.name: field.dataType for field in spark_schema(table)}
    in_json = StructType(
        [
            StructField(field.json_name, _json_type(field, types[column_name(field)]))
            for field in message.FIELDS
        ]
    )
    rows = records.filter(F.col("type") == message.NAME)
    if not message.FIELDS:
        return rows.select(*_PLACE)
    rows = rows.withColumn("_record", F.from_json("json", in_json, {"mode": "FAILFAST"}))
    defaults = defaults_of(message)
    return rows.select(
        *_PLACE,
        *[
            _value(field, types[column_name(field)], getattr(defaults, field.name)).alias(column_name(field))
            for field in message.FIELDS
        ],
    )


def _json_type(field: Field, column_type: DataType) -> DataType:
    """Return a column's type, with the names that structs have in JSON."""
    if field.struct is None:
        return StringType() if isinstance(column_type, BinaryType) else column_type
    assert isinstance(column_type, ArrayType) and isinstance(column_type.elementType, StructType)
    inner = zip(field.struct.FIELDS, column_type.elementType, strict=True)
    return ArrayType(StructType([StructField(one.json_name, there.dataType) for one, there in inner]))


def _value(field: Field, column_type: DataType, default: Any) -> Column:
    """Return a field's value. A field that the record's version lacks, or that has its default, may be
    missing in the JSON."""
    value = F.col(f"_record.{field.json_name}")
    if isinstance(column_type, BinaryType):
        value = F.unbase64(value)
    if field.struct is not None:
        value = value.cast(column_type)
    if default is None or field.nullable[0] <= field.nullable[1]:
        return value
    return F.coalesce(value, _literal(default).cast(column_type))


def _literal(default: Any) -> Column:
    if isinstance(default, (tuple, list)):
        return F.array(*map(F.lit, default))
    return F.lit(str(default) if isinstance(default, Uuid) else default)
