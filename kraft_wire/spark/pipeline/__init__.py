"""Keeps all tables of many clusters up to date as Parquet, batch by batch, each exactly once."""
