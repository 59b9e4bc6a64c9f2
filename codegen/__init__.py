"""From Kafka's message schemas to Python: import the facts, check them, plan, emit.

Never imported at run time.
"""
