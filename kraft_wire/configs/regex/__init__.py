"""Tell whether Java accepts a regular expression (java.util.regex.Pattern, Java 17).

Brokers compile some values of configurations with it. Python's ``re`` has another grammar: it doesn't know
``\\p{Alpha}`` or ``(?<name>a)``, and knows ``(?P<name>a)``. So these modules parse Java's grammar. They
compile nothing. ``pattern`` is the entry; the rules are those of the documentation of Pattern, and what Java
does where it says nothing.
"""
