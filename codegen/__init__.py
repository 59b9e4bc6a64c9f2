"""Schemas to Python. Never imported at run time.

``python -m codegen import --kafka 4.4.0`` takes the schemas' facts from the published jars into
``schemas/``. ``python -m codegen generate`` writes one module for each message, with all its versions.
Generated code is committed and never edited; ``make check`` fails where it differs from the schemas.

- Two front ends read schemas: ``schema/kafka_json.py`` for Kafka's JSON, ``franz`` for definitions in
  franz-go's language. Both produce ``schema/model.py``, and ``schema/check.py`` judges both.
- ``emit`` writes a module. The usual case is read and written in straight lines: fields of fixed size by one
  prebuilt ``struct``, arrays of numbers at once, KRaft's one-topic messages without loops. Anything unusual
  becomes a Fault, and the careful codec (``kraft_wire/protocol/careful_*.py``) accepts it or says what is
  wrong and where.
- ``cython`` makes the compiled codec from the same plans.
- ``diff`` compares two versions of the schemas. Its rules explain a change; ``diff/wire.py`` lays out the
  bytes of each common version and decides.
- ``config_facts`` does the same for Kafka's configuration keys.
"""
