"""Our codec beside Kafka's: the same instances, bytes and JSON for both.

The Java half is compat/java/CodecJudge.java.
"""
