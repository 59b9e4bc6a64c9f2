"""Convert records to Arrow tables and JSON, and back to records. Needs no Spark."""
