"""Compare our codec with Kafka's on the same instances, bytes and JSON.

The Java half is compat/java/CodecJudge.java.
"""
